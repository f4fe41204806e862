"""The data card of an export: where its labels come from, what was changed, how sure they are."""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import label_matrix
from vsgraph.common.formatting import markdown_table, markdown_text, number, percent
from vsgraph.common.version import __version__
from vsgraph.exports.job import Job
from vsgraph.exports.names import one_line
from vsgraph.result.parts import Decision

CARD = "README.md"
BOUNDS = (1.0, 0.99, 0.95, 0.9, 0.75, 0.5, 0.0)  # of the confidence
MOST_CLASSES = 1000  # listed
HEAD = """---
configs:
- config_name: default
  data_files:
"""
ORIGIN = """\
The images were collected by search query or hashtag, and the query was their label (`web_label`).
vsgraph {version} read the text beside each image, matched it with the meaning of its label, and
compared images that look alike. It then kept the label, replaced it (`final_label`) or rejected the
image. No person looked at each image. The crawl was read as {format}: {n_crawl:,} images of
{n_classes:,} classes. The rights in the images are those of their sources.
"""


def write_card(job: Job) -> None:
    """Write ``README.md`` into the folder of an export."""
    exported, crawl = job.exported, job.crawl
    name = markdown_text(one_line(crawl.root.resolve().name))
    parts = [
        f"# {name}, labels corrected by vsgraph",
        f"{exported.n_images:,} images as {exported.to}.",
        "## Where the labels come from",
        ORIGIN.format(
            version=__version__, format=crawl.format, n_crawl=len(crawl),
            n_classes=len(job.class_names),
        ).strip(),
        "## What was changed",
        _changes(job),
        "## How sure the labels are",
        _sureness(job),
        "## Classes",
        _classes(job),
    ]  # fmt: skip
    text = "\n\n".join(parts) + "\n"
    (job.path / CARD).write_text(_head(job) + text, encoding="utf-8")


def _head(job: Job) -> str:
    """Return what tells ``datasets`` which file is which part."""
    if job.exported.to != "hf":
        return ""
    parts = [
        f"  - split: {part}\n    path: data/{part}-*.parquet\n" for part in job.parts or ("train",)
    ]
    return "".join([HEAD, *parts, "---\n"])


def _changes(job: Job) -> str:
    """Return a table of the decisions, in the crawl and here."""
    everywhere, here = job.correction.decisions, job.correction.decisions[job.rows]
    words = {"KEEP": "web label kept", "RELABEL": "label replaced", "REJECT": "rejected"}
    rows = [[words[d.name], int((everywhere == d).sum()), int((here == d).sum())] for d in Decision]
    return markdown_table(["", "of the crawl", "in this export"], rows)


def _sureness(job: Job) -> str:
    """Return the estimated share of right labels, and how the confidence is spread."""
    correction = job.correction
    rows = job.rows[correction.decisions[job.rows] != Decision.REJECT]
    confidence = correction.confidence[rows]
    lines = []
    estimate = job.exported.right
    if estimate is not None:
        lines += [
            f"By estimate, {percent(estimate)} of the labels in this export are right; of all web "
            f"labels of the crawl, {percent(float(correction.label_quality.mean()))}."
        ]
    lines += [
        "`confidence` is the probability that a final label is right, `quality` that a web label "
        "is. Both are estimates without truth."
        if estimate is not None
        else "`confidence` is the share of the final label in the scores, not a probability."
    ]
    spans = zip(BOUNDS[1:], BOUNDS[:-1], strict=True)
    counts = [[f"{low} to {high}", _n_between(confidence, low, high)] for low, high in spans]
    return "\n\n".join([" ".join(lines), markdown_table(["confidence", "images"], counts)])


def _n_between(values: NDArray[np.floating], low: float, high: float) -> int:
    """Count values from `low` to below `high`, 1 included."""
    return int(((values >= low) & ((values < high) | (high == 1))).sum())


def _classes(job: Job) -> str:
    """Return a table of the classes: images, how many came from other queries, confidence."""
    correction, rows = job.correction, job.rows
    given = label_matrix(correction.final_labels[rows], len(job.class_names))
    n_images = np.asarray(given.sum(axis=0))  # (n_classes,)
    moved = (correction.decisions[rows] == Decision.RELABEL) @ given
    mean = correction.confidence[rows] @ given / np.maximum(n_images, 1)
    cells = [
        [markdown_text(one_line(name)), int(n_images[c]), int(moved[c]),
         number(mean[c] if n_images[c] else None, ".2f")]
        for c, name in enumerate(job.class_names[:MOST_CLASSES])
    ]  # fmt: skip
    head = ["class", "images", "with a replaced label", "mean confidence"]
    more = len(job.class_names) - MOST_CLASSES
    return markdown_table(head, cells) + (f"\n\nand {more:,} more classes" if more > 0 else "")
