"""How near texts come to the classes, on a scale that does not depend on the encoder."""

import dataclasses
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import Arrays, as_floats, evenly_spread, map_rows, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.result.parts import Anchors

PRIOR_IMAGES = 5  # what the mean of all classes counts for in the mean of one
SAMPLE = 4096

Indices = NDArray[np.integer[Any]]


class Texts(Protocol):
    """Text vectors that are read by rows: an array, or the texts around each image."""

    def __getitem__(self, rows: Any, /) -> Any: ...  # noqa: ANN401


@dataclasses.dataclass(frozen=True)
class Scale:
    """A cosine on a scale from 0, a text of another class, to 1, the typical text of an anchor."""

    zero: float
    one: float

    def __call__(self, cosines: Floats) -> Floats:
        """Put cosines on the scale; all of them are 0 if anchors' texts are no nearer."""
        if not self.one > self.zero:
            return np.zeros_like(cosines)
        return (cosines - self.zero) / (self.one - self.zero)


def find_scale(texts: Texts, labels: csr_array, vectors: Floats, anchors: Anchors) -> Scale:
    """Find the scale of the cosines between texts and vectors of classes."""
    classes = unit_rows(vectors)
    sample = evenly_spread(labels.shape[0], SAMPLE)
    text = unit_rows(as_floats(np.asarray(texts[sample])))
    others = ~labels[sample].toarray().astype(bool) & filled_rows(text)[:, None]
    zero = float((text @ classes.T)[others].mean()) if others.any() else 0.0
    of_anchors = _own_cosines(texts, anchors.rows, anchors.classes, classes)
    has_text = ~np.isnan(of_anchors)
    return Scale(zero, float(np.median(of_anchors[has_text])) if has_text.any() else zero)


def class_means(values: Floats, columns: Indices, n_classes: int) -> Floats:
    """Return the mean of each class, drawn a little to that of all; NaN values are left out."""
    known = ~np.isnan(values)
    middle = float(values[known].mean()) if known.any() else 0.0
    sums = np.bincount(columns[known], values[known], n_classes)
    counts = np.bincount(columns[known], minlength=n_classes)
    return (sums + PRIOR_IMAGES * middle) / (counts + PRIOR_IMAGES)


def _own_cosines(texts: Texts, rows: Indices, columns: Indices, classes: Floats) -> Floats:
    """Return the cosines of texts and one class each; NaN without text."""

    def compare(block: slice) -> Arrays:
        text = unit_rows(as_floats(np.asarray(texts[rows[block]])))
        cosines = np.einsum("ij,ij->i", text, classes[columns[block]]).astype(np.float32)
        cosines[~filled_rows(text)] = np.nan
        return (cosines,)

    blocks = row_blocks(len(rows), row_bytes=8 * classes.shape[1])
    parts = [part for (part,) in map_rows(compare, blocks, title="own texts")]
    return np.concatenate([np.zeros(0, np.float32), *parts])
