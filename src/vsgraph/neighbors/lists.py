"""Approximate neighbors: lists of alike rows, scanned by matrix products, set by a wanted recall.

1. Rows are sketched (:mod:`vsgraph.neighbors.sketch`) and put into lists around centers (k-means).
2. Every row is compared with the rows of the few lists nearest to it; the best are candidates.
3. The friends of its friends, and of those who have it as a friend, are candidates too.
4. Candidates are ranked by their full features.

How many lists and candidates it takes is read off a sample whose true neighbors are known; another
sample then says what recall was reached.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import do_in_threads, in_threads, row_blocks
from vsgraph.neighbors import kernels
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, sketch

AXES = 255
SHARE = 0.3  # of what a sketch cuts off, measured on photographs
ROWS_PER_CENTER = 32  # to train the centers on
ROUNDS = 4
SAMPLE = 256  # rows to set the search by, and as many to measure its recall on
SLAB = 8192
LONGEST_PRODUCT = 4096  # rows of a list at a time: thousands of copies of a picture share one
ROUNDING = 1e-5
N_FRIENDS = 20
N_NEAR = 16  # lists next to a row that are kept, so that few searches look for them again
JOINS = 2  # after each scan
SCANNED = 0.9  # of the true neighbors at first; the join finds most of the others
MARGIN = 0.1  # so that a sample which the search was not set by reaches the recall too
MOST_CANDIDATES = 128

Ints = NDArray[np.integer[Any]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How widely to search.

    Attributes
    ----------
    n_probes : int
        Lists that a row is compared with at first.
    n_candidates : int
        Candidates that are ranked by their full features.
    """

    n_probes: int
    n_candidates: int


def search_lists(
    rows: Rows, *, n_neighbors: int, recall: float, progress: bool = False
) -> tuple[NDArray[np.int32], Singles, float]:
    """Find the nearest of every row that is alive, up to a recall.

    Returns
    -------
    neighbors, similarities : arrays of shape (n_images, n_neighbors)
        Most similar first, ties by row; -1 and minus infinity where there are none.
    recall : float
        Share of the true neighbors found, on a sample that the search was not set by.
    """
    random = np.random.default_rng(0)
    axes = principal_axes(rows, min(AXES, rows.features.shape[1]))
    sketches = sketch(rows, axes, share=SHARE, progress=progress)
    centers = _centers(sketches, random)
    near = _all_near_lists(sketches, centers, N_NEAR, progress=progress)
    sample = np.sort(random.choice(len(sketches), min(2 * SAMPLE, len(sketches)), replace=False))
    truth, cosines = true_neighbors(rows, sample, n_neighbors=n_neighbors)
    plan = _plan(sketches, centers, near[:, 0], sample[::2], truth[::2], recall)
    sorted_lists = Lists.sort(sketches, centers, near)
    tuning, testing = (Sample(rows.alive[sample[i::2]], cosines[i::2, -1]) for i in range(2))
    found = sorted_lists.search(
        rows, tuning, plan, n_neighbors=n_neighbors, recall=recall, progress=progress
    )
    everywhere = np.arange(len(sketches))
    neighbors, similarities = sorted_lists.rank(
        rows, found, everywhere, n_neighbors, progress=progress
    )
    return neighbors, similarities, testing.share_found(similarities)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Rows of which is known how similar their last true neighbor is."""

    rows: Ints
    last: Singles

    def share_found(self, similarities: Singles) -> float:
        """Return the share of neighbors found that are as similar as a true one; ties count."""
        return float((similarities[self.rows] >= self.last[:, None] - ROUNDING).mean())


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The best of every sketch so far, as heaps: their scores and places, the lowest first."""

    values: Singles
    ids: NDArray[np.int32]

    @classmethod
    def none(cls, n_rows: int, n_candidates: int) -> Self:
        """Start with no candidates."""
        return cls(
            np.full((n_rows, n_candidates), -np.inf, np.float32),
            np.full((n_rows, n_candidates), -1, np.int32),
        )

    def of(self, slab: slice) -> tuple[Singles, NDArray[np.int32]]:
        """Return the part of some rows, as the compiled loops take it."""
        return self.values[slab], self.ids[slab]

    def sort(self, slab: slice) -> None:
        """Put the best of each row last; it stays a heap."""
        best_last = np.argsort(self.values[slab], axis=1, kind="stable")
        self.ids[slab] = np.take_along_axis(self.ids[slab], best_last, axis=1)
        self.values[slab] = np.take_along_axis(self.values[slab], best_last, axis=1)


