"""Nearest neighbors by cosine, exact, a block of rows at a time."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from vsgraph.checks import Floats, check_at_least, check_matrix, unit_rows
from vsgraph.errors import InputError

BLOCK_BYTES = 64 * 2**20


def nearest_neighbors(
    features: ArrayLike, *, n_neighbors: int, progress: bool = False
) -> tuple[NDArray[np.intp], Floats]:
    """Find the rows most similar to each row by cosine, without the row itself.

    Every pair is compared, so the result is exact; time grows with the square of the number of
    rows and memory with the number of rows. A row of zeros is similar to none (cosine 0).

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        One vector an image; its length does not matter.
    n_neighbors : int
        ``k`` in the paper; must be below `n_images`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    neighbors : int array of shape (n_images, n_neighbors)
        Most similar first, ties by row.
    similarities : float array of shape (n_images, n_neighbors)
        Their cosines.

    Examples
    --------
    >>> neighbors, similarities = nearest_neighbors([[1, 0], [1, 0.1], [0, 1]], n_neighbors=1)
    >>> neighbors.ravel().tolist()
    [1, 0, 1]
    """
    unit = unit_rows(check_matrix("features", features))
    n_rows = len(unit)
    check_at_least("n_neighbors", n_neighbors, 1)
    if n_neighbors >= n_rows:
        raise InputError(
            f"n_neighbors must be below the number of images: got {n_neighbors} for {n_rows} "
            f"images; {'lower n_neighbors' if n_rows > 1 else 'one image alone has no neighbors'}"
        )
    neighbors = np.empty((n_rows, n_neighbors), np.intp)
    similarities = np.empty((n_rows, n_neighbors), unit.dtype)
    block = max(1, BLOCK_BYTES // (n_rows * unit.itemsize))
    for start in tqdm(range(0, n_rows, block), "neighbors", disable=not progress, leave=False):
        rows = slice(start, min(start + block, n_rows))
        scores = unit[rows] @ unit.T
        scores[np.arange(len(scores)), np.arange(rows.start, rows.stop)] = -np.inf
        neighbors[rows] = _top_columns(scores, n_neighbors)
        similarities[rows] = np.take_along_axis(scores, neighbors[rows], axis=1)
    return neighbors, np.clip(similarities, -1, 1)


def _top_columns(scores: NDArray[Any], n_top: int) -> NDArray[np.intp]:
    """Return the columns of each row's highest scores, best first, ties by column."""
    top = np.argpartition(scores, -n_top, axis=1)[:, -n_top:]
    last = np.take_along_axis(scores, top, axis=1).min(axis=1, keepdims=True)
    crowded = (scores >= last).sum(axis=1) > n_top  # a tie runs across the cut
    top[crowded] = np.argsort(-scores[crowded], axis=1, kind="stable")[:, :n_top]
    top.sort(axis=1)
    best_first = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.take_along_axis(top, best_first, axis=1)
