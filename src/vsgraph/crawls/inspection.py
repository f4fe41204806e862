"""What a crawl is, before anything long starts."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.picture_check import Pictures, check_pictures
from vsgraph.crawls.problems import one_line

SHOWN_CLASSES = 3


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A crawl at a glance.

    Attributes
    ----------
    format : str
        What it was recognized as.
    n_images, n_classes : int
        Its size.
    several_labels : bool
        Whether images may have several labels.
    smallest, largest : dict of str to int
        Classes with the fewest and most images.
    text_coverage : dict of str to float
        Share of images with each text field, and with any text.
    sources : dict of str to int
        Images a source.
    pictures : Pictures
        Which are missing, and how many of a sample cannot be read.
    problems : list of str
        What was wrong, a line a kind.
    """

    format: str
    n_images: int
    n_classes: int
    several_labels: bool
    smallest: dict[str, int]
    largest: dict[str, int]
    text_coverage: dict[str, float]
    sources: dict[str, int]
    pictures: Pictures
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        values = dataclasses.asdict(self)
        values["pictures"] |= {"missing": len(self.pictures.missing)}
        return values

    def __str__(self) -> str:
        many = " (several labels an image)" if self.several_labels else ""
        coverage = ", ".join(f"{name} {share:.0%}" for name, share in self.text_coverage.items())
        found = self.pictures
        lines = [
            f"recognized as {self.format}",
            f"{self.n_images:,} images, {self.n_classes:,} classes{many}: "
            + " ... ".join(filter(None, map(_listed, (self.largest, self.smallest)))),
            f"text: {coverage}",
            f"pictures: {found.n_bytes / 1e9:.2f} GB, {len(found.missing):,} missing or empty, "
            f"{found.unreadable} of {found.sampled} decoded ones unreadable",
        ]
        if self.sources:
            lines.insert(2, f"sources: {_listed(self.sources)}")
        return "\n".join(lines + [f"problem: {line}" for line in self.problems])


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{one_line(name):.40} {count:,}" for name, count in counts.items())


def inspect_crawl(crawl: Crawl, *, every_picture: bool = False) -> Inspection:
    """Say what a crawl is: size, classes, how many have text, which pictures are missing.

    Parameters
    ----------
    crawl : Crawl
        What :func:`~vsgraph.crawls.formats.read_crawl` returned.
    every_picture : bool
        Decode all pictures instead of a sample.

    Returns
    -------
    inspection : Inspection
        Print it, or read its fields.
    """
    pictures = check_pictures(crawl, sample=None) if every_picture else check_pictures(crawl)
    counts = _class_counts(crawl)
    order = np.argsort(-counts, kind="stable")
    names = crawl.class_names
    largest = {names[c]: int(counts[c]) for c in order[:SHOWN_CLASSES]}
    rest = order[SHOWN_CLASSES:][-SHOWN_CLASSES:]
    return Inspection(
        format=crawl.format,
        n_images=len(crawl),
        n_classes=len(names),
        several_labels=crawl.has_several_labels,
        smallest={names[c]: int(counts[c]) for c in rest},
        largest=largest,
        text_coverage=text_coverage(crawl),
        sources=_source_counts(crawl),
        pictures=pictures,
        problems=crawl.problems.lines(),
    )


def _class_counts(crawl: Crawl) -> Any:  # noqa: ANN401
    """Return how many images each class has."""
    column = crawl.table["web_labels"]
    flat = pc.list_flatten(column) if crawl.has_several_labels else column
    return np.bincount(flat.to_numpy(), minlength=len(crawl.class_names))


def text_coverage(crawl: Crawl) -> dict[str, float]:
    """Return the share of images that have each text field, and any text at all."""
    there = {name: _filled(crawl, name) for name in crawl.text_fields}
    nothing = np.zeros(len(crawl), bool)
    any_text = np.logical_or.reduce([nothing, *there.values()])
    return {name: float(has.mean()) for name, has in there.items()} | {
        "any": float(any_text.mean())
    }


def _filled(crawl: Crawl, name: str) -> Any:  # noqa: ANN401
    """Return which images have something in a text field."""
    return pc.fill_null(pc.not_equal(crawl.table[name], ""), pa.scalar(value=False)).to_numpy()


def _source_counts(crawl: Crawl) -> dict[str, int]:
    """Return how many images come from each source."""
    if "source" not in crawl.table.column_names:
        return {}
    counts = pc.value_counts(crawl.table["source"]).to_pylist()
    ordered = sorted(counts, key=lambda entry: -entry["counts"])
    return {str(entry["values"]): entry["counts"] for entry in ordered[:10]}
