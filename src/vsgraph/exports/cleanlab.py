"""Arrays for cleanlab: labels, probabilities, the graph of neighbors."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, save_npz

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import check_one_of
from vsgraph.common.files import new_array
from vsgraph.common.room import check_disk
from vsgraph.errors import InputError
from vsgraph.exports.job import Job
from vsgraph.exports.names import write_class_names
from vsgraph.exports.tables import write_images
from vsgraph.result.scores import TopScores

NO_NEIGHBOR = 1.0


def write_cleanlab(
    job: Job,
    *,
    scores: Literal["final", "gnn", "cnn"] = "final",
    n_neighbors: int | None = None,
) -> None:
    """Write the arrays of ``find_label_issues`` and ``Datalab.find_issues``, one row per image.

    ``labels.npy`` holds the web labels and ``final_labels.npy`` the corrected ones (-1 if
    rejected), as boolean tables if images have several; ``pred_probs.npy`` is dense;
    ``knn_graph.npz`` holds cosine distances; ``images.csv`` has everything else. Classes are
    numbered in the order of their names, as in ``class_names.txt``. The final scores depend on the
    web label of the image itself; the others do not, except that the CNN may have been trained on
    it.
    """
    correction = job.correction
    check_one_of("scores", scores, ("final", "gnn", "cnn"))
    probs: TopScores | None = getattr(correction, f"{scores}_probs")
    if probs is None:
        raise InputError("the correction was made without a CNN; pass scores='final' or 'gnn'")
    labels_bytes = 2 * correction.web_labels.nbytes
    needed = 4 * len(probs) * probs.n_classes + labels_bytes + 8 * correction.adjacency.nnz
    check_disk(job.exported.out, needed)
    graph = neighbor_distances(correction.adjacency, n_neighbors=n_neighbors)
    order = sorted(range(len(job.class_names)), key=job.class_names.__getitem__)
    write_class_names(job.path / "class_names.txt", [job.class_names[c] for c in order])
    write_images(job, job.rows)
    np.save(job.path / "labels.npy", _reordered(correction.web_labels, order))
    np.save(job.path / "final_labels.npy", _reordered(correction.final_labels, order))
    dense = new_array(job.path / "pred_probs.npy", np.float32, probs.shape)
    for rows in job.blocks():
        dense[rows] = _shares(probs[rows], several=job.several)[:, order]
    dense.flush()
    if graph is None:
        job.exported.problems.add(
            "no neighbors", "the graph has no edge, so there is no knn_graph.npz"
        )
    else:
        save_npz(job.path / "knn_graph.npz", graph)


def _reordered(labels: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """Return labels of either shape with classes in another order."""
    if labels.ndim == 2:
        return np.asarray(labels[:, order])
    return np.append(np.argsort(order), -1)[labels]


def _shares(block: NDArray[np.float32], *, several: bool) -> NDArray[np.float32]:
    """Return scores in 0..1; if images have one label, rows that sum to one."""
    if several:
        return np.clip(block, 0, 1)
    total = block.sum(axis=1, keepdims=True)
    even = np.float32(1 / block.shape[1])
    return np.where(total > 0, block / np.where(total > 0, total, 1), even)


def neighbor_distances(adjacency: csr_array, *, n_neighbors: int | None = None) -> Any:  # noqa: ANN401
    """Return the strongest edges of each image as cosine distances, nearest first.

    The csr_matrix, (n_images, n_images), has the same number of entries in every row, zeros
    included: by default the smallest number that any image with neighbors has. An image with fewer
    gets others, spread over the crawl, at distance 1: nothing in common. None if there is no edge.

    >>> graph = neighbor_distances(csr_array([[0, 0.75, 0.5], [0.75, 0, 0], [0.5, 0, 0]]))
    >>> graph.data.tolist(), graph.indices.tolist()
    ([0.25, 0.25, 0.5], [1, 0, 0])
    """
    n_images = adjacency.shape[0]
    degrees = np.diff(adjacency.indptr)
    if not degrees.any():
        return None
    k = int(degrees[degrees > 0].min()) if n_neighbors is None else n_neighbors
    if not 1 <= k < n_images:
        raise InputError(f"n_neighbors must be in 1..{n_images - 1}, got {k}")
    near = np.full((n_images, k), -1, np.int32)
    distances = np.full((n_images, k), NO_NEIGHBOR, np.float32)
    for rows in row_blocks(n_images):
        _put_strongest(adjacency, rows, near[rows], distances[rows])
    for row in np.flatnonzero(degrees < k):
        near[row] = _filled(near[row], int(row), n_images)
    starts = np.arange(n_images + 1) * k
    return csr_matrix((distances.ravel(), near.ravel(), starts), shape=adjacency.shape)


def _put_strongest(
    adjacency: csr_array, rows: slice, near: NDArray[np.int32], distances: NDArray[np.float32]
) -> None:
    """Write the strongest edges of some rows, and their distances, to `near` and `distances`."""
    starts = adjacency.indptr[rows.start : rows.stop + 1]
    edges = slice(starts[0], starts[-1])
    row = np.repeat(np.arange(len(near)), np.diff(starts))
    columns, weights = adjacency.indices[edges], adjacency.data[edges]
    best = np.lexsort((columns, -weights, row))  # (n_edges,): by row, strongest first
    rank = np.arange(len(row)) - (starts[:-1] - starts[0])[row]  # within the row
    top = rank < near.shape[1]
    near[row[top], rank[top]] = columns[best][top]
    distances[row[top], rank[top]] = np.clip(1 - weights[best][top], 0, None)


def _filled(near: NDArray[np.int32], row: int, n_images: int) -> NDArray[np.int32]:
    """Return the neighbors of an image, missing ones replaced by others spread over the crawl.

    >>> _filled(np.array([4, -1], np.int32), 0, 9).tolist()
    [4, 1]
    """
    known = near[near >= 0]
    n_offered = min(2 * len(near), n_images - 1)
    steps = 1 + np.arange(n_offered) * ((n_images - 1) // n_offered)
    others = (row + steps) % n_images
    new = others[~np.isin(others, known)]
    return np.concatenate([known, new])[: len(near)].astype(np.int32)
