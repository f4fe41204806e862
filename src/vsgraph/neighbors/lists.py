"""Approximate neighbors: lists of similar rows, scanned by matrix products up to a recall.

1. Rows are sketched (:mod:`vsgraph.neighbors.sketch`) and put into lists around centers (k-means).
2. Every row is compared with the rows of the few lists nearest to it; the best are candidates.
3. The friends of its friends, and of those who have it as a friend, are candidates too.
4. Candidates are ranked by their full features.

A sample of rows whose true neighbors are known determines how many lists and candidates are needed.
A second sample measures the recall.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from vsgraph.common.blocks import Arrays, fill_rows, map_rows, row_blocks
from vsgraph.common.checks import label_matrix
from vsgraph.neighbors import kernels
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, sketch

AXES = 255
SHARE = 0.3  # of the part that a sketch cuts off, measured on photographs
ROWS_PER_CENTER = 32  # to train the centers on
ROUNDS = 4
SAMPLE = 256  # rows to tune the search on, and as many to measure its recall on
SLAB = 8192
LONGEST_PRODUCT = 4096  # rows of a list at a time: thousands of copies of a picture share one
ROUNDING = 1e-5
N_FRIENDS = 20
N_NEAR = 16  # nearest lists that are kept for each row; few searches need more
JOINS = 2  # after each scan
SCANNED = 0.9  # of the true neighbors at first; the join finds most of the others
MARGIN = 0.1  # above the recall, for rows outside the tuning sample
MOST_CANDIDATES = 128

Ints = NDArray[np.integer[Any]]


class Plan(NamedTuple):
    """How widely to search: lists to scan first, and candidates to rank by full features."""

    n_probes: int
    n_candidates: int


def search_lists(
    rows: Rows, *, n_neighbors: int, recall: float, progress: bool = False
) -> tuple[NDArray[np.int32], Singles, float]:
    """Return neighbors and similarities, (n_images, n_neighbors), and the recall reached.

    The most similar come first, ties by row; -1 and minus infinity mark empty places. The recall is
    the share of true neighbors found for rows outside the tuning sample.
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
    places = np.argsort(sorted_lists.order)[sample]
    tuning, testing = (Sample(places[i::2], cosines[i::2, -1]) for i in range(2))
    candidates = sorted_lists.search(
        rows, tuning, plan, n_neighbors=n_neighbors, recall=recall, progress=progress
    )
    everywhere = np.arange(len(sketches))
    ranked = sorted_lists.rank(rows, candidates, everywhere, n_neighbors, progress=progress)
    reached = testing.share_found(ranked[1][testing.places])
    similarities, neighbors = Candidates.none(len(rows.features), n_neighbors)
    images = rows.alive[sorted_lists.order]
    neighbors[images], similarities[images] = ranked
    return neighbors, similarities, reached


@dataclasses.dataclass(frozen=True)
class Sample:
    """Places of sketches, and the similarity of each one's last true neighbor."""

    places: Ints
    last: Singles

    def share_found(self, similarities: Singles) -> float:
        """Return the share of neighbors that are at least as similar as the last true one."""
        return float((similarities >= self.last[:, None] - ROUNDING).mean())


class Candidates(NamedTuple):
    """The best candidates of sketches so far, (n_rows, n_candidates), heaps, lowest first."""

    values: Singles
    ids: NDArray[np.int32]

    @classmethod
    def none(cls, n_rows: int, n_candidates: int) -> "Candidates":
        """Return empty heaps."""
        return cls(
            np.full((n_rows, n_candidates), -np.inf, np.float32),
            np.full((n_rows, n_candidates), -1, np.int32),
        )

    def of(self, slab: slice) -> "Candidates":
        """Return a copy of the heaps of some rows, to be changed."""
        return Candidates(np.array(self.values[slab]), np.array(self.ids[slab]))

    def sorted(self) -> "Candidates":
        """Return each row with the best last; it stays a heap."""
        best_last = np.argsort(self.values, axis=1, kind="stable")
        return Candidates(
            np.take_along_axis(self.values, best_last, axis=1),
            np.take_along_axis(self.ids, best_last, axis=1),
        )


