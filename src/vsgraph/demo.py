"""The demo: draw a made-up crawl, correct its labels, write the record and a report."""

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.correct import correct
from vsgraph.correction import Correction
from vsgraph.made_up import MadeUpCrawl, make_crawl, picture_features, text_vectors
from vsgraph.report import write_report
from vsgraph.settings import Settings
from vsgraph.storage import refuse_file


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """What the demo did.

    Attributes
    ----------
    correction : Correction
        The result.
    right_before, right_after : float
        Share of images whose label is right, before and after; after, of those not rejected.
    rejected_rightly : float
        Share of the rejected images that show none of the classes.
    report : Path
        The page to open.
    """

    correction: Correction
    right_before: float
    right_after: float
    rejected_rightly: float
    report: Path


def run_demo(folder: Path, *, overwrite: bool = False, progress: bool = False) -> DemoResult:
    """Correct the made-up crawl and leave ``correction/`` and ``report.html`` in a folder.

    Parameters
    ----------
    folder : Path
        Where the results go.
    overwrite : bool
        Replace the results of an earlier demo.
    progress : bool
        Show progress bars.

    Returns
    -------
    result : DemoResult
        With accuracy before and after, since the truth of a made-up crawl is known.
    """
    refuse_file(folder)
    crawl = make_crawl()
    features = picture_features(crawl.pictures)
    texts, meanings = text_vectors(crawl.titles, crawl.descriptions)
    correction = correct(
        features, texts, meanings, crawl.web_labels,
        class_names=crawl.class_names, settings=Settings(anchors_per_class=10), progress=progress,
    )  # fmt: skip
    correction.save(folder / "correction", overwrite=overwrite)
    report = folder / "report.html"
    write_report(
        correction, report,
        pictures=lambda row: crawl.pictures[row], titles=crawl.titles,
        descriptions=crawl.descriptions, heading="A made-up crawl, corrected by vsgraph",
    )  # fmt: skip
    return DemoResult(correction, *_judge(crawl, correction.final_labels), report)


def _judge(crawl: MadeUpCrawl, final_labels: NDArray[np.intp]) -> tuple[float, float, float]:
    """Return the shares right before and after, and rejected rightly."""
    rejected = final_labels < 0
    return (
        float((crawl.web_labels == crawl.truth).mean()),
        float((final_labels == crawl.truth)[~rejected].mean()),
        float((crawl.truth[rejected] < 0).mean()) if rejected.any() else 1.0,
    )
