"""Section 3.6: fuse the labels of graph and CNN (Eq. 8), and soft labels for training on them."""

import numpy as np
from numpy.typing import ArrayLike

from vsgraph.common.checks import Floats, check_fraction, check_matrix, check_probs


def fuse(
    gnn_probs: ArrayLike,
    cnn_probs: ArrayLike,
    *,
    confidence_threshold: float,
    gnn_weight: float,
) -> Floats:
    """Keep a confident graph label, else blend it with the CNN's (Eq. 8).

    The graph is reliable near its anchors and silent elsewhere; the CNN has an opinion on
    every image.

    Parameters
    ----------
    gnn_probs, cnn_probs : array of shape (n_images, n_classes)
        ``p_g`` and ``p_c`` in the paper.
    confidence_threshold : float
        ``tau_f`` in the paper: a row whose highest graph score reaches it is kept as it is.
    gnn_weight : float
        ``lambda`` in the paper: share of the graph in the other rows.

    Returns
    -------
    final_probs : array of shape (n_images, n_classes)
        ``p_f`` in the paper.

    Examples
    --------
    >>> fuse([[0.9, 0.1], [0.4, 0.2]], [[0, 1], [0, 1]],
    ...      confidence_threshold=0.7, gnn_weight=0.5).tolist()
    [[0.9, 0.1], [0.2, 0.6]]
    """
    check_fraction("confidence_threshold", confidence_threshold)
    check_fraction("gnn_weight", gnn_weight)
    graph = check_matrix("gnn_probs", gnn_probs)
    graph = check_probs("gnn_probs", graph, shape=graph.shape)
    cnn = check_probs("cnn_probs", cnn_probs, shape=graph.shape)
    return fuse_rows(graph, cnn, confidence_threshold=confidence_threshold, gnn_weight=gnn_weight)


def fuse_rows(
    graph: Floats, cnn: Floats, *, confidence_threshold: float, gnn_weight: float
) -> Floats:
    """Fuse scores of shape (n_rows, n_classes), unchecked."""
    confident = graph.max(axis=1, keepdims=True) >= confidence_threshold
    return np.where(confident, graph, gnn_weight * graph + (1 - gnn_weight) * cnn)


def soft_labels(final_probs: ArrayLike) -> Floats:
    """Scale every row to sum one, for the soft cross-entropy of Eq. 9.

    Sigmoid scores need not sum to one; train on them as they are with binary cross-entropy, or on
    these with softmax. A row of zeros stays zero and so adds nothing to the loss.

    Parameters
    ----------
    final_probs : array of shape (n_images, n_classes)
        ``p_f`` in the paper.

    Returns
    -------
    labels : array of shape (n_images, n_classes)
        Rows that sum to one, or zero.

    Examples
    --------
    >>> soft_labels([[0.2, 0.6], [0.0, 0.0]]).round(2).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    probs = check_matrix("final_probs", final_probs)
    total = probs.sum(axis=1, keepdims=True)
    return probs / np.where(total > 0, total, 1)
