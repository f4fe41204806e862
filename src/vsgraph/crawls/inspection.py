"""A summary of a crawl, before anything long starts."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.picture_check import Pictures, check_pictures
from vsgraph.crawls.problems import one_line

SHOWN_CLASSES = 3
SHOWN_SOURCES = 10


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A crawl at a glance."""

    format: str  # as recognized
    n_images: int
    n_classes: int
    several_labels: bool  # whether images may have several
    smallest: dict[str, int]  # classes with the fewest images
    largest: dict[str, int]  # classes with the most images
    text_coverage: dict[str, float]  # share of images with each text field, and with any
    sources: dict[str, int]  # number of images from each
    pictures: Pictures  # which are missing, and how many of a sample cannot be read
    problems: list[str]  # one line per kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = dataclasses.asdict(self)
        values["pictures"] |= {"missing": len(self.pictures.missing)}
        return values

    def __str__(self) -> str:
        many = " (several labels per image)" if self.several_labels else ""
        coverage = ", ".join(f"{name} {share:.0%}" for name, share in self.text_coverage.items())
        pictures = self.pictures
        lines = [
            f"recognized as {self.format}",
            f"{self.n_images:,} images, {self.n_classes:,} classes{many}: "
            + " ... ".join(filter(None, map(_listed, (self.largest, self.smallest)))),
            f"text: {coverage}",
            f"pictures: {pictures.n_bytes / 1e9:.2f} GB, {len(pictures.missing):,} missing or "
            f"empty, {pictures.unreadable} of {pictures.sampled} decoded ones unreadable",
        ]
        if self.sources:
            lines.insert(2, f"sources: {_listed(self.sources)}")
        return "\n".join(lines + [f"problem: {line}" for line in self.problems])


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{one_line(name):.40} {count:,}" for name, count in counts.items())


def inspect_crawl(crawl: Crawl, *, every_picture: bool = False) -> Inspection:
    """Summarize a crawl: size, classes, share of images with text, missing pictures.

    A sample of the pictures is decoded; all of them with `every_picture`.
    """
    pictures = check_pictures(crawl, sample=None) if every_picture else check_pictures(crawl)
    counts = np.bincount(crawl.labels_matrix().indices, minlength=len(crawl.class_names))
    order = np.argsort(-counts, kind="stable")
    by_size = {crawl.class_names[c]: int(counts[c]) for c in order}
    n_shown = min(SHOWN_CLASSES, max(0, len(order) - SHOWN_CLASSES))
    return Inspection(
        format=crawl.format,
        n_images=len(crawl),
        n_classes=len(order),
        several_labels=crawl.has_several_labels,
        smallest=dict(list(by_size.items())[len(order) - n_shown :]),
        largest=dict(list(by_size.items())[:SHOWN_CLASSES]),
        text_coverage=text_coverage(crawl),
        sources=_source_counts(crawl),
        pictures=pictures,
        problems=crawl.problems.lines(),
    )


def text_coverage(crawl: Crawl) -> dict[str, float]:
    """Return the share of images that have each text field, and any text at all."""
    no = pa.scalar(value=False)
    has_text = {
        name: pc.fill_null(pc.not_equal(crawl.table[name], ""), no).to_numpy()
        for name in crawl.text_fields
    }
    has_text["any"] = np.logical_or.reduce([np.zeros(len(crawl), bool), *has_text.values()])
    return {name: float(rows.mean()) if len(rows) else 0.0 for name, rows in has_text.items()}


def _source_counts(crawl: Crawl) -> dict[str, int]:
    """Return the number of images from each of the most frequent sources."""
    if "source" not in crawl.table.column_names:
        return {}
    counts = pc.value_counts(crawl.table["source"]).to_pylist()
    ordered = sorted(counts, key=lambda entry: -entry["counts"])
    return {str(entry["values"]): entry["counts"] for entry in ordered[:SHOWN_SOURCES]}
