"""What is shown of each class: which images, and how many so that the report stays small."""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vsgraph.crawls.crawl import Crawl
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.wordnet import WordNet
from vsgraph.report.groups import find_groups, spread
from vsgraph.report.tallies import Labels, Rows, Tally
from vsgraph.report.typical import Nearest, SenseFinder, typical_words, words_of
from vsgraph.result.correction import Correction

MOST_PAGES = 1000
BACKGROUND = 400
FEWEST_OTHERS = 10


@dataclasses.dataclass(frozen=True)
class Amounts:
    """How many pictures a page shows.

    Attributes
    ----------
    anchors, senses, in_sense, moves, in_move, listed : int
        Anchors; senses and pictures of each; other classes that images left for or came from and
        pictures of each; pictures in the lists of most and least certain and of rejected images.
    points : int
        Images on the map.
    """

    anchors: int
    senses: int
    in_sense: int
    moves: int
    in_move: int
    listed: int
    points: int = 5000

    @classmethod
    def of(cls, n_pages: int) -> "Amounts":
        """Return what some 12,000 pictures allow.

        >>> Amounts.of(1000)
        Amounts(anchors=2, senses=4, in_sense=1, moves=2, in_move=1, listed=1, points=3000)
        """
        if n_pages <= 100:
            return cls(anchors=12, senses=6, in_sense=8, moves=4, in_move=6, listed=8)
        if n_pages <= 300:
            return cls(anchors=5, senses=5, in_sense=3, moves=2, in_move=2, listed=3)
        return cls(anchors=2, senses=4, in_sense=1, moves=2, in_move=1, listed=1, points=3000)


@dataclasses.dataclass(frozen=True, eq=False)
class Sense:
    """A group among the images of a class.

    Attributes
    ----------
    size, kept, left, rejected : int
        How many there are, and what became of them.
    shown : int array
        Its most central images.
    words : list of str
        Typical of its text.
    nearest : Nearest or None
        The sense in WordNet that its text is nearest to.
    """

    size: int
    kept: int
    left: int
    rejected: int
    shown: Rows
    words: list[str]
    nearest: Nearest | None


@dataclasses.dataclass(frozen=True, eq=False)
class Move:
    """Images that went from one class to another; `other` is -1 for none."""

    other: int
    count: int
    shown: Rows

    @property
    def is_shown(self) -> bool:
        """Whether there are pictures of it."""
        return len(self.shown) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class ClassContent:
    """What the page of a class shows: rows of pictures, under the headings of the page."""

    tally: Tally
    meaning: Meaning | None
    other_meanings: list[Meaning]
    senses: list[Sense]
    n_grouped: int
    n_others: int
    anchors: Rows
    n_anchors: int
    left: list[Move]
    came: list[Move]
    surest: Rows
    least_sure: Rows
    rejected: Rows

    @property
    def rows(self) -> Rows:
        """All the images it shows."""
        lists = [self.anchors, self.surest, self.least_sure, self.rejected]
        lists += [sense.shown for sense in self.senses]
        lists += [move.shown for move in (*self.left, *self.came)]
        return np.unique(np.concatenate(lists)).astype(np.intp)


class Gatherer:
    """Gathers what is shown of each class.

    Parameters
    ----------
    crawl, correction
        The data and what became of it.
    meanings : list of Meaning
        Of all classes; may be empty.
    amounts : Amounts
        How many pictures.
    """

    def __init__(
        self, crawl: Crawl, correction: Correction, meanings: list[Meaning], amounts: Amounts
    ) -> None:
        self.crawl, self.correction, self.amounts = crawl, correction, amounts
        self.labels = Labels(correction)
        self.wordnet = WordNet.open()
        self.meanings: dict[str, list[Meaning]] = {}
        for meaning in meanings:
            self.meanings.setdefault(meaning.class_name, []).append(meaning)

    @functools.cached_property
    def background(self) -> list[frozenset[str]]:
        """Words of images all over the crawl."""
        rows = spread(np.arange(len(self.crawl)), BACKGROUND)
        return [words_of(text) for text in self.crawl.texts(rows)]

    def gather(self, tally: Tally) -> ClassContent:
        """Choose what is shown of one class."""
        meanings = self.meanings.get(self.correction.class_names[tally.number], [])
        chosen = next((meaning for meaning in meanings if meaning.chosen), None)
        groups = find_groups(self.correction.adjacency, tally.found, most=self.amounts.senses)
        listed = self.amounts.listed
        anchors = self.correction.anchors
        of_class = anchors.rows[anchors.classes == tally.number]
        stayed = self._by_confidence(tally.kept)
        judged = self._by_confidence(np.union1d(tally.kept, tally.left))
        return ClassContent(
            tally=tally,
            meaning=chosen,
            other_meanings=[meaning for meaning in meanings if meaning is not chosen],
            senses=list(self._senses(tally, groups.members, groups.others, chosen)),
            n_grouped=sum(map(len, groups.members)) + len(groups.others),
            n_others=len(groups.others),
            anchors=np.asarray(of_class[: self.amounts.anchors], np.intp),
            n_anchors=len(of_class),
            left=self._moves(tally.left, self.labels.new_classes(tally.left)),
            came=self._moves(tally.came, self.labels.old_classes(tally.came)),
            surest=stayed[:listed],
            least_sure=judged[::-1][:listed],
            rejected=self._by_confidence(tally.rejected)[:listed],
        )

    def _by_confidence(self, rows: Rows) -> Rows:
        """Return rows with the surest first."""
        return rows[np.argsort(-self.correction.confidence[rows], kind="stable")]

    def _senses(
        self, tally: Tally, members: list[Rows], others: Rows, chosen: Meaning | None
    ) -> Iterator[Sense]:
        """Yield the groups with their words and the sense they are nearest to."""
        name = self.correction.class_names[tally.number]
        looked_at = np.concatenate([*members, others])
        told = zip(looked_at.tolist(), map(words_of, self.crawl.texts(looked_at)), strict=True)
        words = {row: of_image for row, of_image in told if of_image}
        wnid = self._wnid(tally.number, chosen)
        finder = SenseFinder(name, wnid, list(words.values()), self.wordnet)
        for rows in members:
            within = set(rows.tolist())
            inside = [words[row] for row in words if row in within]
            outside = [words[row] for row in words if row not in within]
            compared = outside if len(outside) >= FEWEST_OTHERS else self.background
            typical = typical_words(inside, compared, but=words_of(name))
            yield Sense(
                size=len(rows),
                kept=_n_common(rows, tally.kept),
                left=_n_common(rows, tally.left),
                rejected=_n_common(rows, tally.rejected),
                shown=rows[: self.amounts.in_sense],
                words=typical,
                nearest=finder.nearest(inside, typical),
            )

    def _wnid(self, number: int, chosen: Meaning | None) -> str | None:
        """Return the WordNet id of a class where it is known."""
        if chosen and chosen.wnid:
            return chosen.wnid
        return self.crawl.wnids[number] if self.crawl.wnids else None

    def _moves(self, rows: Rows, others: Rows) -> list[Move]:
        """Return moves by the other class, the largest first, the surest images of each."""
        counts = np.bincount(others + 1)
        largest = np.argsort(-counts, kind="stable")
        return [
            Move(
                int(other - 1),
                int(counts[other]),
                self._by_confidence(rows[others == other - 1])[: self.amounts.in_move]
                if place < self.amounts.moves
                else rows[:0],
            )
            for place, other in enumerate(largest)
            if counts[other]
        ]


def _n_common(rows: NDArray[np.intp], others: NDArray[np.intp]) -> int:
    return int(np.isin(rows, others).sum())
