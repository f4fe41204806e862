"""Section 4.5: confident graph labels become the anchors of the next round."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, check_fraction, check_matrix
from vsgraph.method.linear_fit import anchor_task, check_task
from vsgraph.method.network import Network, train
from vsgraph.result.parts import Anchors
from vsgraph.settings import Settings

Pairs = tuple[NDArray[np.intp], NDArray[np.intp], Floats]


def grow_anchors(
    gnn_probs: ArrayLike | Network, anchors: Anchors, *, confidence_threshold: float
) -> Anchors:
    """Make every image the graph is sure of an anchor of the class it is sure of.

    A class of which the graph is sure nowhere keeps the anchors it had, so that no class is lost.

    Parameters
    ----------
    gnn_probs : array or Network of shape (n_images, n_classes)
        ``p_g`` of the round before; read in blocks.
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
    given = gnn_probs if isinstance(gnn_probs, Network) else check_matrix("gnn_probs", gnn_probs)
    sure: list[Pairs] = []
    for block in row_blocks(len(given), row_bytes=8 * given.shape[1]):
        probs = given[block]
        rows, classes = np.nonzero(probs >= confidence_threshold)
        sure.append((rows + block.start, classes, probs[rows, classes]))
    left = ~np.isin(anchors.classes, np.concatenate([classes for _, classes, _ in sure]))
    rows, classes = anchors.rows[left], anchors.classes[left]
    if left.any():
        sure.append((rows, classes, given[rows][np.arange(len(rows)), classes]))
    rows, classes, match = (np.concatenate([pairs[i] for pairs in sure]) for i in range(3))
    order = np.lexsort((rows, classes))
    return Anchors(rows[order], classes[order], match[order])


def label_in_rounds(
    features: ArrayLike,
    adjacency: csr_array,
    anchors: Anchors,
    web_labels: ArrayLike | csr_array,
    *,
    n_classes: int,
    settings: Settings,
    progress: bool = False,
) -> tuple[Network, Anchors]:
    """Label by graph `settings.rounds` times, each round from the anchors the last one found.

    The graph stays as it is. The paper finds that this helps only on a graph of strong features.

    Parameters
    ----------
    features, adjacency, anchors, web_labels, n_classes, settings, progress
        As in :func:`label_by_graph`.

    Returns
    -------
    network : Network
        That of the last round, of shape (n_images, n_classes); ``network[rows]`` is its ``p_g``.
    anchors : Anchors
        What the last round learned from.

    Examples
    --------
    >>> pair = csr_array([[0, 1.0, 0, 0], [1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]])
    >>> sure = Anchors(np.array([0, 2]), np.array([0, 1]), np.ones(2))
    >>> network, grown = label_in_rounds([[1, 0], [1, 0], [0, 1], [0, 1]], pair, sure, [0, 1, 1, 1],
    ...                                n_classes=2, settings=Settings(rounds=2))
    >>> grown.rows.tolist()
    [0, 1, 2, 3]
    """
    visual = check_matrix("features", features, n_rows=adjacency.shape[0], keep_half=True)
    exclusive = np.ndim(web_labels) == 1
    labels = check_task(anchors, web_labels, n_rows=len(visual), n_classes=n_classes)
    task = anchor_task(anchors, labels, exclusive=exclusive)
    network = train(visual, adjacency, task, settings=settings, progress=progress)
    unlabeled = csr_array(labels.shape, dtype=np.float32)
    threshold = settings.confidence_threshold
    for _ in range(settings.rounds - 1):
        anchors = grow_anchors(network, anchors, confidence_threshold=threshold)
        task = anchor_task(anchors, unlabeled, exclusive=exclusive)
        network = train(visual, adjacency, task, settings=settings, progress=progress)
    return network, anchors
