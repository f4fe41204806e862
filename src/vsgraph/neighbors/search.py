"""Nearest neighbors by cosine: exact, or approximate with a recall that is measured.

Three ways, one result:

- Few rows: all cosines of a block of rows at once.
- Exact, many rows: start from approximate neighbors; then a pair can only matter if its cosine
  reaches the last neighbor of either row. Sketches bound all cosines from above at a fraction of
  their cost, each pair once for both its rows, and the few pairs that pass are computed in full.
- Approximate: :mod:`vsgraph.neighbors.lists`.
"""

import dataclasses
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from vsgraph.common.blocks import as_floats
from vsgraph.common.checks import (
    Floats,
    check_at_least,
    check_fraction,
    check_matrix,
    check_one_of,
    unit_rows,
)
from vsgraph.errors import InputError, MissingExtraError, VSGraphWarning
from vsgraph.neighbors.sketch import rows_to_search
from vsgraph.settings import SEARCHES, Search

BLOCK_BYTES = 64 * 2**20
FEW_ROWS = 2**13
EXACT_UP_TO = 10**5
START_RECALL = 0.95
LARGEST = 1e15


@dataclasses.dataclass(frozen=True, eq=False)
class Neighbors:
    """The rows most like each row.

    Attributes
    ----------
    rows : int array of shape (n_images, n_neighbors)
        Most similar first, ties by row.
    similarities : float array of shape (n_images, n_neighbors)
        Their cosines.
    recall : float
        Share of the true neighbors that were found: 1 if the search was exact, else measured on a
        sample.

    Examples
    --------
    >>> nearest_neighbors([[1, 0], [1, 0.1], [0, 1]], n_neighbors=1).recall
    1.0
    """

    rows: NDArray[np.integer[Any]]
    similarities: Floats
    recall: float


def nearest_neighbors(
    features: ArrayLike,
    *,
    n_neighbors: int,
    search: Search = "auto",
    recall: float = 0.99,
    progress: bool = False,
) -> Neighbors:
    """Find the rows most similar to each row by cosine, without the row itself.

    A row of zeros is similar to none (cosine 0).

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        One vector an image; its length does not matter. May be mapped from disk, fp16 or float32;
        it is read in blocks and not copied.
    n_neighbors : int
        ``k`` in the paper; must be below `n_images`.
    search : {'auto', 'exact', 'approximate'}
        'auto' is exact up to 100,000 rows.
    recall : float
        Share of the true neighbors that the approximate search is to find; it is measured on a
        sample, and the search widened until it does. One makes it exact.
    progress : bool
        Show progress bars.

    Returns
    -------
    neighbors : Neighbors
        Rows, cosines and the recall.

    Examples
    --------
    >>> nearest_neighbors([[1, 0], [1, 0.1], [0, 1]], n_neighbors=1).rows.ravel().tolist()
    [1, 0, 1]
    """
    given = check_matrix("features", features, keep_half=True)
    check_at_least("n_neighbors", n_neighbors, 1)
    check_one_of("search", search, SEARCHES)
    check_fraction("recall", recall)
    if n_neighbors >= len(given):
        raise InputError(
            f"n_neighbors must be below the number of images: got {n_neighbors} for {len(given)} "
            f"images; {'lower n_neighbors' if len(given) > 1 else 'one image has no neighbors'}"
        )
    if len(given) <= FEW_ROWS and search != "approximate":
        return _compare_all(given, n_neighbors, progress=progress)
    exact = is_exact(len(given), search, recall)
    try:
        return _search(given, n_neighbors, exact=exact, recall=recall, progress=progress)
    except MissingExtraError as error:
        if not exact:
            raise
        warnings.warn(f"all pairs are compared the slow way; {error}", VSGraphWarning, stacklevel=2)
        return _compare_all(given, n_neighbors, progress=progress)


def is_exact(n_rows: int, search: Search, recall: float) -> bool:
    """Return whether a search compares all pairs.

    >>> is_exact(10**6, "auto", 0.99), is_exact(10**5, "auto", 0.99), is_exact(10**6, "auto", 1)
    (False, True, True)
    """
    return search == "exact" or recall == 1 or (search == "auto" and n_rows <= EXACT_UP_TO)


