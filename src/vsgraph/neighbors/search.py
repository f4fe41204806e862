"""Nearest neighbors by cosine: exact, or approximate with a measured recall.

- Few rows: all cosines of a block of rows at once.
- Approximate: :mod:`vsgraph.neighbors.lists`.
- Exact, many rows: start from approximate neighbors and rule out all other pairs,
  :mod:`vsgraph.neighbors.exact`.
- After a small change: search only for what is new, :mod:`vsgraph.neighbors.update`.
"""

import dataclasses
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vsgraph.common.blocks import as_floats, row_blocks
from vsgraph.common.checks import (
    Floats,
    check_at_least,
    check_fraction,
    check_matrix,
    check_one_of,
    unit_rows,
)
from vsgraph.common.progress import bar
from vsgraph.errors import InputError, MissingExtraError, VSGraphWarning
from vsgraph.neighbors.known import Known
from vsgraph.neighbors.sketch import rows_to_search
from vsgraph.settings import SEARCHES, Search

FEW_ROWS = 2**13
EXACT_UP_TO = 10**5
START_RECALL = 0.95
FEW_TO_UPDATE = FEW_ROWS  # so few are compared at once
MOST_CHANGED = 0.2  # of all rows; else a whole search is quicker


@dataclasses.dataclass(frozen=True, eq=False)
class Neighbors:
    """The rows most similar to each row.

    Attributes
    ----------
    rows : int array of shape (n_images, n_neighbors)
        Most similar first, ties by row.
    similarities : float array of shape (n_images, n_neighbors)
        Their cosines.
    recall : float
        Share of the true neighbors that were found: 1 if the search was exact, otherwise measured
        on a sample.

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

    A row of zeros has a cosine of 0 with all rows.

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        One vector of any length per image. It may be mapped from disk, in fp16 or float32; it is
        read in blocks and not copied.
    n_neighbors : int
        ``k`` in the paper; must be below `n_images`.
    search : {'auto', 'exact', 'approximate'}
        'auto' is exact up to 100,000 rows.
    recall : float
        Share of the true neighbors that an approximate search must find. It is measured on a
        sample, and the search is widened until it is reached. 1 means an exact search.
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
    return find_neighbors(
        given, n_neighbors=n_neighbors, search=search, recall=recall, progress=progress
    )


def find_neighbors(
    features: Floats, *, n_neighbors: int, search: Search, recall: float, progress: bool
) -> Neighbors:
    """Find the neighbors of rows, (n_images, n_dims), that were checked before."""
    if n_neighbors >= len(features):
        advice = "lower n_neighbors" if len(features) > 1 else "one image has no neighbors"
        raise InputError(
            f"n_neighbors must be below the number of images: got {n_neighbors} for "
            f"{len(features)} images; {advice}"
        )
    if len(features) <= FEW_ROWS and search != "approximate":
        return _compare_all(features, n_neighbors, progress=progress)
    exact = is_exact(len(features), search, recall)
    try:
        return _search(features, n_neighbors, exact=exact, recall=recall, progress=progress)
    except MissingExtraError as error:
        if not exact:
            raise
        warnings.warn(f"all pairs are compared, slowly; {error}", VSGraphWarning, stacklevel=3)
        return _compare_all(features, n_neighbors, progress=progress)


def update_neighbors(
    features: Floats, known: Known, *, search: Search, recall: float, progress: bool
) -> Neighbors | None:
    """Find the neighbors of rows, most of which are known; None if all must be searched for.

    That is so if there are few rows, if much has changed, or if the search is approximate: two such
    searches miss different neighbors, so the result would depend on what came before.
    """
    exact = is_exact(len(features), search, recall) and known.recall == 1
    most = MOST_CHANGED * len(features)
    if not exact or len(features) <= FEW_TO_UPDATE or known.to_search.sum() > most:
        return None
    try:
        from vsgraph.neighbors.update import update_lists
    except ImportError:
        return None
    rows = rows_to_search(_singles(features))
    if len(rows.alive) <= FEW_TO_UPDATE:
        return None
    neighbors, similarities = update_lists(rows, known, progress=progress)
    return _fill_up(neighbors, similarities, rows.alive, 1.0)


def is_exact(n_rows: int, search: Search, recall: float) -> bool:
    """Return whether a search finds exact neighbors."""
    return search == "exact" or recall == 1 or (search == "auto" and n_rows <= EXACT_UP_TO)


def _compare_all(features: Floats, n_neighbors: int, *, progress: bool) -> Neighbors:
    """Compare all pairs, one block of rows at a time."""
    unit = unit_rows(as_floats(features))
    neighbors = np.empty((len(unit), n_neighbors), np.intp)
    similarities = np.empty((len(unit), n_neighbors), unit.dtype)
    blocks = row_blocks(len(unit), row_bytes=len(unit) * unit.itemsize // 4)  # of 64 MB
    with bar(len(blocks), "neighbors", progress=progress) as steps:
        for rows in blocks:
            scores = unit[rows] @ unit.T
            scores[np.arange(len(scores)), np.arange(rows.start, rows.stop)] = -np.inf
            neighbors[rows] = top_columns(scores, n_neighbors)
            similarities[rows] = np.take_along_axis(scores, neighbors[rows], axis=1)
            steps.update()
    return Neighbors(neighbors, np.clip(similarities, -1, 1), 1.0)


def top_columns(scores: NDArray[Any], n_top: int) -> NDArray[np.intp]:
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
    try:  # compiled at first use, so not for a few rows
        from vsgraph.neighbors.exact import rule_out_others
        from vsgraph.neighbors.lists import search_lists
    except ImportError as error:
        raise MissingExtraError("a search among many rows", "scale") from error
    rows = rows_to_search(_singles(features))
    if len(rows.alive) <= FEW_ROWS:
        return _compare_alive(rows.features, rows.alive, n_neighbors)
    wanted = START_RECALL if exact else recall
    neighbors, similarities, reached = search_lists(
        rows, n_neighbors=n_neighbors, recall=wanted, progress=progress
    )
    if exact:
        rule_out_others(rows, neighbors, similarities, progress=progress)
        reached = 1.0
    return _fill_up(neighbors, similarities, rows.alive, reached)


def _singles(features: Floats) -> Floats:
    """Return features as the compiled loops take them: double precision as a copy in float32."""
    return features if features.dtype.itemsize <= 4 else unit_rows(features).astype(np.float32)


def _compare_alive(features: Floats, alive: NDArray[np.int32], n_neighbors: int) -> Neighbors:
    """Compare the few rows that are not zero with each other."""
    shape = (len(features), n_neighbors)
    neighbors, similarities = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
    n_near = min(n_neighbors, len(alive) - 1)
    if n_near > 0:
        among = _compare_all(np.asarray(features[alive]), n_near, progress=False)
        neighbors[alive, :n_near] = alive[among.rows]
        similarities[alive, :n_near] = among.similarities
    return _fill_up(neighbors, similarities, alive, 1.0)


def _fill_up(
    neighbors: NDArray[np.int32],
    similarities: NDArray[np.float32],
    alive: NDArray[np.int32],
    recall: float,
) -> Neighbors:
    """Put rows of zeros, which have cosine 0 with all, into empty places and those below 0."""
    n_rows, n_neighbors = neighbors.shape
    dead = np.ones(n_rows, bool)
    dead[alive] = False
    others = {True: np.arange(min(n_rows, n_neighbors + 1)), False: np.flatnonzero(dead)}
    for row in np.flatnonzero(dead | (similarities[:, -1] < 0)):
        extra = others[bool(dead[row])][: n_neighbors + 1]
        extra = extra[extra != row]
        filled = neighbors[row] >= 0
        ids = np.concatenate([neighbors[row][filled], extra])
        cosines = np.concatenate([similarities[row][filled], np.zeros(len(extra))])
        best = np.lexsort((ids, -cosines))[:n_neighbors]
        neighbors[row], similarities[row] = ids[best], cosines[best]
    return Neighbors(neighbors, np.clip(similarities, -1, 1), recall)
