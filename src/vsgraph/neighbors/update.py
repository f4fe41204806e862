"""Neighbors after a crawl has changed a little: only what is new is searched for.

Rows that are new, and rows that lost a neighbor, are compared with all rows. The lists of the other
rows take in what is new and more similar than their last neighbor. As in the exact search, only
pairs that their sketches rule out are left out: the result is as exact as the earlier search.
"""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import Arrays, fill_rows, map_rows, row_blocks
from vsgraph.neighbors import kernels
from vsgraph.neighbors.exact import ROUNDING, TILE, cheapest_length
from vsgraph.neighbors.known import Known
from vsgraph.neighbors.lists import Candidates
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, sketch

N_CANDIDATES = 32  # by their sketches, to begin with
FEW = 128  # rows to start lists for at a time
SKETCH_BYTES = 3 * 10**9  # of all sketches together


def update_lists(rows: Rows, known: Known, *, progress: bool) -> tuple[NDArray[np.int32], Singles]:
    """Return neighbors and similarities, (n_images, n_neighbors).

    Empty places are marked as in :func:`~vsgraph.neighbors.lists.search_lists`.
    """
    neighbors, similarities = known.rows.copy(), known.similarities.copy()
    places = np.flatnonzero(known.to_search[rows.alive])  # among the rows alive
    axes = principal_axes(rows, rows.features.shape[1])
    most = max(256, SKETCH_BYTES // (4 * len(rows.alive)))
    n_axes = cheapest_length(rows, axes, np.maximum(similarities[:, -1], 0), most=most)
    bounds = sketch(rows, np.ascontiguousarray(axes[:, :n_axes]), share=1, progress=progress)
    if len(places):
        _start_lists(rows, bounds, places, neighbors, similarities)
        _rule_out(rows, bounds, places, neighbors, similarities, progress=progress)
    return neighbors, similarities


def _start_lists(
    rows: Rows,
    bounds: Singles,
    places: NDArray[np.intp],
    neighbors: NDArray[np.int32],
    similarities: Singles,
) -> None:
    """Fill the lists of some rows with those whose sketches are most like theirs."""
    raw = rows.raw

    def start(block: slice) -> Arrays:
        own, sought = places[block], bounds[places[block]]
        best = Candidates.none(len(own), min(N_CANDIDATES, len(bounds) - 1))
        for tile in row_blocks(len(bounds), most=TILE):
            scores = sought @ bounds[tile].T
            kernels.offer(scores, np.arange(len(own)), own, tile.start, best.values, best.ids)
        which, images = np.where(best.ids < 0, -1, rows.alive[best.ids]), rows.alive[own]
        near, cosines = neighbors[images], similarities[images]  # copies
        kernels.rank(raw, rows.scale, images, which, cosines, near)
        return near, cosines

    images = rows.alive[places]
    neighbors[images], similarities[images] = fill_rows(start, row_blocks(len(places), most=FEW))


def _rule_out(
    rows: Rows,
    bounds: Singles,
    places: NDArray[np.intp],
    neighbors: NDArray[np.int32],
    similarities: Singles,
    *,
    progress: bool,
) -> None:
    """Insert what is missing in the lists of some rows, and these rows in the lists of others."""
    needed = np.maximum(similarities[:, -1], 0)  # others are no edges of the graph
    raw = rows.raw

    def survivors(tile: slice) -> Arrays:
        found = []
        for block in row_blocks(len(places), most=TILE):
            own = places[block]
            scores = bounds[own] @ bounds[tile].T + ROUNDING
            here = (own >= tile.start) & (own < tile.stop)
            scores[np.flatnonzero(here), own[here] - tile.start] = -np.inf
            same = False
            found.append(kernels.surviving_pairs(
                scores, rows.alive[own], rows.alive[tile], same, needed, raw, rows.scale
            ))  # fmt: skip
        pairs, cosines = map(np.concatenate, zip(*found, strict=True))
        return pairs, cosines

    tiles = row_blocks(len(bounds), most=TILE)
    for near, cosines in map_rows(survivors, tiles, title="new neighbors", progress=progress):
        kernels.insert_pairs(near, cosines, similarities, neighbors)
