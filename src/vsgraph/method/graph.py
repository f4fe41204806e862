"""Section 3.2: the visual graph and the operator that spreads values over it."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array, eye_array, issparse

from vsgraph.common.blocks import Arrays, as_floats, fill_rows, row_blocks
from vsgraph.common.checks import Floats, check_at_least, check_one_of, name_rows
from vsgraph.errors import InputError
from vsgraph.neighbors.search import Neighbors, nearest_neighbors
from vsgraph.settings import FORMS, Form, Search

ROUNDING = 1e-3


def visual_graph(
    features: ArrayLike,
    *,
    n_neighbors: int,
    search: Search = "auto",
    recall: float = 0.99,
    progress: bool = False,
) -> csr_array:
    """Connect every image with those that look most like it (Eq. 1).

    Two images are connected if either is among the nearest of the other, with their cosine as
    the weight. Cosines that are not positive are left out, because Eq. 4 and 6 take the square root
    of degrees.

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        ``s`` in the paper, or the features of a stronger, off-the-shelf network.
    n_neighbors : int
        ``k`` in the paper.
    search, recall
        Exact or approximate, as in :func:`nearest_neighbors`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    adjacency : csr_array of shape (n_images, n_images)
        Symmetric, no self-loops, weights in 0..1; ``A`` in the paper.

    Examples
    --------
    >>> visual_graph([[1, 0], [3, 4], [0, 1], [0, -1]], n_neighbors=1).toarray().round(2)
    array([[0. , 0.6, 0. , 0. ],
           [0.6, 0. , 0.8, 0. ],
           [0. , 0.8, 0. , 0. ],
           [0. , 0. , 0. , 0. ]])
    """
    neighbors = nearest_neighbors(
        features, n_neighbors=n_neighbors, search=search, recall=recall, progress=progress
    )
    return connect(neighbors)


def connect(neighbors: Neighbors) -> csr_array:
    """Return the graph of neighbors, (n_images, n_images), unchecked."""
    n_images, n_neighbors = neighbors.rows.shape
    starts = np.arange(n_images + 1) * n_neighbors
    edges = (neighbors.similarities.ravel(), neighbors.rows.ravel(), starts)
    return _symmetric(csr_array(edges, shape=(n_images, n_images)))


def adopt_graph(
    graph: csr_array, *, n_images: int, kind: Literal["similarity", "distance"] = "similarity"
) -> csr_array:
    """Adopt an existing graph, in the form that Eq. 1 gives.

    Parameters
    ----------
    graph : scipy sparse matrix of shape (n_images, n_images)
        Stored entries are edges, stored zeros included; a k-NN graph need not be symmetric.
    n_images : int
        The number of images it must have.
    kind : {'similarity', 'distance'}
        What the entries are: cosines, or cosine distances as in cleanlab's ``knn_graph``.

    Returns
    -------
    adjacency : csr_array of shape (n_images, n_images)
        Symmetric, no self-loops, positive weights.

    Examples
    --------
    >>> distances = csr_array([[0, 0.25], [0, 0]])
    >>> adopt_graph(distances, n_images=2, kind="distance").toarray().tolist()
    [[0.0, 0.75], [0.75, 0.0]]
    """
    check_one_of("kind", kind, ("similarity", "distance"))
    if not issparse(graph) or graph.shape != (n_images, n_images):
        got = f"{type(graph).__name__} of shape {getattr(graph, 'shape', None)}"
        raise InputError(f"graph must be a scipy sparse ({n_images}, {n_images}), got {got}")
    adjacency = csr_array(graph, dtype=np.result_type(graph.dtype, np.float32))
    low, high, plural = (-1, 1, "similarities") if kind == "similarity" else (0, 2, "distances")
    bad = ~((adjacency.data >= low - ROUNDING) & (adjacency.data <= high + ROUNDING))
    if bad.any():
        rows = np.zeros(n_images, bool)
        rows[np.repeat(np.arange(n_images), np.diff(adjacency.indptr))[bad]] = True
        raise InputError(
            f"graph must hold cosine {plural}, which lie in {low}..{high}, unlike those in "
            f"{name_rows(rows)}; give distances to adopt_graph with kind='distance'"
        )
    if kind == "distance":
        similarities = 1 - adjacency.data
        adjacency = csr_array((similarities, adjacency.indices, adjacency.indptr), graph.shape)
    return _symmetric(adjacency)


def _symmetric(adjacency: csr_array) -> csr_array:
    """Connect both ways, without loops and without weights that are not positive."""
    edges = adjacency.maximum(adjacency.T).tocoo()
    keep = (edges.row != edges.col) & (edges.data > 0)
    kept = (edges.data[keep], (edges.row[keep], edges.col[keep]))
    return csr_array(kept, shape=adjacency.shape)


def propagation_matrix(adjacency: csr_array, *, self_weight: float, form: Form) -> csr_array:
    """Return the operator that replaces an image's value by its neighborhood's (Eq. 4 and 6).

    Parameters
    ----------
    adjacency : csr_array of shape (n_images, n_images)
        ``A`` in the paper.
    self_weight : float
        ``w`` in the paper. In the printed form it is in the scale of ``A``; in the released form
        an image counts `self_weight` times as much as all its neighbors together.
    form : {'released', 'printed'}
        Printed: ``D^-1/2 (A + wI) D^-1/2`` with the degrees of ``A`` alone. Released: rows of
        ``A`` scaled to sum one, plus ``wI``, scaled again.

    Returns
    -------
    propagation : csr_array of shape (n_images, n_images)
        An image without neighbors has a row of zeros (in the released form with `self_weight`
        above zero: itself).

    Examples
    --------
    >>> graph = csr_array([[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])
    >>> propagation_matrix(graph, self_weight=0, form="released").toarray().tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    check_at_least("self_weight", self_weight, 0)
    check_one_of("form", form, FORMS)
    degree = np.asarray(adjacency.sum(axis=1), np.float64)
    power = -0.5 if form == "printed" else -1.0
    scale = np.power(degree, power, out=np.zeros_like(degree), where=degree > 0)
    itself = self_weight * eye_array(adjacency.shape[0], format="csr")
    left = diags_array(scale)
    if form == "printed":
        return csr_array(left @ (adjacency + itself) @ left)
    mixed = csr_array(left @ adjacency + itself)
    total = np.asarray(mixed.sum(axis=1))
    return csr_array(diags_array(1 / np.where(total > 0, total, 1)) @ mixed)


def counting(step: csr_array, shares: Floats) -> csr_array:
    """Return ``step`` with its columns scaled: how far what each row has to say counts."""
    counted = (step.data * shares[step.indices]).astype(step.dtype)
    return csr_array((counted, step.indices, step.indptr), step.shape)


def gather(step: csr_array, values: Floats) -> Floats:
    """Return ``step @ values``, reading only the rows of `values` that are needed."""
    columns, place = np.unique(step.indices, return_inverse=True)
    if not len(columns):
        return np.zeros((step.shape[0], values.shape[1]), np.float32)
    needed = as_floats(np.asarray(values[columns]))
    weights = step.data.astype(needed.dtype)
    return csr_array((weights, place, step.indptr), shape=(step.shape[0], len(columns))) @ needed


def propagate(propagation: csr_array, values: Floats, *, progress: bool = False) -> Floats:
    """Return ``propagation @ values`` in the type of `values`, one block of rows at a time."""

    def mix(rows: slice) -> Arrays:
        return (gather(propagation[rows], values).astype(values.dtype),)

    blocks = row_blocks(len(values), row_bytes=32 * values.shape[1], most=2048)
    (result,) = fill_rows(mix, blocks, title="smoothing", progress=progress)
    return result
