"""How good probabilities of labels are: ranking, calibration, and what is left at a purity."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.floating]
Mask = NDArray[np.bool_]


def auroc(score: Array, positive: Mask) -> float:
    """Return the area under the ROC curve; NaN if all are alike."""
    n_positive = int(positive.sum())
    n_others = len(positive) - n_positive
    if not n_positive or not n_others:
        return float("nan")
    ranks = rankdata(score)[positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_others))


def coverage_at(score: Array, right: Mask, share: float) -> float:
    """Return the largest part, best scores first, of which so many are right."""
    order = np.argsort(-score, kind="stable")
    shares = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(shares >= share)
    return float(enough[-1] + 1) / len(order) if len(enough) else 0.0


def calibration_error(confidence: Array, right: Mask, n_bins: int = 10) -> float:
    """Return the mean distance of confidence and share of right labels, over equal bins."""
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    parts = [bins == b for b in range(n_bins) if (bins == b).any()]
    return float(sum(p.mean() * abs(confidence[p].mean() - right[p].mean()) for p in parts))


def ranked_by_confidence(probs: Array, shown: Mask, web_labels: NDArray[np.intp]) -> str:
    """Return the measures in one line."""
    rows = np.arange(len(probs))
    best, confidence = probs.argmax(axis=1), probs.max(axis=1)
    right, in_set = shown[rows, best], shown.any(axis=1)
    return (
        f"coverage at 90 % {coverage_at(confidence, right, 0.9):.3f}, "
        f"at 95 % {coverage_at(confidence, right, 0.95):.3f}, "
        f"AUROC right {auroc(confidence, right):.3f}, "
        f"wrong web labels {auroc(probs[rows, web_labels], shown[rows, web_labels]):.3f}, "
        f"likeliest right {right[in_set].mean():.3f}, "
        f"calibration {calibration_error(confidence, right):.3f}"
    )
