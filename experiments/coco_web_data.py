"""COCO-Web: real photos with captions, noisy labels with double meanings, and human truth.

The truth is for judging only; nothing here hands it to a method.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

AMBIGUOUS = 0.10  # a query with a larger share of wrong labels counts as ambiguous


@dataclasses.dataclass(frozen=True)
class CocoWeb:
    """The photos in the order of ``metadata.jsonl``."""

    images: list[Path]
    texts: list[str]
    web_labels: NDArray[np.intp]
    query_hits: NDArray[np.bool_]
    class_names: list[str]
    wnids: list[str]
    truth: NDArray[np.bool_]
    ambiguous_queries: NDArray[np.bool_]

    @property
    def in_set(self) -> NDArray[np.bool_]:
        """Photos that show at least one of the classes."""
        return self.truth.any(axis=1)

    @property
    def clean(self) -> NDArray[np.bool_]:
        """Photos whose web label is right."""
        return self.truth[np.arange(len(self.truth)), self.web_labels]

    @property
    def ambiguous(self) -> NDArray[np.bool_]:
        """Photos of the ambiguous queries."""
        return self.ambiguous_queries[self.web_labels]

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the photos; the ambiguous queries stay those of all."""
        return dataclasses.replace(
            self,
            images=[self.images[i] for i in rows],
            texts=[self.texts[i] for i in rows],
            web_labels=self.web_labels[rows],
            query_hits=self.query_hits[rows],
            truth=self.truth[rows],
        )

    def right(self, labels: NDArray[np.intp]) -> tuple[float, float]:
        """Return the share of right labels: all in-set photos, those of ambiguous queries."""
        hit = self.truth[np.arange(len(labels)), labels]
        return float(hit[self.in_set].mean()), float(hit[self.in_set & self.ambiguous].mean())


def read_coco_web(folder: Path, *, every: int = 1) -> CocoWeb:
    """Read the data set, or every so many-th photo of it."""
    classes = json.loads((folder / "classes.json").read_text())
    lines = (folder / "metadata.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[::every]]
    number = {name: i for i, name in enumerate(classes)}

    def matrix(key: str) -> NDArray[np.bool_]:
        table = np.zeros((len(rows), len(classes)), bool)
        for i, row in enumerate(rows):
            table[i, [number[name] for name in row.get(key, ()) if name in number]] = True
        return table

    web_labels, truth = np.array([number[row["web_label"]] for row in rows]), matrix("truth")
    wrong = ~truth[np.arange(len(rows)), web_labels]
    counts = [np.bincount(web_labels, weights=w, minlength=len(classes)) for w in (None, wrong)]
    return CocoWeb(
        images=[folder / row["file"] for row in rows],
        texts=[" ".join([row["title"], *row["description"]]) for row in rows],
        web_labels=web_labels,
        query_hits=matrix("query_hits"),
        class_names=list(classes),
        wnids=[entry["wnid"] for entry in classes.values()],
        truth=truth,
        ambiguous_queries=counts[1] / np.maximum(counts[0], 1) > AMBIGUOUS,
    )


def web_like(text: NDArray[Any], *, seed: int) -> NDArray[Any]:
    """Remove 40 % of the texts and exchange 20 % among each other."""
    order = np.random.default_rng(seed).permutation(len(text))
    missing, swapped = np.split(order[: int(0.6 * len(text))], [int(0.4 * len(text))])
    spoiled = text.copy()
    spoiled[missing] = 0
    spoiled[swapped] = text[np.roll(swapped, 1)]
    return spoiled
