"""Measures of ranking: whether higher scores are more often right."""

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats, check_at_least, check_number, check_vector, mean_ranks
from vsgraph.errors import InputError
from vsgraph.judge.counts import AnyScores, Truth, check_judged, score_blocks
from vsgraph.result.scores import TopScores

N_BINS = 15


def average_precisions(scores: AnyScores, truth: Truth) -> Floats:
    """Return the average precision of each class, (n_classes,): the mean precision at its images.

    Precision at an image is the share that shows the class among all images with at least its
    score; NaN for a class that no image shows. The result is exact, also with ties. It takes two
    passes over blocks of rows; only the scores of true labels are held in memory.

    >>> average_precisions([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0]).round(3).tolist()
    [0.833, 0.5]
    """
    table, shown = check_judged(scores, truth)
    n_classes = shown.shape[1]
    positive = [np.sort(column) for column in _scores_of_true(table, shown)]
    reached = [np.zeros(len(column) + 1) for column in positive]
    for _, block in score_blocks(table):
        for c in range(n_classes):
            n_reached = np.searchsorted(positive[c], block[:, c], side="right")
            reached[c] += np.bincount(n_reached, minlength=len(reached[c]))
    pairs = zip(positive, reached, strict=True)
    return np.array([_mean_precision(column, counts) for column, counts in pairs])


def macro_map(scores: AnyScores, truth: Truth) -> float:
    """Return the mean average precision (mAP), leaving out classes that no image shows.

    >>> macro_map([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    0.6666666666666666
    """
    precisions = average_precisions(scores, truth)
    known = precisions[~np.isnan(precisions)]
    return float(known.mean()) if len(known) else np.nan


def _scores_of_true(table: Floats | TopScores, shown: csr_array) -> list[Floats]:
    """Return the scores of each class at the images that show it."""
    classes, scores = [], []
    for rows, block in score_blocks(table):
        pairs = shown[rows].tocoo()
        classes.append(pairs.col)
        scores.append(block[pairs.row, pairs.col])
    owner, values = np.concatenate(classes), np.concatenate(scores)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=shown.shape[1]))[:-1]
    return np.split(values[order], ends)


def _mean_precision(positive: Floats, reached: Floats) -> float:
    """Average the precision at each of the sorted scores of true labels."""
    if not len(positive):
        return np.nan
    at_least = np.cumsum(reached[::-1])[::-1][1:]
    first = np.searchsorted(positive, positive, side="left")
    return float(((len(positive) - first) / at_least[first]).mean())


def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return how often a positive has a higher score than a negative; ties count half.

    Both have shape (n_images,). NaN if all images are of one kind.

    >>> auroc([0.9, 0.8, 0.3, 0.3], [True, False, True, False])
    0.625
    """
    values, is_positive = _pair("score", score, "positive", positive)
    n_positive = int(is_positive.sum())
    n_negative = len(values) - n_positive
    if not n_positive or not n_negative:
        return np.nan
    wins = mean_ranks(values)[is_positive].sum() - n_positive * (n_positive + 1) / 2
    return float(wins / (n_positive * n_negative))


def precision_at(confidence: ArrayLike, right: ArrayLike, *, kept: float) -> float:
    """Return the share that is right among the most confident `kept` (above 0, at most 1) of all.

    Both arrays have shape (n_images,). Images are rounded up; those with equal values at the border
    count by their mean. NaN if there are no images.

    >>> precision_at([0.9, 0.8, 0.7, 0.1], [True, True, False, True], kept=0.5)
    1.0
    """
    values, is_right = _pair("confidence", confidence, "right", right)
    if not 0 < kept <= 1:
        raise InputError(f"kept must be a share above 0 and at most 1, got {kept}")
    if not len(values):
        return np.nan
    n_kept = int(np.ceil(kept * len(values) - 1e-9))
    border = -np.partition(-values, n_kept - 1)[n_kept - 1]
    above, at = values > border, values == border
    return float((is_right[above].sum() + (n_kept - above.sum()) * is_right[at].mean()) / n_kept)


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """The reliability table: how often labels are right, by confidence.

    >>> table = calibration([0.9, 0.8, 0.3], [True, False, False], n_bins=2)
    >>> table.counts.tolist(), table.accuracy.tolist(), round(table.error, 3)
    ([1, 2], [0.0, 0.5], 0.333)
    """

    edges: Floats  # (n_bins + 1,); a bin includes its upper edge, and the first also its lower one
    counts: NDArray[np.intp]  # (n_bins,), images in each bin
    confidence: Floats  # (n_bins,), their mean confidence, NaN if there are none
    accuracy: Floats  # (n_bins,), the share of right labels, NaN if there are none

    @property
    def error(self) -> float:
        """Expected calibration error: mean gap of confidence and accuracy, weighted by images."""
        filled = self.counts > 0
        gaps = np.abs(self.confidence - self.accuracy)[filled]
        return float(np.average(gaps, weights=self.counts[filled])) if len(gaps) else np.nan

    def to_rows(self) -> list[dict[str, float]]:
        """Return the bins that hold images."""
        return [
            {
                "from": float(self.edges[i]),
                "to": float(self.edges[i + 1]),
                "images": int(self.counts[i]),
                "confidence": float(self.confidence[i]),
                "right": float(self.accuracy[i]),
            }
            for i in np.flatnonzero(self.counts)
        ]


def calibration(confidence: ArrayLike, right: ArrayLike, *, n_bins: int = N_BINS) -> Calibration:
    """Compare confidence with the share of right labels, both (n_images,), in bins of equal width.

    >>> round(calibration([0.75, 0.75, 0.75, 0.75], [True, True, True, False]).error, 6)
    0.0
    """
    check_at_least("n_bins", check_number("n_bins", n_bins, int), 1)
    values, is_right = _pair("confidence", confidence, "right", right)
    if ((values < 0) | (values > 1 + 1e-6)).any():
        raise InputError("confidence must lie between 0 and 1")
    edges = np.linspace(0, 1, n_bins + 1)
    place = np.searchsorted(edges[1:-1], values)
    counts = np.bincount(place, minlength=n_bins)
    sums = [np.bincount(place, weights=w, minlength=n_bins) for w in (values, is_right)]
    nothing = np.full(n_bins, np.nan)
    means = [np.divide(s, counts, out=nothing.copy(), where=counts > 0) for s in sums]
    return Calibration(edges, counts, *means)


def _pair(
    name: str, values: ArrayLike, other: str, marks: ArrayLike
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return numbers and marks of equal length."""
    numbers = check_vector(name, values, length=np.size(values), dtype=np.float64)
    if np.isnan(numbers).any():
        raise InputError(f"{name} must be numbers, but holds NaN")
    return numbers, check_vector(other, marks, length=len(numbers), dtype=bool)
