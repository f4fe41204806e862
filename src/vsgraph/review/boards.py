"""The board of a class: groups of its images that look alike and are spoken of alike."""

import dataclasses

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.errors import InputError
from vsgraph.meanings.wordnet import WordNet
from vsgraph.report.groups import find_groups, join_groups
from vsgraph.report.tallies import Rows
from vsgraph.report.typical import typical_words, words_of
from vsgraph.result.parts import Decision
from vsgraph.review.view import View

MOST_GROUPS = 12
MOST_TEXTS = 120  # of a group, and of the others, that are read for typical words


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Some images of a class."""

    name: str  # stays the same when the labels are solved again
    title: str  # its typical words, or what it is
    rows: Rows  # the most central first
    counts: dict[str, int]  # by decision
    right: float  # estimated share of right web labels
    doubt: float  # sum of p (1 - p): what answers can settle


def board(view: View, number: int) -> list[Group]:
    """Return the groups of a class, those with most to settle first; they are kept for a while."""
    made: list[Group] = view.keep(("board", number), lambda: _make_board(view, number))
    return made


def group_rows(view: View, number: int, name: str) -> Rows:
    """Return the images of a group of a class by its name."""
    for group in board(view, number):
        if group.name == name:
            return group.rows
    raise InputError("there is no such group any more; open the page of the class again")


def _make_board(view: View, number: int) -> list[Group]:
    """Group the images found for a class, and those that came to it from other classes."""
    graph, found = view.correction.adjacency, view.web.rows(number)
    texts = view.run.outputs.text_embeddings()
    some = find_groups(graph, found, most=MOST_GROUPS, texts=texts)
    groups = join_groups(graph, found, some)
    words = _words(view, number, groups.members)
    made = [
        _group(view, f"g{place}", ", ".join(words[place]) or "look alike", rows)
        for place, rows in enumerate(groups.members)
    ]
    made.sort(key=lambda group: -group.doubt)
    if len(groups.others):
        rest = groups.others[np.argsort(view.quality[groups.others], kind="stable")]
        title = "like no other image of the class" if made else "all images"
        made.append(_group(view, "rest", title, rest))
    came = np.setdiff1d(view.final.rows(number), found)
    if len(came):
        by_confidence = came[np.argsort(view.confidence[came], kind="stable")]
        made.append(_group(view, "came", "came from other classes", by_confidence))
    return made


def _group(view: View, name: str, title: str, rows: Rows) -> Group:
    """Count the decisions and doubts of some images."""
    decisions, right = view.correction.decisions[rows], view.quality[rows]
    if name == "came":
        right = view.confidence[rows]
    return Group(
        name, title, rows,
        {d.name.lower(): int((decisions == d).sum()) for d in Decision},
        float(right.mean()), float((right * (1 - right)).sum()),
    )  # fmt: skip


def _words(view: View, number: int, members: list[Rows]) -> list[list[str]]:
    """Return the words that are typical of each group, compared with all others."""
    singular = WordNet.is_found()
    texts = [
        [words_of(text, singular=singular) for text in view.crawl.texts(_sample(rows))]
        for rows in members
    ]
    own = words_of(view.names[number], singular=singular)
    others = [[w for j, of in enumerate(texts) if j != i for w in of] for i in range(len(texts))]
    spread = view.crawl.texts(evenly_spread(len(view), MOST_TEXTS))
    crawl = [words_of(text, singular=singular) for text in spread]
    return [
        (typical_words(inside, outside, but=own) or typical_words(inside, crawl, but=own))[:5]
        for inside, outside in zip(texts, others, strict=True)
    ]


def _sample(rows: Rows) -> Rows:
    return rows[evenly_spread(len(rows), MOST_TEXTS)]
