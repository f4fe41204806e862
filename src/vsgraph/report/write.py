"""Writes the report: a folder of pages that opens from disk."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from vsgraph.common.files import RECORD, REPORT, new_folder, refuse_taken
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning
from vsgraph.report.cards import make_cards
from vsgraph.report.content import MOST_PAGES, Amounts, ClassContent, Gatherer
from vsgraph.report.map import CrawlMap, draw_map, map_data
from vsgraph.report.pages import copy_static, page_name, write_page
from vsgraph.report.tallies import Tally
from vsgraph.report.thumbnails import write_pictures
from vsgraph.result.correction import Correction

PICTURE_BYTES = 22 * 10**6
MOST_LISTED = 5000


def write_report(
    folder: str | Path,
    crawl: Crawl,
    correction: Correction,
    meanings: Sequence[Meaning] = (),
    *,
    features: ArrayLike | None = None,
    heading: str,
    overwrite: bool = False,
    progress: bool = False,
) -> Path:
    """Write pages that show what a correction did, and why.

    Parameters
    ----------
    folder : path
        Appears only when it is complete.
    crawl : Crawl
        What was corrected.
    correction : Correction
        What became of it, single-label or multi-label.
    meanings : sequence of Meaning
        The chosen ones describe the classes; may be empty.
    features : array of shape (n_images, d), optional
        For the map; may be mapped from disk, a sample is read.
    heading : str
        Title of the report.
    overwrite : bool
        Replace a report that is there already.
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
    ranked = sorted(gatherer.labels.tallies(), key=lambda tally: (-tally.changed, tally.number))
    contents = [
        gatherer.gather(tally) for tally in _bar(ranked[:n_pages], "senses of classes", progress)
    ]
    with new_folder(folder, overwrite=overwrite, written_as=REPORT) as fresh:
        shown = np.unique(np.concatenate([drawn.rows, *(content.rows for content in contents)]))
        pictures = write_pictures(
            fresh / "pictures", crawl, shown, most_bytes=PICTURE_BYTES, progress=progress
        )
        writer = _Writer(fresh, gatherer, pictures, heading, ranked, contents)
        counts = correction.counts | {"unreadable": 0}
        if features is not None:
            counts = correction.counts_with(np.asanyarray(features))
        n_unreadable = len(shown) - len(pictures)
        writer.write_index(drawn, counts, n_unreadable=n_unreadable, n_shown=len(shown))
        for place in _bar(range(n_pages), "pages of classes", progress):
            writer.write_class(place)
        record = {"format": REPORT, "images": len(crawl), "pictures": len(pictures)}
        (fresh / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
    return folder / "index.html"


def _bar(items: Sequence[Any], title: str, progress: bool) -> "tqdm[Any]":  # noqa: FBT001
    return tqdm(items, desc=title, disable=None if progress else True, leave=False)


def _refuse_other(crawl: Crawl, correction: Correction) -> None:
    """Refuse a correction of other images or classes."""
    if len(crawl) != len(correction):
        raise InputError(
            f"the crawl has {len(crawl)} images and the correction {len(correction)}; give the "
            "crawl that was corrected"
        )
    if len(crawl.class_names) != len(correction.class_names):
        raise InputError(
            f"the crawl has {len(crawl.class_names)} classes and the correction "
            f"{len(correction.class_names)}; give the crawl that was corrected"
        )


class _Writer:
    """Writes the pages into a folder."""

    def __init__(
        self,
        folder: Path,
        gatherer: Gatherer,
        pictures: frozenset[int],
        heading: str,
        ranked: list[Tally],
        contents: list[ClassContent],
    ) -> None:
        self.folder, self.gatherer, self.pictures = folder, gatherer, pictures
        self.heading, self.ranked, self.contents = heading, ranked, contents
        self.correction = gatherer.correction
        self.names = self.correction.class_names
        self.pages = {
            content.tally.number: page_name(content.tally.number, self.names[content.tally.number])
            for content in contents
        }
        copy_static(folder / "files")
        (folder / "classes").mkdir()

    def write_index(
        self, drawn: CrawlMap, counts: dict[str, int], *, n_unreadable: int, n_shown: int
    ) -> None:
        """Write the first page: the whole crawl."""
        correction, crawl = self.correction, self.gatherer.crawl
        data = map_data(
            drawn, crawl, correction, self.gatherer.labels,
            pages=self.pages, pictures=self.pictures,
        )  # fmt: skip
        settings = dataclasses.asdict(correction.settings)
        write_page(
            self.folder / "index.html",
            "index.html",
            {
                "up": "", "heading": self.heading, "names": self.names, "pages": self.pages,
                "n_images": len(crawl), "format": crawl.format, "counts": counts,
                "tallies": self.ranked[:MOST_LISTED], "n_classes": len(self.names),
                "map": drawn, "map_data": data, "problems": crawl.problems.lines(),
                "n_unreadable": n_unreadable, "n_shown": n_shown,
                "settings": settings, "weights": correction.evidence_weights,
                "recall": None if np.isnan(correction.graph_recall) else correction.graph_recall,
                "n_anchors": len(correction.anchors),
                "unanchored": self._without_anchors(),
            },
        )  # fmt: skip

    def _without_anchors(self) -> list[str]:
        """Return the names of classes that nothing was learned about."""
        lacking = np.setdiff1d(np.arange(len(self.names)), self.correction.anchors.classes)
        return [self.names[number] for number in lacking]

    def write_class(self, place: int) -> None:
        """Write the page of the class at a place in the ranking."""
        content = self.contents[place]
        number = content.tally.number
        crawl = self.gatherer.crawl
        cards = make_cards(content.rows, crawl, self.correction, pictures=self.pictures)
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
