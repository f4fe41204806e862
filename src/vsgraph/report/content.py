"""Which images are shown of each class, and how many, for the report to stay small."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import by_class
from vsgraph.meanings.wordnet import WordNet
from vsgraph.report.groups import Groups, find_groups
from vsgraph.report.tallies import Labels, Rows, Tally, first_other
from vsgraph.report.typical import Nearest, SenseFinder, typical_words, words_of
from vsgraph.result.correction import Correction

MOST_PAGES = 1000
BACKGROUND = 400
FEWEST_OTHERS = 10


@dataclasses.dataclass(frozen=True)
class Amounts:
    """How many pictures a page shows."""

    anchors: int
    senses: int
    in_sense: int  # pictures per sense
    moves: int  # classes that images left for, or came from
    in_move: int  # pictures per such class
    listed: int  # of most and least certain images, and of rejected ones
    points: int = 5000  # on the map

    @classmethod
    def of(cls, n_pages: int) -> "Amounts":
        """Return the amounts that give about 12,000 pictures on all pages.

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
    """A group among the images of a class."""

    size: int  # how many images, and how many of them were kept, left and rejected
    kept: int
    left: int
    rejected: int
    shown: Rows  # its most central images
    words: list[str]  # typical of its text
    nearest: Nearest | None  # the sense in WordNet nearest to its text


@dataclasses.dataclass(frozen=True, eq=False)
class Move:
    """Images that went from one class to another; `other` is -1 if there is no other class."""

    other: int
    count: int
    shown: Rows

    @property
    def is_shown(self) -> bool:
        """Whether the page has pictures of it."""
        return len(self.shown) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class ClassContent:
    """What the page of a class shows, in the order of the page."""

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
    has_wordnet: bool

    @property
    def rows(self) -> Rows:
        """All the images it shows."""
        lists = [self.anchors, self.surest, self.least_sure, self.rejected]
        lists += [sense.shown for sense in self.senses]
        lists += [move.shown for move in (*self.left, *self.came)]
        return np.unique(np.concatenate(lists)).astype(np.intp)


class Gatherer:
    """Gathers what is shown of each class; `meanings` are those of all classes, or none.

    Without WordNet's files, words are not made singular and no group is given a sense of WordNet.
    """

    def __init__(
        self, crawl: Crawl, correction: Correction, meanings: list[Meaning], amounts: Amounts
    ) -> None:
        self.crawl, self.correction, self.amounts = crawl, correction, amounts
        self.labels = Labels(correction)
        self.meanings = by_class(meanings)
        self.wordnet: WordNet | None = None
        with contextlib.suppress(InputError):
            self.wordnet = WordNet.open()

    def words(self, text: str) -> frozenset[str]:
        """Return the distinct words of a text."""
        return words_of(text, singular=self.wordnet is not None)

    @functools.cached_property
    def background(self) -> list[frozenset[str]]:
        """Words of images spread over the crawl."""
        rows = evenly_spread(len(self.crawl), BACKGROUND)
        return [self.words(text) for text in self.crawl.texts(rows)]

    def gather(self, tally: Tally) -> ClassContent:
        """Choose what is shown of one class."""
        meanings = self.meanings.get(self.correction.class_names[tally.number], [])
        chosen = next((meaning for meaning in meanings if meaning.chosen), None)
        chosen = chosen and self._without_other_id(chosen)
        groups = find_groups(self.correction.adjacency, tally.found, most=self.amounts.senses)
        listed, labels = self.amounts.listed, self.labels
        anchors = self.correction.anchors
        of_class = anchors.rows[anchors.classes == tally.number]
        judged = self._by_confidence(np.union1d(tally.kept, tally.left))
        return ClassContent(
            tally=tally,
            meaning=chosen,
            other_meanings=[meaning for meaning in meanings if not meaning.chosen],
            senses=list(self._senses(tally, groups, chosen)),
            n_grouped=sum(map(len, groups.members)) + len(groups.others),
            n_others=len(groups.others),
            anchors=np.asarray(of_class[: self.amounts.anchors], np.intp),
            n_anchors=len(of_class),
            left=self._moves(tally.left, first_other(labels.final, labels.web, tally.left)),
            came=self._moves(tally.came, first_other(labels.web, labels.final, tally.came)),
            surest=self._by_confidence(tally.kept)[:listed],
            least_sure=judged[::-1][:listed],
            rejected=self._by_confidence(tally.rejected)[:listed],
            has_wordnet=self.wordnet is not None,
        )

    def _without_other_id(self, meaning: Meaning) -> Meaning:
        """Return a meaning without its WordNet id if its description is one's own."""
        wordnet, wnid = self.wordnet, meaning.wnid
        is_own = wordnet is not None and wnid in wordnet and (
            str(wordnet.synset(str(wnid))) not in meaning.description
        )  # fmt: skip
        return dataclasses.replace(meaning, wnid=None) if is_own else meaning

    def _by_confidence(self, rows: Rows) -> Rows:
        """Return rows in the order of their confidence, the highest first."""
        return rows[np.argsort(-self.correction.confidence[rows], kind="stable")]

    def _senses(self, tally: Tally, groups: Groups, chosen: Meaning | None) -> Iterator[Sense]:
        """Yield the groups with their typical words and the sense nearest to them."""
        name = self.correction.class_names[tally.number]
        grouped = np.concatenate([*groups.members, groups.others])
        texts = zip(grouped.tolist(), map(self.words, self.crawl.texts(grouped)), strict=True)
        words = {row: of_image for row, of_image in texts if of_image}
        wnid = chosen.wnid if chosen else None
        if not wnid and self.crawl.wnids:
            wnid = self.crawl.wnids[tally.number]
        finder = None
        if self.wordnet is not None:
            finder = SenseFinder(name, wnid, list(words.values()), self.wordnet)
        for rows in groups.members:
            within = set(rows.tolist())
            inside = [words[row] for row in words if row in within]
            outside = [words[row] for row in words if row not in within]
            compared = outside if len(outside) >= FEWEST_OTHERS else self.background
            typical = typical_words(inside, compared, but=self.words(name))
            yield Sense(
                size=len(rows),
                kept=_n_common(rows, tally.kept),
                left=_n_common(rows, tally.left),
                rejected=_n_common(rows, tally.rejected),
                shown=rows[: self.amounts.in_sense],
                words=typical,
                nearest=finder.nearest(inside, typical) if finder else None,
            )

    def _moves(self, rows: Rows, others: Rows) -> list[Move]:
        """Return the moves of rows by the other class of each, the most frequent class first."""
        classes, counts = np.unique(others, return_counts=True)
        moves = []
        for place, i in enumerate(np.argsort(-counts, kind="stable")):
            n_shown = self.amounts.in_move if place < self.amounts.moves else 0
            shown = self._by_confidence(rows[others == classes[i]])[:n_shown]
            moves.append(Move(int(classes[i]), int(counts[i]), shown))
        return moves


def _n_common(rows: Rows, others: Rows) -> int:
    return int(np.isin(rows, others).sum())
