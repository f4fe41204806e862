"""Section 4.5: confident graph labels become the anchors of the next round."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vsgraph.anchors import Anchors
from vsgraph.checks import Floats, check_fraction, check_matrix
from vsgraph.settings import Settings
from vsgraph.sgc import anchor_task, label_by_graph, spread


def grow_anchors(gnn_probs: ArrayLike, anchors: Anchors, *, confidence_threshold: float) -> Anchors:
    """Make every image the graph is sure of an anchor of the class it is sure of.

    A class of which the graph is sure nowhere keeps the anchors it had, so that no class is lost.

    Parameters
    ----------
    gnn_probs : array of shape (n_images, n_classes)
        ``p_g`` of the round before.
    anchors : Anchors
        Those of the round before.
    confidence_threshold : float
        ``tau_f`` in the paper.

    Returns
    -------
    anchors : Anchors
        Classes in order, rows in order; `match` is the graph's score.

    Examples
    --------
    >>> before = Anchors(np.array([0, 1]), np.array([0, 1]), np.ones(2))
    >>> after = grow_anchors([[0.9, 0.0], [0.2, 0.6], [0.8, 0.1]], before, confidence_threshold=0.7)
    >>> after.rows.tolist(), after.classes.tolist()
    ([0, 2, 1], [0, 0, 1])
    """
    check_fraction("confidence_threshold", confidence_threshold)
    probs = check_matrix("gnn_probs", gnn_probs)
    classes, rows = np.nonzero((probs >= confidence_threshold).T)
    left = ~np.isin(anchors.classes, classes)
    rows = np.concatenate([rows, anchors.rows[left]])
    classes = np.concatenate([classes, anchors.classes[left]])
    order = np.lexsort((rows, classes))
    return Anchors(rows[order], classes[order], probs[rows[order], classes[order]])


def label_in_rounds(
    features: ArrayLike,
    adjacency: csr_array,
    anchors: Anchors,
    web_labels: ArrayLike | csr_array,
    *,
    n_classes: int,
    settings: Settings,
    progress: bool = False,
) -> tuple[Floats, Anchors]:
    """Label by graph `settings.rounds` times, each round from the anchors the last one found.

    The graph stays as it is. The paper finds that this helps only on a graph of strong features.

    Parameters
    ----------
    features, adjacency, anchors, web_labels, n_classes, settings, progress
        As in :func:`label_by_graph`.

    Returns
    -------
    gnn_probs : array of shape (n_images, n_classes)
        ``p_g`` of the last round.
    anchors : Anchors
        What the last round learned from.

    Examples
    --------
    >>> pair = csr_array([[0, 1.0, 0, 0], [1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]])
    >>> sure = Anchors(np.array([0, 2]), np.array([0, 1]), np.ones(2))
    >>> probs, grown = label_in_rounds([[1, 0], [1, 0], [0, 1], [0, 1]], pair, sure, [0, 1, 1, 1],
    ...                                n_classes=2, settings=Settings(rounds=2))
    >>> grown.rows.tolist()
    [0, 1, 2, 3]
    """
    gnn_probs = label_by_graph(
        features, adjacency, anchors, web_labels,
        n_classes=n_classes, settings=settings, progress=progress,
    )  # fmt: skip
    visual = check_matrix("features", features)
    unlabeled = csr_array((len(visual), n_classes), dtype=np.float32)
    for _ in range(settings.rounds - 1):
        anchors = grow_anchors(
            gnn_probs, anchors, confidence_threshold=settings.confidence_threshold
        )
        task = anchor_task(anchors, unlabeled, exclusive=np.ndim(web_labels) == 1)
        gnn_probs = spread(visual, adjacency, task, settings=settings, progress=progress)
    return gnn_probs, anchors
