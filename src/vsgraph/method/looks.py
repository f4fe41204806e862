"""What images look like and how they are spoken of, on few axes, and what that tells of others."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import do_in_threads, in_threads, row_blocks
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.neighbors.sketch import principal_axes, rows_to_search

N_AXES = 256
RIDGE = 3.0

Indices = NDArray[np.integer[Any]]


@dataclasses.dataclass(frozen=True)
class Looks:
    """Pictures and texts on few axes, read by rows."""

    short: NDArray[np.float16]  # (n_images, n_looks)
    deviations: Floats  # (n_looks,), how much each may count when something is learned from them
    axes: tuple["Axes", ...]  # of pictures and of texts

    @classmethod
    def of(cls, kinds: Sequence[NDArray[Any]], deviations: Sequence[float]) -> "Looks":
        """Return pictures and texts on their own axes; each kind may count so much."""
        axes = tuple(map(find_axes, kinds))
        short = [turn(vectors) for turn, vectors in zip(axes, kinds, strict=True)]
        widths = [part.shape[1] for part in short]
        return cls(np.hstack(short), np.repeat(deviations, widths), axes)

    def of_others(self, kinds: Sequence[NDArray[Any]]) -> "Looks":
        """Return pictures and texts of other images on the same axes."""
        short = [turn(vectors) for turn, vectors in zip(self.axes, kinds, strict=True)]
        return dataclasses.replace(self, short=np.hstack(short))

    def __getitem__(self, rows: slice | Indices) -> Floats:
        return self.short[rows].astype(np.float32)


class Axes(NamedTuple):
    """Principal axes of vectors, and the mean of the vectors on them."""

    axes: Floats  # (n_dims, n_axes)
    mean: Floats  # (n_axes,)

    def __call__(self, vectors: NDArray[Any]) -> NDArray[np.float16]:
        """Return vectors on the axes, less the mean, of length one; zero stays zero."""
        rows = rows_to_search(vectors)
        short = np.empty((len(vectors), self.axes.shape[1]), np.float16)

        def turn(block: slice) -> None:
            there = (rows.scale[block] > 0)[:, None]
            turned = (rows.unit(block) @ self.axes).astype(np.float16)
            short[block] = unit_rows(np.where(there, turned - self.mean, 0))

        blocks = row_blocks(len(vectors), row_bytes=4 * vectors.shape[1], most=4096)
        do_in_threads(turn, blocks, title="looks", progress=False)
        return short


def find_axes(vectors: NDArray[Any]) -> Axes:
    """Find the principal axes of vectors, (n_images, n_dims), and their mean.

    >>> vectors = np.array([[2.0, 0], [0, 3], [0, 0]])
    >>> short = find_axes(vectors)(vectors)
    >>> (short @ short.T).round(1).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = rows_to_search(vectors)
    axes = principal_axes(rows, min(N_AXES, vectors.shape[1]))
    blocks = row_blocks(len(vectors), row_bytes=4 * vectors.shape[1], most=4096)
    total = sum(in_threads(lambda block: rows.unit(block).sum(axis=0, dtype=np.float64), blocks))
    mean = total / max(len(rows.alive), 1) @ axes
    return Axes(axes, np.asarray(mean, np.float32))


def left_out(looks: Looks | Floats, rows: Indices, values: Floats) -> Floats:
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