@dataclasses.dataclass(frozen=True)
class Lists:
    """Sketches sorted by list.

    Attributes
    ----------
    sketches : float32 array of shape (n_alive, n_short)
        List after list.
    order : int array of shape (n_alive,)
        The row, among those alive, behind each sketch.
    starts : int array of shape (n_lists + 1,)
        Where each list starts.
    centers : float32 array of shape (n_lists, n_short)
        What each list lies around.
    near : int array of shape (n_alive, n_near)
        The lists next to each sketch, its own first.
    """

    sketches: Singles
    order: Ints
    starts: Ints
    centers: Singles
    near: Ints

    @classmethod
    def sort(cls, sketches: Singles, centers: Singles, near: Ints) -> Self:
        """Sort sketches by list, in place, some columns at a time, so that no copy is made."""
        order = np.argsort(near[:, 0], kind="stable").astype(np.int32)
        for start in range(0, sketches.shape[1], 32):
            columns = slice(start, start + 32)
            sketches[:, columns] = sketches[order, columns]
        near = near[order]
        starts = np.searchsorted(near[:, 0], np.arange(len(centers) + 1))
        return cls(sketches, order, starts, centers, near)

    def search(
        self,
        rows: Rows,
        tuning: Sample,
        plan: Plan,
        *,
        n_neighbors: int,
        recall: float,
        progress: bool,
    ) -> Candidates:
        """Scan lists and join, then scan more, until the sample's neighbors are found."""
        places = np.argsort(self.order)[np.searchsorted(rows.alive, tuning.rows)]
        found = Candidates.none(len(self.sketches), plan.n_candidates)
        scanned, n_probes = 0, plan.n_probes
        while scanned < n_probes:
            self.scan(found, slice(scanned, n_probes), progress=progress)
            for _ in range(JOINS):
                self.join(found, progress=progress)
                _, similarities = self.rank(rows, found, places, n_neighbors)
                if tuning.share_found(similarities) >= recall + MARGIN * (1 - recall):
                    return found
            scanned, n_probes = n_probes, min(n_probes + n_probes // 2 + 1, len(self.centers))
        return found

    def scan(self, found: Candidates, probes: slice, *, progress: bool) -> None:
        """Compare every sketch with those in the lists next to it, say the third to the sixth."""

        def scan(slab: slice) -> None:
            own = np.arange(slab.start, slab.stop)
            near = self.near[slab]
            if probes.stop > near.shape[1]:
                near = _near_lists(self.sketches[slab], self.centers, probes.stop)
            asked = _askers(near[:, probes], len(self.centers))
            for which in np.flatnonzero(np.diff(asked.indptr)):
                rows = asked.indices[asked.indptr[which] : asked.indptr[which + 1]]
                asking = self.sketches[slab][rows]
                for first in range(self.starts[which], self.starts[which + 1], LONGEST_PRODUCT):
                    members = slice(first, min(first + LONGEST_PRODUCT, self.starts[which + 1]))
                    scores = asking @ self.sketches[members].T
                    kernels.offer(scores, rows, own, first, *found.of(slab))

        slabs = row_blocks(len(self.sketches), most=SLAB)
        do_in_threads(scan, slabs, title="neighbors", progress=progress)

    def join(self, found: Candidates, *, progress: bool) -> None:
        """Compare every sketch with the friends of its friends and fans."""
        n_rows = len(self.sketches)
        slabs = row_blocks(n_rows, most=SLAB)
        do_in_threads(found.sort, slabs)
        friends = np.ascontiguousarray(found.ids[:, : -N_FRIENDS - 1 : -1])
        known = friends >= 0
        pairs = friends[known], np.repeat(np.arange(n_rows, dtype=np.int32), known.sum(axis=1))
        fans = csr_array((np.ones(known.sum(), np.int8), pairs), shape=(n_rows, n_rows))

        def visit(slab: slice) -> None:
            rows = np.arange(slab.start, slab.stop)
            linked = friends, fans.indptr, fans.indices
            kernels.join(self.sketches, rows, *linked, *found.of(slab))

        do_in_threads(visit, slabs, title="neighbors of neighbors", progress=progress)

    def rank(
        self,
        rows: Rows,
        found: Candidates,
        places: Ints,
        n_neighbors: int,
        *,
        progress: bool = False,
    ) -> tuple[NDArray[np.int32], Singles]:
        """Return the nearest among the candidates at some places, by the full features."""
        shape = (len(rows.features), n_neighbors)
        neighbors = np.full(shape, -1, np.int32)
        similarities = np.full(shape, -np.inf, np.float32)
        raw, images = rows.raw, rows.alive[self.order]

        def rank(block: slice) -> None:
            ids = found.ids[places[block]]
            which = np.where(ids < 0, -1, images[ids])
            kernels.rank(raw, rows.scale, images[places[block]], which, similarities, neighbors)

        do_in_threads(rank, row_blocks(len(places), most=2048), title="ranking", progress=progress)
        return neighbors, similarities


def true_neighbors(rows: Rows, sample: Ints, *, n_neighbors: int) -> tuple[Ints, Singles]:
    """Return the nearest of a sample, counted among the rows alive, and their cosines."""
    n_best = min(n_neighbors, len(rows.alive) - 1)
    return _best_of_all(lambda block: rows.unit(rows.alive[block]), len(rows.alive), sample, n_best)


def _best_of_all(
    read: Callable[[slice | Ints], Singles], n_rows: int, sample: Ints, n_best: int
) -> tuple[Ints, Singles]:
    """Return, for each row of a sample, the rows of highest inner product, best first, and it."""
    asked = read(sample)

    def best_of(block: slice) -> tuple[Ints, Singles]:
        scores = asked @ read(block).T
        own = (sample >= block.start) & (sample < block.stop)
        scores[np.flatnonzero(own), sample[own] - block.start] = -np.inf
        n_here = min(n_best, scores.shape[1])
        best = np.argpartition(scores, -n_here, axis=1)[:, -n_here:]
        return best + block.start, np.take_along_axis(scores, best, axis=1)

    blocks = row_blocks(n_rows, row_bytes=4 * asked.shape[1], most=4096)
    parts = list(in_threads(best_of, blocks))
    ids = np.hstack([part[0] for part in parts])
    scores = np.hstack([part[1] for part in parts])
    best_first = np.argsort(-scores, axis=1, kind="stable")
    order = best_first[:, :n_best]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _nearness(sketches: Singles, centers: Singles) -> Singles:
    """Return how near sketches are to each center; higher is nearer."""
    return sketches @ centers.T - np.einsum("ij,ij->i", centers, centers) / 2


def _near_lists(sketches: Singles, centers: Singles, n_near: int) -> NDArray[np.int32]:
    """Return the lists next to each sketch of a block, nearest first."""
    nearness = _nearness(sketches, centers)
    found = Candidates.none(len(nearness), min(n_near, len(centers)))
    everywhere = np.arange(len(nearness))
    kernels.offer(nearness, everywhere, np.full(len(nearness), -1), 0, *found.of(slice(None)))
    found.sort(slice(None))
    return found.ids[:, ::-1]


def _all_near_lists(
    sketches: Singles, centers: Singles, n_near: int, *, progress: bool = False
) -> NDArray[np.int32]:
    """Return the lists next to every sketch, nearest first."""

    def near(rows: slice) -> NDArray[np.int32]:
        return _near_lists(sketches[rows], centers, n_near)

    blocks = row_blocks(len(sketches), row_bytes=4 * len(centers), most=4096)
    return np.concatenate(list(in_threads(near, blocks, title="lists", progress=progress)))


def _centers(sketches: Singles, random: np.random.Generator) -> Singles:
    """Return the centers of lists, by a few rounds of k-means on a sample."""
    n_lists = int(np.clip(2 ** round(np.log2(2.2 * np.sqrt(len(sketches)))), 1, len(sketches)))
    n_sample = min(len(sketches), ROWS_PER_CENTER * n_lists)
    sample = sketches[np.sort(random.choice(len(sketches), n_sample, replace=False))]
    centers = sample[random.choice(n_sample, n_lists, replace=False)]
    for _ in range(ROUNDS):
        own = _all_near_lists(sample, centers, 1)[:, 0]
        members = csr_array(
            (np.ones(n_sample, np.float32), own, np.arange(n_sample + 1)),
            shape=(n_sample, n_lists),
        )
        count = np.asarray(members.sum(axis=0))[:, None]
        centers = np.where(count > 0, (members.T @ sample) / np.maximum(count, 1), centers)
    return centers


def _plan(
    sketches: Singles, centers: Singles, lists: Ints, sample: Ints, truth: Ints, recall: float
) -> Plan:
    """Return how widely to search so that enough of the sample's true neighbors are found."""
    wanted = (3 + recall) / 4
    most = min(MOST_CANDIDATES, len(sketches) - 1)
    _, best = _best_of_all(lambda rows: sketches[rows], len(sketches), sample, most)
    score = np.einsum("ij,ikj->ik", sketches[sample], sketches[truth]) + ROUNDING
    better = (best[:, None, :] > score[:, :, None]).sum(axis=2)
    nearness = _nearness(sketches[sample], centers)
    its_list = np.take_along_axis(nearness, lists[truth], axis=1)
    lists_before = (nearness[:, None, :] > its_list[:, :, None]).sum(axis=2)
    n_candidates = int(np.quantile(np.minimum(better + 1, most), wanted))
    n_probes = int(np.quantile(lists_before + 1, SCANNED))
    least = min(truth.shape[1] + N_FRIENDS, len(sketches) - 1)
    return Plan(min(n_probes, len(centers)), max(least, n_candidates))


def _askers(chosen: Ints, n_lists: int) -> csr_array:
    """Return, list by list, which rows chose it."""
    n_rows, n_chosen = chosen.shape
    starts = np.arange(n_rows + 1) * n_chosen
    return csr_array(
        (np.ones(chosen.size, np.int8), chosen.ravel(), starts), shape=(n_rows, n_lists)
    ).tocsc()
