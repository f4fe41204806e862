"""What images look like and how they are spoken of, on few axes, and what that tells of others."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, rows_to_search

N_AXES = 256  # of pictures, and of texts
RIDGE = 3.0

Indices = NDArray[np.integer[Any]]


@dataclasses.dataclass(frozen=True)
class Axes:
    """Vectors on their principal axes, less their mean, scaled to length one; read by rows."""

    rows: Rows
    axes: Singles  # (n_dims, n_axes)
    mean: Singles  # (n_axes,)

    @classmethod
    def of(cls, vectors: NDArray[Any]) -> "Axes":
        """Find the axes of vectors, (n_images, n_dims)."""
        rows = rows_to_search(vectors)
        axes = principal_axes(rows, min(N_AXES, vectors.shape[1]))
        total = np.zeros(vectors.shape[1])
        for block in row_blocks(len(vectors), row_bytes=4 * vectors.shape[1]):
            total += rows.unit(block).sum(axis=0, dtype=np.float64)
        return cls(rows, axes, (total @ axes / max(len(rows.alive), 1)).astype(np.float32))

    def __getitem__(self, rows: slice | Indices) -> Singles:
        there = (self.rows.scale[rows] > 0)[:, None]
        return unit_rows(np.where(there, self.rows.unit(rows) @ self.axes - self.mean, 0))


@dataclasses.dataclass(frozen=True)
class Looks:
    """What images look like and how they are spoken of, (n_images, n_looks), read by rows."""

    pictures: Axes
    texts: Axes

    def __getitem__(self, rows: slice | Indices) -> Singles:
        return np.hstack([self.pictures[rows], self.texts[rows]])

    @property
    def lengths(self) -> tuple[int, int]:
        """How many numbers stand for a picture, and for a text."""
        return self.pictures.axes.shape[1], self.texts.axes.shape[1]


def left_out(looks: Looks | Singles, rows: Indices, values: Floats) -> Floats:
    """Return the value of each row as a ridge regression on the other rows has it.

    >>> looks = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    >>> left_out(looks, np.arange(6), np.array([1.0, 0, 1, 0, 0, 0])).round(1).tolist()
    [0.5, 0.5, 0.5, 0.2, 0.2, 0.2]
    """
    n_looks = looks[rows[:1]].shape[1]
    blocks = [rows[block] for block in row_blocks(len(rows), row_bytes=8 * n_looks)]
    mean, middle = sum(looks[b].sum(axis=0) for b in blocks) / len(rows), values.mean()
    moment, slope = RIDGE * np.eye(n_looks), np.zeros(n_looks)
    left = np.split(values - middle, np.cumsum([len(b) for b in blocks])[:-1])
    for block, value in zip(blocks, left, strict=True):
        part = looks[block] - mean
        moment += part.T @ part
        slope += part.T @ value
    inverse = np.linalg.inv(moment)
    told = []
    for block, value in zip(blocks, left, strict=True):
        part = looks[block] - mean
        own = np.einsum("ij,ij->i", part @ inverse, part)
        told.append(middle + (part @ (inverse @ slope) - own * value) / (1 - own))
    return np.concatenate(told)
