"""The page that says what changed since the last run."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.crawls.crawl import Crawl
from vsgraph.judge.since import CHANGED, EDITED, GONE, NEW, Since
from vsgraph.report.cards import clip, make_cards
from vsgraph.report.pages import write_page
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction

PAGE = "since.html"
TITLES = {CHANGED: "Decided otherwise", NEW: "New", EDITED: "Edited"}
MOST_SHOWN = 60  # pictures of each kind
MOST_LISTED = 100  # names of images that are gone
MOST_FLOWS = 8
REJECTED = "rejected"


@dataclasses.dataclass(frozen=True)
class Part:
    """The images of one kind of change."""

    kind: str
    title: str
    count: int
    rows: Rows  # those shown
    flows: list[tuple[str, str, int]]  # labels before and now, and how many images
    was: dict[int, str]  # the label before of those shown; empty if they are new


def parts_of(since: Since) -> list[Part]:
    """Return what the page shows of each kind of change; evenly spread if there is more."""
    parts = []
    for kind, title in TITLES.items():
        table = since.of(kind)
        if not len(table):
            continue
        rows = table["row"].to_numpy().astype(np.intp)
        before, now = (
            [label or REJECTED for label in table[name].to_pylist()]
            for name in ("label_before", "label")
        )
        flows = Counter(zip(before, now, strict=True)).most_common(MOST_FLOWS)
        listed = [] if kind == NEW else [(*labels, count) for labels, count in flows]
        shown = evenly_spread(len(rows), MOST_SHOWN)
        was = {} if kind == NEW else {int(rows[place]): before[place] for place in shown}
        parts.append(Part(kind, title, len(table), rows[shown], listed, was))
    return parts


def write_since(
    folder: Path,
    since: Since,
    crawl: Crawl,
    correction: Correction,
    *,
    heading: str,
    pictures: frozenset[int],
) -> None:
    """Write the page."""
    parts = parts_of(since)
    rows = np.unique(np.concatenate([np.zeros(0, np.intp), *(part.rows for part in parts)]))
    cards = make_cards(rows, crawl, correction, pictures=pictures)
    for row, label in ((row, label) for part in parts for row, label in part.was.items()):
        text = f"Before: {clip(label)}. {cards[row].text}"
        cards[row] = dataclasses.replace(cards[row], text=text)
    gone = since.of(GONE).slice(0, MOST_LISTED)
    values = {
        "up": "", "heading": heading, "counts": since.counts, "parts_shown": parts,
        "cards": cards,
        "gone": list(zip(*(gone[n].to_pylist() for n in ("image", "label_before")), strict=True)),
    }  # fmt: skip
    write_page(folder / PAGE, PAGE, values)