def _compare_all(features: Floats, n_neighbors: int, *, progress: bool) -> Neighbors:
    """Compare every pair the plain way."""
    unit = unit_rows(as_floats(features))
    n_rows = len(unit)
    neighbors = np.empty((n_rows, n_neighbors), np.intp)
    similarities = np.empty((n_rows, n_neighbors), unit.dtype)
    block = max(1, BLOCK_BYTES // (n_rows * unit.itemsize))
    for start in tqdm(
        range(0, n_rows, block), "neighbors", disable=None if progress else True, leave=False
    ):
        rows = slice(start, min(start + block, n_rows))
        scores = unit[rows] @ unit.T
        scores[np.arange(len(scores)), np.arange(rows.start, rows.stop)] = -np.inf
        neighbors[rows] = _top_columns(scores, n_neighbors)
        similarities[rows] = np.take_along_axis(scores, neighbors[rows], axis=1)
    return Neighbors(neighbors, np.clip(similarities, -1, 1), 1.0)


def _top_columns(scores: NDArray[Any], n_top: int) -> NDArray[np.intp]:
    """Return the columns of each row's highest scores, best first, ties by column."""
    top = np.argpartition(scores, -n_top, axis=1)[:, -n_top:]
    last = np.take_along_axis(scores, top, axis=1).min(axis=1, keepdims=True)
    crowded = (scores >= last).sum(axis=1) > n_top  # a tie runs across the cut
    top[crowded] = np.argsort(-scores[crowded], axis=1, kind="stable")[:, :n_top]
    top.sort(axis=1)
    best_first = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.take_along_axis(top, best_first, axis=1)


def _search(
    features: Floats, n_neighbors: int, *, exact: bool, recall: float, progress: bool
) -> Neighbors:
    """Search among many rows, by sketches."""
    try:
        from vsgraph.neighbors.exact import (
            rule_out_others,  # compiled at first use, so not for a few rows
        )
        from vsgraph.neighbors.lists import search_lists
    except ImportError as error:
        raise MissingExtraError("a search among many rows", "scale") from error
    rows = rows_to_search(features if features.dtype.itemsize <= 4 else _short_singles(features))
    reach = rows.scale[rows.alive]
    if len(reach) and (reach.max() > LARGEST or reach.min() < 1 / LARGEST):
        rows = rows_to_search(_short_singles(features))
    if len(rows.alive) <= FEW_ROWS:
        return _fill_up(*_compare_alive(rows.features, rows.alive, n_neighbors), rows.alive, 1.0)
    wanted = START_RECALL if exact else recall
    found, similarities, reached = search_lists(
        rows, n_neighbors=n_neighbors, recall=wanted, progress=progress
    )
    if exact:
        rule_out_others(rows, found, similarities, progress=progress)
        reached = 1.0
    return _fill_up(found, similarities, rows.alive, reached)


def _short_singles(features: Floats) -> NDArray[np.float32]:
    """Return a copy in float32, scaled to length one."""
    return unit_rows(as_floats(features)).astype(np.float32)


def _compare_alive(
    features: Floats, alive: NDArray[np.int32], n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Compare the few rows that are not zero with each other."""
    shape = (len(features), n_neighbors)
    found, similarities = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
    n_found = min(n_neighbors, len(alive) - 1)
    if n_found > 0:
        among = _compare_all(np.asarray(features[alive]), n_found, progress=False)
        found[alive, :n_found] = alive[among.rows]
        similarities[alive, :n_found] = among.similarities
    return found, similarities


def _fill_up(
    found: NDArray[np.int32],
    similarities: NDArray[np.float32],
    alive: NDArray[np.int32],
    recall: float,
) -> Neighbors:
    """Let rows of zeros, which have cosine 0 with all, take the places left and those below 0."""
    n_rows, n_neighbors = found.shape
    dead = np.ones(n_rows, bool)
    dead[alive] = False
    others = {True: np.arange(min(n_rows, n_neighbors + 1)), False: np.flatnonzero(dead)}
    open_rows = np.flatnonzero(dead | (similarities[:, -1] < 0))
    for row in open_rows:
        extra = others[bool(dead[row])][: n_neighbors + 1]
        extra = extra[extra != row]
        ids = np.concatenate([found[row][found[row] >= 0], extra])
        cosines = np.concatenate([similarities[row][found[row] >= 0], np.zeros(len(extra))])
        best = np.lexsort((ids, -cosines))[:n_neighbors]
        found[row], similarities[row] = ids[best], cosines[best]
    return Neighbors(found, np.clip(similarities, -1, 1), recall)