@dataclasses.dataclass(frozen=True)
class Lists:
    """Sketches sorted by list."""

    sketches: Singles  # (n_alive, n_short), list after list
    order: Ints  # (n_alive,), the row of each sketch among those alive
    starts: Ints  # (n_lists + 1,), where each list starts
    centers: Singles  # (n_lists, n_short)
    near: Ints  # (n_alive, n_near), the lists nearest to each sketch, its own first

    @classmethod
    def sort(cls, sketches: Singles, centers: Singles, near: Ints) -> Self:
        """Sort sketches by list: in place, some columns at a time to avoid a copy, or on disk."""
        order = np.argsort(near[:, 0], kind="stable").astype(np.int32)
        starts = np.searchsorted(near[:, 0][order], np.arange(len(centers) + 1))
        if not sketches.flags.writeable:
            blocks = row_blocks(len(order), most=SLAB)
            sketches, near = fill_rows(
                lambda rows: (sketches[order[rows]], near[order[rows]]), blocks, title="sorting"
            )
            return cls(sketches, order, starts, centers, near)
        for start in range(0, sketches.shape[1], 32):
            columns = slice(start, start + 32)
            sketches[:, columns] = sketches[order, columns]
        return cls(sketches, order, starts, centers, near[order])

    def search(
        self, rows: Rows, tuning: Sample, plan: Plan, *, n_neighbors: int, recall: float,
        progress: bool,
    ) -> Candidates:  # fmt: skip
        """Scan lists and join, then scan more, until the sample's neighbors are found."""
        candidates = None
        scanned, n_probes = 0, plan.n_probes
        while True:
            probes = slice(scanned, n_probes)
            candidates = self.scan(candidates, plan.n_candidates, probes, progress=progress)
            for _ in range(JOINS):
                candidates = self.join(candidates, progress=progress)
                _, similarities = self.rank(rows, candidates, tuning.places, n_neighbors)
                if tuning.share_found(similarities) >= recall + MARGIN * (1 - recall):
                    return candidates
            scanned, n_probes = n_probes, min(n_probes + n_probes // 2 + 1, len(self.centers))
            if scanned >= n_probes:
                return candidates

    def scan(
        self, candidates: Candidates | None, n_candidates: int, probes: slice, *, progress: bool
    ) -> Candidates:
        """Compare every sketch with those in some of its nearest lists, say the third to sixth."""

        def scan(slab: slice) -> Candidates:
            own = np.arange(slab.start, slab.stop)
            heaps = candidates.of(slab) if candidates else Candidates.none(len(own), n_candidates)
            near = self.near[slab]
            if probes.stop > near.shape[1]:
                near = _near_lists(self.sketches[slab], self.centers, probes.stop)
            readers = _readers(near[:, probes], len(self.centers))
            for which in np.flatnonzero(np.diff(readers.indptr)):
                rows = readers.indices[readers.indptr[which] : readers.indptr[which + 1]]
                reading = self.sketches[slab][rows]
                for first in range(self.starts[which], self.starts[which + 1], LONGEST_PRODUCT):
                    members = slice(first, min(first + LONGEST_PRODUCT, self.starts[which + 1]))
                    scores = reading @ self.sketches[members].T
                    kernels.offer(scores, rows, own, first, *heaps)
            return heaps.sorted()

        slabs = row_blocks(len(self.sketches), most=SLAB)
        return Candidates(
            *fill_rows(scan, slabs, into=candidates, title="neighbors", progress=progress)
        )

    def join(self, candidates: Candidates, *, progress: bool) -> Candidates:
        """Compare every sketch with the friends of its friends and fans."""
        n_rows = len(self.sketches)
        friends = np.ascontiguousarray(candidates.ids[:, : -N_FRIENDS - 1 : -1])
        known = friends >= 0
        pairs = friends[known], np.repeat(np.arange(n_rows, dtype=np.int32), known.sum(axis=1))
        fans = csr_array((np.ones(known.sum(), np.int8), pairs), shape=(n_rows, n_rows))
        linked = friends, fans.indptr, fans.indices

        def visit(slab: slice) -> Candidates:
            heaps = candidates.of(slab)
            kernels.join(self.sketches, np.arange(slab.start, slab.stop), *linked, *heaps)
            return heaps.sorted()

        slabs = row_blocks(n_rows, most=SLAB)
        title = "neighbors of neighbors"
        return Candidates(*fill_rows(visit, slabs, into=candidates, title=title, progress=progress))

    def rank(
        self, rows: Rows, candidates: Candidates, places: Ints, n_neighbors: int, *,
        progress: bool = False,
    ) -> tuple[NDArray[np.int32], Singles]:  # fmt: skip
        """Rank the candidates at some places by full features; both are (n_places, n_neighbors)."""
        raw, images = rows.raw, rows.alive[self.order]

        def rank(block: slice) -> Arrays:
            ids = candidates.ids[places[block]]
            which = np.where(ids < 0, -1, images[ids])
            similarities, neighbors = Candidates.none(len(ids), n_neighbors)
            kernels.rank(raw, rows.scale, images[places[block]], which, similarities, neighbors)
            return neighbors, similarities

        blocks = row_blocks(len(places), most=2048)
        neighbors, similarities = fill_rows(rank, blocks, title="ranking", progress=progress)
        return neighbors, similarities


def true_neighbors(rows: Rows, sample: Ints, *, n_neighbors: int) -> tuple[Ints, Singles]:
    """Return the nearest of a sample, as places among the rows alive, and their cosines."""
    n_best = min(n_neighbors, len(rows.alive) - 1)
    return _best_of_all(lambda block: rows.unit(rows.alive[block]), len(rows.alive), sample, n_best)


def _best_of_all(
    read: Callable[[slice | Ints], Singles], n_rows: int, sample: Ints, n_best: int
) -> tuple[Ints, Singles]:
    """Return the rows of highest inner product with each of a sample, best first, and its value."""
    vectors = read(sample)

    def best_of(block: slice) -> Arrays:
        scores = vectors @ read(block).T
        own = (sample >= block.start) & (sample < block.stop)
        scores[np.flatnonzero(own), sample[own] - block.start] = -np.inf
        n_here = min(n_best, scores.shape[1])
        best = np.argpartition(scores, -n_here, axis=1)[:, -n_here:]
        return best + block.start, np.take_along_axis(scores, best, axis=1)

    blocks = row_blocks(n_rows, row_bytes=4 * vectors.shape[1], most=4096)
    found = map_rows(best_of, blocks, title="sample")
    ids, scores = map(np.hstack, zip(*found, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _nearness(sketches: Singles, centers: Singles) -> Singles:
    """Return how near sketches are to each center; higher is nearer."""
    return sketches @ centers.T - np.einsum("ij,ij->i", centers, centers) / 2


def _near_lists(sketches: Singles, centers: Singles, n_near: int) -> NDArray[np.int32]:
    """Return the lists nearest to each sketch of a block, nearest first."""
    nearness = _nearness(sketches, centers)
    near = Candidates.none(len(nearness), min(n_near, len(centers)))
    rows, nothing = np.arange(len(nearness)), np.full(len(nearness), -1)
    kernels.offer(nearness, rows, nothing, 0, near.values, near.ids)
    return near.sorted().ids[:, ::-1]


def _all_near_lists(
    sketches: Singles, centers: Singles, n_near: int, *, progress: bool = False
) -> NDArray[np.int32]:
    """Return the lists nearest to every sketch, (n_alive, n_near), nearest first."""

    def near(rows: slice) -> Arrays:
        return (_near_lists(sketches[rows], centers, n_near),)

    blocks = row_blocks(len(sketches), row_bytes=4 * len(centers), most=4096)
    (lists,) = fill_rows(near, blocks, title="lists", progress=progress)
    return lists


def _centers(sketches: Singles, random: np.random.Generator) -> Singles:
    """Return the centers of lists, (n_lists, n_short), by k-means on a sample."""
    n_lists = int(np.clip(2 ** round(np.log2(2.2 * np.sqrt(len(sketches)))), 1, len(sketches)))
    n_sample = min(len(sketches), ROWS_PER_CENTER * n_lists)
    sample = sketches[np.sort(random.choice(len(sketches), n_sample, replace=False))]
    centers = sample[random.choice(n_sample, n_lists, replace=False)]
    for _ in range(ROUNDS):
        own = _all_near_lists(sample, centers, 1)[:, 0]
        members = label_matrix(own, n_lists)
        count = np.asarray(members.sum(axis=0))[:, None]
        centers = np.where(count > 0, (members.T @ sample) / np.maximum(count, 1), centers)
    return centers


def _plan(
    sketches: Singles, centers: Singles, lists: Ints, sample: Ints, truth: Ints, recall: float
) -> Plan:
    """Return how widely to search to find enough of the sample's true neighbors."""
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


def _readers(near: Ints, n_lists: int) -> csc_array:
    """Return the rows that read each list, as the columns of a sparse matrix, (n_rows, n_lists)."""
    n_rows, n_near = near.shape
    parts = np.ones(near.size, np.int8), near.ravel(), np.arange(n_rows + 1) * n_near
    return csr_array(parts, shape=(n_rows, n_lists)).tocsc()
