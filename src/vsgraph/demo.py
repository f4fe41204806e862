"""The demo: draw a made-up crawl, correct its labels, write the record and a report."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from vsgraph.correct import correct
from vsgraph.correction import Correction
from vsgraph.crawls.record import Crawl
from vsgraph.made_up import MadeUpCrawl, make_crawl, picture_features, text_vectors
from vsgraph.meanings import Meaning
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
    """Correct the made-up crawl and leave ``crawl``, ``correction`` and ``report`` in a folder.

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
    told = zip(crawl.class_names, crawl.descriptions, strict=True)
    report = write_report(
        folder / "report", _write_crawl(crawl, folder / "crawl"), correction,
        [Meaning(name, None, words, chosen=True) for name, words in told], features=features,
        heading="A made-up crawl", overwrite=overwrite, progress=progress,
    )  # fmt: skip
    return DemoResult(correction, *_judge(crawl, correction.final_labels), report)


def _write_crawl(made: MadeUpCrawl, folder: Path) -> Crawl:
    """Write pictures and a table to a folder, and return them as a crawl."""
    from PIL import Image

    (folder / "images").mkdir(parents=True, exist_ok=True)
    names = [f"images/{row:04d}.png" for row in range(len(made.pictures))]
    for name, picture in zip(names, made.pictures, strict=True):
        Image.fromarray(picture).save(folder / name)
    labels = [made.class_names[label] for label in made.web_labels]
    table = pa.table({"image": names, "label": labels, "title": made.titles})
    csv.write_csv(table, folder / "metadata.csv")
    table = table.drop_columns("label").append_column(
        "web_labels", pa.array(made.web_labels, pa.int32())
    )
    return Crawl("a made-up crawl", folder, table, made.class_names, text_fields=("title",))


def _judge(crawl: MadeUpCrawl, final_labels: NDArray[np.intp]) -> tuple[float, float, float]:
    """Return the shares right before and after, and rejected rightly."""
    rejected = final_labels < 0
    return (
        float((crawl.web_labels == crawl.truth).mean()),
        float((final_labels == crawl.truth)[~rejected].mean()),
        float((crawl.truth[rejected] < 0).mean()) if rejected.any() else 1.0,
    )
