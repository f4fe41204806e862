"""SimiFeat in short (Zhu, Dong and Liu, ICML 2022): wrong labels by the vote of neighbors alone.

Photos that look alike are taken to be of one class. How often a photo and its two nearest carry
which labels then tells how labels are confused (their "consensus" of order one to three). In every
class the photos that the vote supports least are flagged, as many as the confusion says are wrong.
Written from the paper, once over all photos: it repeats this over random crops, which we lack.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from threadpoolctl import threadpool_limits

import vsgraph

Array = NDArray[np.floating]
Labels = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class Flags:
    """What is flagged, by which score (high where a label is supported), and the vote itself."""

    flagged: NDArray[np.bool_]
    score: Array
    vote: Array


def simifeat(features: Array, labels: Labels, *, n_classes: int, k: int = 10) -> Flags:
    """Flag the labels that neighbors support least, class by class."""
    neighbors = vsgraph.nearest_neighbors(features, n_neighbors=k).rows
    with_own = np.column_stack([np.arange(len(labels)), neighbors])
    vote = np.eye(n_classes)[labels[with_own]].mean(axis=1)
    score = vote[np.arange(len(labels)), labels] / np.linalg.norm(vote, axis=1)
    right = share_right(np.column_stack([labels, labels[neighbors[:, :2]]]), n_classes)
    flagged = np.zeros(len(labels), bool)
    for c in range(n_classes):
        rows = np.flatnonzero(labels == c)
        n_wrong = round((1 - right[c]) * len(rows))
        flagged[rows[np.argsort(score[rows], kind="stable")[:n_wrong]]] = True
    return Flags(flagged, score, vote)


def share_right(triples: Labels, n_classes: int) -> Array:
    """Estimate from labels of a photo and its two nearest how often each label is right."""
    counted = np.zeros((n_classes,) * 3)
    np.add.at(counted, tuple(triples.T), 1 / len(triples))
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    third = np.mean([counted.transpose(order) for order in orders], axis=0)
    start = np.append(4 * np.eye(n_classes).ravel(), np.zeros(n_classes))
    with threadpool_limits(1):  # the tables are too small to share
        fitted = minimize(
            _misfit, start, args=(third,), jac=True, method="L-BFGS-B", options={"maxiter": 1000}
        )
    confusion, share = _probabilities(fitted.x, n_classes)
    return np.diag(confusion) * share / np.maximum(share @ confusion, 1e-12)


def _probabilities(flat: Array, n_classes: int) -> tuple[Array, Array]:
    """Return P(label | class), one row per class, and P(class)."""
    return softmax(flat[:-n_classes].reshape(n_classes, -1), axis=1), softmax(flat[-n_classes:])


def _misfit(flat: Array, third: Array) -> tuple[float, Array]:
    """Compare what the confusion predicts with what was counted, in all three orders."""
    n_classes = len(third)
    confusion, share = _probabilities(flat, n_classes)
    pairs = (confusion[:, :, None] * confusion[:, None, :]).reshape(n_classes, -1)
    gap_3 = (confusion.T * share) @ pairs - third.reshape(n_classes, -1)
    gap_2 = (share @ pairs).reshape(n_classes, -1) - third.sum(axis=2)
    gap_1 = share @ confusion - third.sum(axis=(1, 2))
    at_3, at_2 = pairs @ gap_3.T, confusion @ gap_2
    by_confusion = 2 * share[:, None] * (3 * at_3 + 2 * at_2 + gap_1)
    by_share = 2 * (confusion * (at_3 + at_2 + gap_1)).sum(axis=1)
    slope = confusion * (by_confusion - (by_confusion * confusion).sum(axis=1, keepdims=True))
    slope_share = share * (by_share - by_share @ share)
    loss = (gap_3**2).sum() + (gap_2**2).sum() + (gap_1**2).sum()
    scale = 1e3  # the shares are small numbers; the search stops by absolute slopes
    return scale * float(loss), scale * np.append(slope.ravel(), slope_share)
