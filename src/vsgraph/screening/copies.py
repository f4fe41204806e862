"""Groups of images that are copies of one picture.

Files with the same bytes are copies. Other pairs are looked at if they are neighbors in the graph,
or if their hashes, made of coarse differences of gray, lie side by side when sorted; so the number
of pairs grows with the number of images, never with its square. A pair is a copy if its details
agree (:mod:`vsgraph.screening.alignment`). Without pictures, neighbors are copies
if they are much nearer to each other than neighbors are. A group is what pairs of copies connect.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from vsgraph.common.blocks import Arrays, map_rows, row_blocks
from vsgraph.screening.alignment import agreement, halved

AGREEMENT = 0.8  # see docs/pictures.md
SAME_VECTOR = 0.13  # of the usual distance of neighbors, as in cleanlab
ALIKE = 0.5  # cosine of neighbors that are looked at
FAR_HASHES = 12  # bits in which hashes may differ to be looked at
WINDOW = 2  # places apart in a sorted list of hashes
TURNS = (0, 16, 32, 48)  # bits by which hashes are rotated before they are sorted
ROUNDING = 1e-3  # of cosines of half precision
PAIRS = 128  # looked at together

Rows = NDArray[np.intp]
Pairs = NDArray[np.intp]  # (n_pairs, 2)


class Compared(NamedTuple):
    """Pairs of pictures whose details were compared."""

    pairs: Pairs
    agree: NDArray[np.bool_]  # (n_pairs,), whether they are copies


NOTHING = Compared(np.zeros((0, 2), np.intp), np.zeros(0, bool))


class Copies(NamedTuple):
    """Which images are copies, and which were compared to find that."""

    groups: Rows  # (n_images,), the first row of an image's copies; its own if it has none
    compared: Compared  # now or before


def find_copies(
    keys: NDArray[np.uint8] | None,
    squares: NDArray[Any] | None,
    graph: csr_array,
    *,
    known: Compared = NOTHING,
    progress: bool = False,
) -> Copies:
    """Find groups of images that are copies of one picture.

    Parameters
    ----------
    keys : array of shape (n_images, 16), optional
        A digest of each file; zeros if there is none.
    squares : array of shape (n_images, side * side), optional
        Each picture as a small gray square; zeros if it cannot be read. Without keys and squares,
        only the graph tells copies.
    graph : csr_array of shape (n_images, n_images)
        Cosines of the vectors of images that look alike.
    known : Compared, optional
        Pairs that need not be compared again, see :func:`known_pairs`.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> graph = csr_array([[0, 0.5, 1.0], [0.5, 0, 0], [1.0, 0, 0]])
    >>> find_copies(None, None, graph).groups.tolist()
    [0, 1, 0]
    """
    n_images = graph.shape[0]
    same = _same_bytes(keys) if keys is not None else np.arange(n_images)
    near, cosines = _neighbors(graph, same)
    compared = NOTHING
    if squares is None:
        usual = float(np.median(1 - cosines)) if len(near) else 0.0
        near = near[1 - cosines <= max(SAME_VECTOR * usual, ROUNDING)]
    else:
        compared = _compare(
            squares, _to_compare(squares, near[cosines >= ALIKE], same), known, progress=progress
        )
        near = compared.pairs[compared.agree]
    linked = np.concatenate([near, np.stack([np.arange(n_images), same], 1)])
    return Copies(_components(linked, n_images), compared)


def known_pairs(compared: Compared, places: NDArray[np.integer[Any]]) -> Compared:
    """Return the pairs of a crawl of now that were compared in an earlier one.

    `places` are the rows of now of the earlier crawl's rows, -1 for those that are gone. The order
    of a pair may change its agreement by a rounding error, so pairs whose order is another now are
    left out.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> known_pairs(Compared(pairs, np.array([True, False, True])), np.array([3, 1, 4]))
    Compared(pairs=array([[3, 4],
           [1, 4]]), agree=array([False,  True]))
    """
    now = places[compared.pairs].astype(np.intp)
    left = (now[:, 0] >= 0) & (now[:, 0] < now[:, 1])
    return Compared(now[left], compared.agree[left])


def _to_compare(squares: NDArray[Any], near: Pairs, same: Rows) -> Pairs:
    """Return the pairs of pictures to compare: neighbors, and those with nearly the same hash."""
    blocks = row_blocks(len(squares), row_bytes=4 * squares.shape[1])
    readable = np.flatnonzero(
        np.concatenate([np.zeros(0, bool), *(np.any(squares[b], axis=1) for b in blocks)])
    )
    near = _unique(np.concatenate([near, _same_hashes(squares, readable, same)]))
    return near[np.isin(near, readable).all(axis=1)]


def _compare(squares: NDArray[Any], pairs: Pairs, known: Compared, *, progress: bool) -> Compared:
    """Compare the pictures of pairs, except those that are known."""
    own, former = (some @ np.array([len(squares), 1]) for some in (pairs, known.pairs))
    order = np.argsort(former)
    place = np.minimum(np.searchsorted(former, own, sorter=order), len(former) - 1)
    is_known = former[order[place]] == own if len(former) else np.zeros(len(own), bool)
    agree = np.empty(len(pairs), bool)
    agree[is_known] = known.agree[order[place[is_known]]]
    agree[~is_known] = _agree(squares, pairs[~is_known], progress=progress)
    return Compared(pairs, agree)


def _same_bytes(keys: NDArray[np.uint8]) -> Rows:
    """Return the first row with the same bytes as each, its own if it has no file."""
    plain = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, first, number = np.unique(plain, return_index=True, return_inverse=True)
    return np.where(np.any(keys, axis=1), first[number], np.arange(len(keys)))


def _unique(pairs: Pairs) -> Pairs:
    """Return different pairs of different rows, the lower row first."""
    ordered = np.sort(pairs, axis=1)
    return np.unique(ordered[ordered[:, 0] < ordered[:, 1]], axis=0)


def _neighbors(graph: csr_array, same: Rows) -> tuple[Pairs, NDArray[Any]]:
    """Return the pairs of a graph and their cosines, of files with the same bytes only the first.

    >>> pairs, cosines = _neighbors(csr_array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]]),
    ...                             np.array([0, 1, 0]))
    >>> pairs.tolist(), cosines.tolist()
    ([[0, 1]], [0.5])
    """
    edges, n_images = graph.tocoo(), graph.shape[0]
    one, other = (same[ends] for ends in edges.coords)
    numbers = np.minimum(one, other) * n_images + np.maximum(one, other)
    differ = one != other
    numbers, first = np.unique(numbers[differ], return_index=True)
    return np.stack(np.divmod(numbers, n_images), 1), edges.data[differ][first]


def _same_hashes(squares: NDArray[Any], rows: Rows, same: Rows) -> Pairs:
    """Return pairs of rows that stand side by side when their hashes are sorted."""
    rows = rows[same[rows] == rows]
    hashes = np.concatenate(
        [np.zeros(0, np.uint64), *(_hashes(squares[rows[b]]) for b in row_blocks(len(rows)))]
    )
    found = [np.zeros((0, 2), np.intp)]
    for turn in TURNS:
        turned = (hashes << np.uint64(turn)) | (hashes >> np.uint64((64 - turn) % 64))
        order = np.lexsort((rows, turned))
        for apart in range(1, WINDOW + 1):
            one, other = order[:-apart], order[apart:]
            close = np.bitwise_count(hashes[one] ^ hashes[other]) <= FAR_HASHES
            found.append(np.stack([rows[one[close]], rows[other[close]]], 1))
    return np.concatenate(found)


def _hashes(squares: NDArray[Any]) -> NDArray[np.uint64]:
    """Return 64 bits per square: which of the neighbors on a coarse grid is brighter.

    A mirrored picture has the same hash: of the two ways to see it, the lower number counts.
    """
    side = round(np.sqrt(squares.shape[1]))
    whole = np.asarray(squares, np.float32).reshape(-1, side, side)
    seen = []
    for way in (whole, whole[:, :, ::-1]):
        coarse = halved(halved(way))  # (n, 8, 8)
        wide = np.concatenate([coarse, coarse.mean(axis=2, keepdims=True)], axis=2)
        bits = (np.diff(wide, axis=2) > 0).reshape(len(way), -1)
        seen.append(np.packbits(bits, axis=1).view(np.uint64).ravel())
    return np.minimum(*seen)


def _agree(squares: NDArray[Any], pairs: Pairs, *, progress: bool) -> NDArray[np.bool_]:
    """Return which pairs are copies by their details."""
    side = round(np.sqrt(squares.shape[1]))

    def agree(block: slice) -> Arrays:
        one, other = (
            np.asarray(squares[rows], np.float32).reshape(-1, side, side) for rows in pairs[block].T
        )
        return (agreement(one, other) >= AGREEMENT,)

    checked = map_rows(agree, row_blocks(len(pairs), most=PAIRS), title="copies", progress=progress)
    return np.concatenate([np.zeros(0, bool), *(part for (part,) in checked)])


def _components(pairs: Pairs, n_images: int) -> Rows:
    """Return the first row of what pairs connect, (n_images,)."""
    links = coo_array((np.ones(len(pairs), bool), tuple(pairs.T)), (n_images, n_images))
    _, number = connected_components(links, directed=False)
    _, first = np.unique(number, return_index=True)
    return first[number]
