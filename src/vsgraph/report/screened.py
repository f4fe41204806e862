"""The page on copies, placeholders and flawed pictures."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.crawls.crawl import Crawl
from vsgraph.report.cards import make_cards
from vsgraph.report.pages import write_page
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction
from vsgraph.screening import Screening
from vsgraph.screening.screened import FLAWS

PAGE = "pictures.html"
MOST_GROUPS, MOST_COPIES, MOST_LABELS = 20, 6, 8
MOST_SHOWN = 24  # pictures with a flaw
PLACEHOLDER = "placeholder"
TITLES = {
    "broken": "Broken", "tiny": "Tiny", "dark": "Dark", "blank": "Blank", "blurred": "Blurred",
    "text": "Pages of text",
}  # fmt: skip
FEW = 10  # times smaller than the class in the middle


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Copies of one picture."""

    count: int
    rows: Rows  # those shown, the best first
    labels: list[tuple[str, int]]  # web labels, and how many copies have each


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Pictures that have something in common: groups of copies, or single ones."""

    name: str
    title: str
    count: int
    groups: list[Group]
    rows: Rows  # of single pictures


def parts_of(screening: Screening, crawl: Crawl, correction: Correction) -> list[Part]:
    """Return what the page shows, in its order; the largest groups, evenly spread pictures."""
    differing = screening.differing(crawl.labels_matrix())
    placeholder = screening.has(PLACEHOLDER)
    parts = [
        _copies(name, title, screening, mask, correction)
        for name, title, mask in (
            (PLACEHOLDER, "Placeholders: one picture under many labels", placeholder),
            ("differing", "Copies under several labels", differing & ~placeholder),
            ("copies", "Other copies", ~differing & ~placeholder),
        )
    ]
    for name in FLAWS[:-1]:
        rows = np.flatnonzero(screening.has(name))
        shown = rows[evenly_spread(len(rows), MOST_SHOWN)]
        parts.append(Part(name, TITLES[name], len(rows), [], shown))
    return [part for part in parts if part.count]


def _copies(
    name: str, title: str, screening: Screening, mask: np.ndarray, correction: Correction
) -> Part:
    """Return the largest groups of copies in a mask, which holds whole groups."""
    members = sorted(screening.members(mask), key=lambda rows: (-len(rows), rows[0]))
    groups = []
    for rows in members[:MOST_GROUPS]:
        labels = Counter(
            label for row in rows for label in correction.names_of(correction.web_labels[row])
        )
        groups.append(Group(len(rows), rows[:MOST_COPIES], labels.most_common(MOST_LABELS)))
    return Part(name, title, len(members), groups, np.zeros(0, np.intp))


def rows_of(parts: list[Part]) -> Rows:
    """Return all the images that the page shows."""
    lists = [part.rows for part in parts] + [g.rows for part in parts for g in part.groups]
    return np.unique(np.concatenate([np.zeros(0, np.intp), *lists]))


def balance(correction: Correction) -> list[str]:
    """Return how even the classes are, in lines: by web labels, and by final labels."""
    lines = []
    for title, labels in (("web", correction.web_labels), ("final", correction.final_labels)):
        numbers = np.nonzero(labels)[1] if labels.ndim == 2 else labels[labels >= 0]
        sizes = np.bincount(numbers, minlength=len(correction.class_names))
        middle = int(np.median(sizes))
        small = np.flatnonzero(sizes < middle / FEW)
        names = [correction.class_names[c] for c in small[np.argsort(sizes[small], kind="stable")]]
        few = f"; {len(small):,} less than a tenth of that: {', '.join(names[:MOST_LABELS])}"
        lines.append(
            f"By {title} labels, the largest class has {sizes.max():,} images, the smallest "
            f"{sizes.min():,}, the one in the middle {middle:,}{few if names else ''}."
        )
    return lines


def write_screened(
    folder: Path,
    parts: list[Part],
    crawl: Crawl,
    correction: Correction,
    *,
    heading: str,
    pictures: frozenset[int],
) -> None:
    """Write the page."""
    cards = make_cards(rows_of(parts), crawl, correction, pictures=pictures)
    values = {"up": "", "heading": heading, "parts_shown": parts, "cards": cards}
    write_page(folder / PAGE, PAGE, values)
