"""The nearest of other rows, such as those of new images, among the rows of a crawl."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import in_threads, row_blocks
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.neighbors.search import top_columns
from vsgraph.neighbors.sketch import Rows, Singles, rows_to_search

ROUNDING = 1e-5  # of cosines, which depends on what else is multiplied
MOST_ROWS = 2048  # of either side that are compared at a time


def neighbors_among(
    features: Floats, others: Floats, *, n_neighbors: int, needed: Singles, progress: bool = False
) -> csr_array:
    """Connect other rows with the rows of a crawl as its graph would, (n_others, n_images).

    A pair is connected, with its cosine as the weight, if the row is among the `n_neighbors` most
    similar to the other one, or if their cosine reaches `needed`, (n_images,), that of the row's
    own last neighbor. All pairs are compared.
    """
    rows = rows_to_search(features)
    parts = [
        _connect(rows, unit_rows(np.asarray(others[block], np.float32)), n_neighbors, needed,
                 progress=progress)
        for block in row_blocks(len(others), most=MOST_ROWS)
    ]  # fmt: skip
    counts = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    data, columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices")
    )
    return csr_array((data, columns, np.cumsum(counts)), (len(others), len(features)))


def _connect(
    rows: Rows, others: Floats, n_neighbors: int, needed: Singles, *, progress: bool
) -> csr_array:
    """Connect a block of other rows, of length one."""

    def compare(block: slice) -> tuple[NDArray[np.intp], Singles, csr_array]:
        cosines = (others @ rows.unit(block).T).astype(np.float32, copy=False)
        n_best = min(n_neighbors, cosines.shape[1])
        best = top_columns(cosines, n_best)
        reached = (cosines >= needed[block] - ROUNDING) & (cosines > 0)
        fans = csr_array(np.where(reached, cosines, 0))
        return best + block.start, np.take_along_axis(cosines, best, axis=1), fans

    blocks = row_blocks(len(rows.features), row_bytes=4 * rows.features.shape[1], most=MOST_ROWS)
    found = list(in_threads(compare, blocks, title="neighbors", progress=progress))
    columns, cosines = (np.hstack([part[i] for part in found]) for i in range(2))
    order = np.lexsort((columns, -cosines), axis=1)[:, :n_neighbors]
    near, weights = (np.take_along_axis(part, order, axis=1) for part in (columns, cosines))
    shape = (len(others), len(rows.features))
    owner = np.repeat(np.arange(len(others)), near.shape[1])
    nearest = csr_array((np.maximum(weights, 0).ravel(), (owner, near.ravel())), shape)
    starts = [block.start for block in blocks]
    fans = [part[2].tocoo() for part in found]
    reached = csr_array(
        (
            np.concatenate([part.data for part in fans]),
            (
                np.concatenate([part.row for part in fans]),
                np.concatenate([p.col + start for p, start in zip(fans, starts, strict=True)]),
            ),
        ),
        shape,
    )
    joined = csr_array(nearest.maximum(reached))
    joined.eliminate_zeros()
    return joined
