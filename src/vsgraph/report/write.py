"""Writes the report, a folder of pages that open from disk."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vsgraph.common.files import RECORD, REPORT, file_errors, new_folder, refuse_taken
from vsgraph.common.progress import bar
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.judge.purity import draw_purity, purity_curve
from vsgraph.judge.since import Since
from vsgraph.meanings.senses import Meaning
from vsgraph.report.cards import make_cards
from vsgraph.report.content import MOST_PAGES, Amounts, ClassContent, Gatherer
from vsgraph.report.map import CrawlMap, draw_map, map_data
from vsgraph.report.pages import copy_static, page_name, write_page
from vsgraph.report.screened import Part, balance, rows_of, write_screened
from vsgraph.report.screened import parts_of as screened_parts
from vsgraph.report.since import parts_of, write_since
from vsgraph.report.tallies import Tally
from vsgraph.report.thumbnails import write_pictures
from vsgraph.result.correction import Correction
from vsgraph.screening import Screening

PICTURE_BYTES = 22 * 10**6
MOST_LISTED = 5000
CURVE = "purity.svg"


@file_errors()
def write_report(
    folder: str | Path,
    crawl: Crawl,
    correction: Correction,
    meanings: Sequence[Meaning] = (),
    *,
    features: ArrayLike | None = None,
    since: Since | None = None,
    screening: Screening | None = None,
    heading: str,
    overwrite: bool = False,
    progress: bool = False,
) -> Path:
    """Write pages that show what a correction did, and why.

    Parameters
    ----------
    folder : path
        Where to write; the folder appears only when it is complete.
    crawl : Crawl
        The crawl that was corrected.
    correction : Correction
        Its correction, single-label or multi-label.
    meanings : sequence of Meaning
        The chosen ones describe the classes; may be empty.
    features : array of shape (n_images, d), optional
        For the map; may be mapped from disk, since only a sample is read.
    since : Since, optional
        What changed since an earlier result; it gets a page of its own.
    screening : Screening, optional
        Copies and flawed pictures; they get a page of their own.
    heading : str
        Title of the report.
    overwrite : bool
        Replace an earlier report.
    progress : bool
        Show progress bars.

    Returns
    -------
    page : Path
        The ``index.html`` to open.
    """
    folder = Path(folder)
    refuse_taken(folder, overwrite=overwrite, written_as=REPORT)
    _refuse_other(crawl, correction)
    if folder.exists() and crawl.root.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{folder} holds the crawl itself; choose another folder")
    n_pages = min(MOST_PAGES, len(crawl.class_names))
    amounts = Amounts.of(n_pages)
    drawn = draw_map(features, n_images=len(crawl), most=amounts.points)
    gatherer = Gatherer(crawl, correction, list(meanings), amounts)
    ranked = sorted(gatherer.labels.tallies(), key=lambda tally: (-tally.noise, tally.number))
    contents = []
    with bar(n_pages, "senses of classes", "class", progress=progress) as steps:
        for tally in ranked[:n_pages]:
            contents.append(gatherer.gather(tally))
            steps.update()
    with new_folder(folder, overwrite=overwrite, written_as=REPORT) as fresh:
        others = [part.rows for part in parts_of(since)] if since else []
        screened = screened_parts(screening, crawl, correction) if screening else []
        others.append(rows_of(screened))
        shown = np.unique(
            np.concatenate([drawn.rows, *(content.rows for content in contents), *others])
        )
        pictures = write_pictures(
            fresh / "pictures", crawl, shown, most_bytes=PICTURE_BYTES, progress=progress
        )
        found = screening.lines(crawl) if screening else []
        writer = _Writer(
            fresh, gatherer, pictures, heading, ranked, contents, since, screened, found
        )
        counts = correction.counts | {"unreadable": 0}
        if features is not None:
            counts = correction.counts_with(np.asanyarray(features))
        writer.write_index(drawn, counts, n_shown=len(shown))
        with bar(n_pages, "pages of classes", "page", progress=progress) as steps:
            for place in range(n_pages):
                writer.write_class(place)
                steps.update()
        record = {"format": REPORT, "images": len(crawl), "pictures": len(pictures)}
        (fresh / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
    return folder / "index.html"


def _refuse_other(crawl: Crawl, correction: Correction) -> None:
    """Refuse a correction of other images or classes."""
    for kind, one, other in (
        ("images", crawl, correction),
        ("classes", crawl.class_names, correction.class_names),
    ):
        if len(one) != len(other):
            raise InputError(
                f"the crawl has {len(one)} {kind} and the correction {len(other)}; pass the crawl "
                "that the correction was made from"
            )


@dataclasses.dataclass(eq=False)
class _Writer:
    """Writes the pages into a folder."""

    folder: Path
    gatherer: Gatherer
    pictures: frozenset[int]  # rows that have one
    heading: str
    ranked: list[Tally]  # of all classes
    contents: list[ClassContent]  # of the classes that have a page
    since: Since | None  # what changed since an earlier result
    screened: list[Part]  # copies and flawed pictures
    found: list[str]  # the same in words

    def __post_init__(self) -> None:
        self.correction = self.gatherer.correction
        self.names = self.correction.class_names
        numbers = [content.tally.number for content in self.contents]
        self.pages = {number: page_name(number, self.names[number]) for number in numbers}
        copy_static(self.folder / "files")
        (self.folder / "classes").mkdir()

    def write_index(self, drawn: CrawlMap, counts: dict[str, int], *, n_shown: int) -> None:
        """Write the first page, on the whole crawl, and those on what changed and on pictures."""
        correction, crawl = self.correction, self.gatherer.crawl
        if self.screened:
            write_screened(
                self.folder, self.screened, crawl, correction, heading=self.heading,
                pictures=self.pictures,
            )  # fmt: skip
        if self.since is not None:
            write_since(
                self.folder, self.since, crawl, correction, heading=self.heading,
                pictures=self.pictures,
            )  # fmt: skip
        data = map_data(
            drawn, crawl, correction, self.gatherer.labels,
            pages=self.pages, pictures=self.pictures,
        )  # fmt: skip
        unanchored = set(range(len(self.names))).difference(correction.anchors.classes.tolist())
        write_page(
            self.folder / "index.html",
            "index.html",
            {
                "up": "", "heading": self.heading, "names": self.names, "pages": self.pages,
                "n_images": len(crawl), "format": crawl.format, "counts": counts,
                "estimate": correction.estimate, "has_curve": self._draw_curve(),
                "is_checked": correction.is_checked,
                "is_doubted": correction.unwanted is not None,
                "tallies": self.ranked[:MOST_LISTED], "n_classes": len(self.names),
                "found": self.found, "has_pictures": bool(self.screened),
                "balance": balance(correction),
                "map": drawn, "map_data": data, "problems": crawl.problems.lines(),
                "n_unreadable": n_shown - len(self.pictures), "n_shown": n_shown,
                "settings": dataclasses.asdict(correction.settings),
                "weights": correction.evidence_weights,
                "recall": None if np.isnan(correction.graph_recall) else correction.graph_recall,
                "n_anchors": len(correction.anchors),
                "has_since": self.since is not None,
                "unanchored": [self.names[number] for number in sorted(unanchored)],
            },
        )  # fmt: skip

    def _draw_curve(self) -> bool:
        """Draw right labels by coverage, true ones if the crawl knows what its images show."""
        crawl = self.gatherer.crawl
        drawn = draw_purity(purity_curve(self.correction, crawl.truth, crawl.truth_known))
        (self.folder / "files" / CURVE).write_text(drawn, encoding="utf-8")
        return bool(drawn)

    def write_class(self, place: int) -> None:
        """Write the page of the class at a place in the ranking."""
        content = self.contents[place]
        number = content.tally.number
        cards = make_cards(
            content.rows, self.gatherer.crawl, self.correction, pictures=self.pictures
        )
        before, after = (
            self.contents[i].tally.number if 0 <= i < len(self.contents) else None
            for i in (place - 1, place + 1)
        )
        write_page(
            self.folder / "classes" / self.pages[number],
            "class.html",
            {
                "up": "../", "heading": self.heading, "names": self.names, "pages": self.pages,
                "name": self.names[number], "content": content, "tally": content.tally,
                "cards": cards, "before": before, "after": after, "place": place + 1,
                "n_classes": len(self.names),
            },
        )  # fmt: skip
