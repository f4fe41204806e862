"""Short vectors that stand for long ones in the neighbor search.

A row is rotated onto the principal axes of the features and cut to the first few. The length of the
rest is kept as one more number. The inner product of two sketches is then an upper bound of the
cosine (by Cauchy-Schwarz on the rest), or an estimate of it if `share` is below one.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import (
    Arrays,
    as_floats,
    fill_rows,
    in_threads,
    row_blocks,
    row_lengths,
)
from vsgraph.common.checks import unit_rows

SAMPLE = 2**13
LARGEST = 1e15  # length of a row, and one over the smallest
TURNS = 4
ROUNDING = 1e-5  # how much single precision may lengthen the kept part of a row of length one

Singles = NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Features to search, with what scales them to length one."""

    features: NDArray[Any]  # (n_images, n_dims), fp16 or float32, may be mapped
    scale: Singles  # (n_images,), one over each row's length; zero for a row of zeros
    alive: NDArray[np.int32]  # rows that are not zero

    @property
    def raw(self) -> NDArray[Any]:
        """The features for the compiled loops: fp16 as its bits."""
        plain = np.asarray(self.features)
        return plain.view(np.uint16) if plain.dtype == np.float16 else plain

    def unit(self, rows: slice | NDArray[np.integer[Any]]) -> Singles:
        """Return rows scaled to length one."""
        block = np.array(self.features[rows], np.float32)
        block *= self.scale[rows][:, None]
        return block


def rows_to_search(features: NDArray[Any]) -> Rows:
    """Return features, (n_images, n_dims), with the lengths of their rows.

    Rows that single precision cannot multiply are scaled to length one before, in a copy.
    """
    length = row_lengths(features)
    alive = np.flatnonzero(length > 0).astype(np.int32)
    if len(alive) and (length.max() > LARGEST or length[alive].min() < 1 / LARGEST):
        features = unit_rows(as_floats(features)).astype(np.float32)
        length = np.where(length > 0, 1.0, 0.0)
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    return Rows(features, scale.astype(np.float32), alive)


def principal_axes(rows: Rows, n_axes: int) -> Singles:
    """Return the main directions of a sample of rows as columns, (n_dims, n_axes), widest first.

    Few axes are found by power iteration, many exactly. In both cases they are orthogonal, which
    the bound of a cosine requires.
    """
    random = np.random.default_rng(0)
    n_sample = min(SAMPLE, len(rows.alive))
    sample = rows.unit(np.sort(random.choice(rows.alive, n_sample, replace=False)))
    moment = (sample.T @ sample).astype(np.float64)
    if 2 * n_axes > len(moment):
        spread, axes = np.linalg.eigh(moment)
        return np.ascontiguousarray(axes[:, np.argsort(-spread)[:n_axes]], dtype=np.float32)
    axes = random.normal(size=(len(moment), n_axes))
    for _ in range(TURNS):
        axes = np.linalg.qr(moment @ axes)[0]
    return np.ascontiguousarray(axes, dtype=np.float32)


def rotate(rows: Rows, axes: Singles, some: NDArray[np.intp]) -> Singles:
    """Return some rows, scaled to length one, on the axes, (n_some, n_axes)."""
    blocks = row_blocks(len(some), row_bytes=4 * len(axes), most=4096)
    return np.concatenate(list(in_threads(lambda block: rows.unit(some[block]) @ axes, blocks)))


def sketch(rows: Rows, axes: Singles, *, share: float, progress: bool = False) -> Singles:
    """Return the sketch of every row that is alive, (n_alive, n_axes + 1), on some axes.

    `share` is how much of the rest two rows are assumed to have in common: one gives a bound.
    """

    def shorten(block: slice) -> Arrays:
        turned = rows.unit(rows.alive[block]) @ axes
        kept = np.einsum("ij,ij->i", turned, turned)
        rest = np.sqrt(share * (np.maximum(1 - kept, 0) + ROUNDING))
        return (np.column_stack([turned, rest]).astype(np.float32),)

    blocks = row_blocks(len(rows.alive), row_bytes=4 * len(axes), most=4096)
    (short,) = fill_rows(shorten, blocks, title="sketch", progress=progress)
    return short
