"""From approximate neighbors to exact ones, by ruling out all other pairs.

A pair matters only if its cosine reaches that of the last neighbor of either row. The product of
two sketches bounds the cosine from above. It is computed once per pair, and the cosine itself only
for the few pairs that pass.
"""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import Arrays, map_rows, row_blocks
from vsgraph.neighbors import kernels
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, sketch

ROUNDING = np.float32(2e-5)  # how far single precision may put a bound below the cosine
TILE = 1024
SAMPLE = 1024
STEP = 64
FULL_COST = 8  # per dimension, a single cosine costs this many times one within a block


def rule_out_others(
    rows: Rows, neighbors: NDArray[np.int32], similarities: Singles, *, progress: bool
) -> None:
    """Insert all missing neighbors into sorted lists of shape (n_images, n_neighbors), in place."""
    axes = principal_axes(rows, rows.features.shape[1])
    n_axes = cheapest_length(rows, axes, similarities[:, -1])
    bounds = sketch(rows, np.ascontiguousarray(axes[:, :n_axes]), share=1, progress=progress)
    raw = rows.raw

    tiles = row_blocks(len(bounds), most=TILE)

    def survivors(one: slice) -> Arrays:
        found = [
            kernels.surviving_pairs(
                bounds[one] @ bounds[two].T + ROUNDING, rows.alive[one], rows.alive[two],
                one == two, similarities[:, -1], raw, rows.scale,
            )
            for two in tiles[one.start // TILE :]
        ]  # fmt: skip
        pairs, cosines = map(np.concatenate, zip(*found, strict=True))
        return pairs, cosines

    for near, cosines in map_rows(survivors, tiles, title="all pairs", progress=progress):
        kernels.insert_pairs(near, cosines, similarities, neighbors)


def cheapest_length(rows: Rows, axes: Singles, needed: Singles, *, most: int | None = None) -> int:
    """Return the length of sketch at which bounds and remaining cosines cost the least."""
    some = rows.alive[:: max(1, len(rows.alive) // SAMPLE)][:SAMPLE]
    turned = rows.unit(some) @ axes
    least = np.minimum(needed[some][:, None], needed[some]) - ROUNDING
    cut_off = np.sqrt(np.maximum(1 - np.cumsum(turned**2, axis=1), 0))
    lengths = np.unique([*range(STEP, len(axes), STEP), len(axes)])
    lengths = lengths[lengths <= max(most or len(axes), lengths[0])]
    costs = []
    for length in lengths:
        cut = cut_off[:, length - 1]
        bound = turned[:, :length] @ turned[:, :length].T + np.outer(cut, cut)
        costs.append(length + (bound >= least).mean() * FULL_COST * len(axes))
    return int(lengths[np.argmin(costs)])
