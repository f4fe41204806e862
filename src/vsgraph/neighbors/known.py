"""Neighbors that an earlier search found, as rows of a crawl that has changed since.

Rows are the same if their features are. A row's nearest are read from its row of the graph: they
are the heaviest there, since those who only have it among theirs are less similar.
"""

import dataclasses
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import Arrays, fill_rows, row_blocks

Digests = NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """What is known of the neighbors of each row.

    Attributes
    ----------
    rows : int array of shape (n_images, n_neighbors)
        Most similar first; -1 where none is known.
    similarities : float array of shape (n_images, n_neighbors)
        Their cosines; minus infinity where none is known.
    is_new, has_lost : bool array of shape (n_images,)
        Rows that the earlier search did not have; rows of which a neighbor is gone.
    recall : float
        Of the earlier search.
    """

    rows: NDArray[np.int32]
    similarities: NDArray[np.float32]
    is_new: NDArray[np.bool_]
    has_lost: NDArray[np.bool_]
    recall: float

    @property
    def to_search(self) -> NDArray[np.bool_]:
        """Rows whose neighbors must be searched for, (n_images,)."""
        return self.is_new | self.has_lost


def row_digests(features: NDArray[Any]) -> Digests:
    """Return a digest of each row's bytes, (n_images,); equal rows have equal ones."""

    def digests(block: slice) -> Arrays:
        part = np.ascontiguousarray(features[block])
        made = b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in part)
        return (np.frombuffer(made, np.uint64),)

    row_bytes = features.shape[1] * features.dtype.itemsize
    blocks = row_blocks(len(features), row_bytes=row_bytes)
    (result,) = fill_rows(digests, blocks, title="digests")
    return np.asarray(result)


def match_rows(before: Digests, now: Digests) -> NDArray[np.int32]:
    """Return the row of now of each row before, (n_before,), -1 if it is gone.

    Of equal rows, the first is matched with the first, the second with the second, and so on.

    >>> match_rows(np.array([7, 7, 5], np.uint64), np.array([5, 3, 7], np.uint64)).tolist()
    [2, -1, 0]
    """
    _, numbers = np.unique(np.concatenate([before, now]), return_inverse=True)
    first, second = numbers[: len(before)], numbers[len(before) :]
    once, twice = _count_before(first), _count_before(second)
    most = max(once.max(initial=0), twice.max(initial=0)) + 1
    _, old, new = np.intersect1d(
        first * most + once, second * most + twice, assume_unique=True, return_indices=True
    )
    places = np.full(len(before), -1, np.int32)
    places[old] = new
    return places


def _count_before(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how often each number came before."""
    order = np.argsort(numbers, kind="stable")
    counts = np.empty(len(numbers), np.intp)
    in_order = numbers[order]
    counts[order] = np.arange(len(numbers)) - np.searchsorted(in_order, in_order)
    return counts


def known_neighbors(
    adjacency: csr_array, places: NDArray[np.int32], *, n_images: int, n_neighbors: int,
    recall: float,
) -> Known:  # fmt: skip
    """Read the neighbors of the rows of now from the graph of an earlier crawl.

    `places` are the rows of now of the earlier rows, -1 for those that are gone.
    """
    edges = adjacency.tocoo()
    order = np.lexsort((edges.col, -edges.data, edges.row))
    row, column, weight = edges.row[order], edges.col[order], edges.data[order]
    rank = np.arange(len(row)) - adjacency.indptr[row]
    near = (rank < n_neighbors) & (places[row] >= 0)
    row, column, weight, rank = places[row[near]], places[column[near]], weight[near], rank[near]
    neighbors = np.full((n_images, n_neighbors), -1, np.int32)
    similarities = np.full((n_images, n_neighbors), -np.inf, np.float32)
    neighbors[row, rank] = column
    similarities[row, rank] = np.where(column < 0, -np.inf, weight)
    has_lost = np.zeros(n_images, bool)
    has_lost[row[column < 0]] = True
    for some in row_blocks(n_images, most=2**16):  # those gone last, ties by row
        best = np.lexsort((neighbors[some], -similarities[some]), axis=1)
        neighbors[some] = np.take_along_axis(neighbors[some], best, axis=1)
        similarities[some] = np.take_along_axis(similarities[some], best, axis=1)
    is_new = np.ones(n_images, bool)
    is_new[places[places >= 0]] = False
    return Known(neighbors, similarities, is_new, has_lost, recall)
