"""From approximate neighbors to exact ones, by ruling out all other pairs.

A pair matters only if its cosine reaches the last neighbor of either row. The product of two
sketches bounds the cosine from above; it is computed for every pair, once for both rows, and the
few pairs that pass are computed in full.
"""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import in_threads, row_blocks
from vsgraph.neighbors import kernels
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, sketch

ROUNDING = np.float32(2e-5)  # how far single precision may put a bound below the cosine
TILE = 1024
SAMPLE = 1024
STEP = 64
FULL_COST = 8  # a cosine in full costs so much more a dimension than one among a block's

Tiles = tuple[slice, slice]


def rule_out_others(
    rows: Rows,
    neighbors: NDArray[np.int32],
    similarities: Singles,
    *,
    progress: bool = False,
) -> None:
    """Put into the lists, in place, every neighbor that they lack.

    Parameters
    ----------
    rows : Rows
        The features.
    neighbors, similarities : arrays of shape (n_images, n_neighbors)
        Sorted lists with cosines from the full features; the better they are, the faster.
    progress : bool
        Show a progress bar.
    """
    axes = principal_axes(rows, rows.features.shape[1])
    n_axes = _cheapest_length(rows, axes, similarities[:, -1])
    bounds = sketch(rows, np.ascontiguousarray(axes[:, :n_axes]), share=1, progress=progress)
    raw = rows.raw

    def survivors(tiles: Tiles) -> tuple[NDArray[np.int32], Singles]:
        one, two = tiles
        return kernels.surviving_pairs(
            bounds[one] @ bounds[two].T + ROUNDING, rows.alive[one], rows.alive[two],
            one == two, similarities[:, -1], raw, rows.scale,
        )  # fmt: skip

    tiles = row_blocks(len(bounds), most=TILE)
    pairs = [(one, two) for i, one in enumerate(tiles) for two in tiles[i:]]
    for found, cosines in in_threads(survivors, pairs, title="all pairs", progress=progress):
        kernels.insert_pairs(found, cosines, similarities, neighbors)


def _cheapest_length(rows: Rows, axes: Singles, needed: Singles) -> int:
    """Return the length of sketch at which bounds and the cosines they let pass cost the least."""
    some = rows.alive[:: max(1, len(rows.alive) // SAMPLE)][:SAMPLE]
    turned = rows.unit(some) @ axes
    least = np.minimum(needed[some][:, None], needed[some]) - ROUNDING
    cut_off = np.sqrt(np.maximum(1 - np.cumsum(turned**2, axis=1), 0))
    lengths = np.unique([*range(STEP, len(axes), STEP), len(axes)])
    costs = []
    for length in lengths:
        cut = cut_off[:, length - 1]
        bound = turned[:, :length] @ turned[:, :length].T + np.outer(cut, cut)
        costs.append(length + (bound >= least).mean() * FULL_COST * len(axes))
    return int(lengths[np.argmin(costs)])
