"""Measures of order: whether what has a higher score is more often right."""

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.stats import rankdata

from vsgraph.common.checks import Floats, check_at_least, check_number, check_vector
from vsgraph.errors import InputError
from vsgraph.judge.counts import AnyScores, Truth, check_judged, score_blocks
from vsgraph.result.scores import TopScores

N_BINS = 15


def average_precisions(scores: AnyScores, truth: Truth) -> Floats:
    """Return the average precision of each class: the mean, over its images, of precision there.

    Precision at an image is the share of images with at least its score that show the class. Exact,
    ties included, in two passes over blocks; only the scores of true labels are held.

    Parameters
    ----------
    scores : array or TopScores of shape (n_images, n_classes)
        What the images are ranked by, class by class.
    truth : int array of shape (n_images,) or bool matrix of shape (n_images, n_classes)
        What each image shows.

    Returns
    -------
    precisions : array of shape (n_classes,)
        NaN for a class that no image shows.

    Examples
    --------
    >>> average_precisions([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0]).round(3).tolist()
    [0.833, 0.5]
    """
    table, shown = check_judged(scores, truth)
    n_classes = shown.shape[1]
    positive = [np.sort(column) for column in _scores_of_true(table, shown)]
    reached = [np.zeros(len(column) + 1) for column in positive]
    for _, block in score_blocks(table):
        for c in range(n_classes):
            reached[c] += _reach(positive[c], block[:, c])
    pairs = zip(positive, reached, strict=True)
    return np.array([_mean_precision(column, counts) for column, counts in pairs])


def macro_map(scores: AnyScores, truth: Truth) -> float:
    """Return the mean of the classes' average precision (mAP); classes without images left out.

    >>> macro_map([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    0.6666666666666666
    """
    precisions = average_precisions(scores, truth)
    known = precisions[~np.isnan(precisions)]
    return float(known.mean()) if len(known) else np.nan


def micro_map(scores: AnyScores, truth: Truth) -> float:
    """Return the average precision of all pairs of image and class ranked together.

    Some authors call this mAP; it asks that scores be comparable between classes.

    >>> round(micro_map([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0]), 3)
    0.756
    """
    table, shown = check_judged(scores, truth)
    positive = np.sort(np.concatenate(_scores_of_true(table, shown)))
    reached = np.zeros(len(positive) + 1)
    for _, block in score_blocks(table):
        reached += _reach(positive, block.ravel())
    return _mean_precision(positive, reached)


def _scores_of_true(table: Floats | TopScores, shown: csr_array) -> list[Floats]:
    """Return the scores of each class at the images that show it."""
    classes, found = [], []
    for rows, block in score_blocks(table):
        pairs = shown[rows].tocoo()
        classes.append(pairs.col)
        found.append(block[pairs.row, pairs.col])
    owner, values = np.concatenate(classes), np.concatenate(found)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=shown.shape[1]))[:-1]
    return np.split(values[order], ends)


def _reach(thresholds: Floats, values: Floats) -> NDArray[np.intp]:
    """Count values by how many of the sorted thresholds each reaches."""
    reached = np.searchsorted(thresholds, values, side="right")
    return np.bincount(reached, minlength=len(thresholds) + 1)


def _mean_precision(positive: Floats, reached: Floats) -> float:
    """Average the precision at each of the sorted scores of true labels."""
    if not len(positive):
        return np.nan
    at_least = np.cumsum(reached[::-1])[::-1][1:]
    true_at_least = len(positive) - np.searchsorted(positive, positive, side="left")
    first = np.searchsorted(positive, positive, side="left")
    return float((true_at_least / at_least[first]).mean())


def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Return how often a positive has a higher score than a negative; ties count half.

    Parameters
    ----------
    score : array of shape (n_images,)
        What is ranked.
    positive : bool array of shape (n_images,)
        What should be ranked high.

    Returns
    -------
    area : float
        One if the order is perfect, one half if it says nothing, NaN if either kind is missing.

    Examples
    --------
    >>> auroc([0.9, 0.8, 0.3, 0.3], [True, False, True, False])
    0.625
    """
    values, is_positive = _pair("score", score, "positive", positive)
    n_positive = int(is_positive.sum())
    n_negative = len(values) - n_positive
    if not n_positive or not n_negative:
        return np.nan
    wins = rankdata(values)[is_positive].sum() - n_positive * (n_positive + 1) / 2
    return float(wins / (n_positive * n_negative))


def precision_at(confidence: ArrayLike, right: ArrayLike, *, kept: float) -> float:
    """Return the share that is right among the most confident `kept` of all.

    Parameters
    ----------
    confidence : array of shape (n_images,)
        What is kept first. Of equal ones at the border, an average one is kept.
    right : bool array of shape (n_images,)
        What counts.
    kept : float
        Share kept, above 0 and at most 1; rounded up to whole images.

    Returns
    -------
    precision : float
        NaN if there are no images.

    Examples
    --------
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
    """How often labels of a confidence are right: the reliability table.

    Attributes
    ----------
    edges : float array of shape (n_bins + 1,)
        Bins of confidence, each without its lower edge (the first with it).
    counts : int array of shape (n_bins,)
        Images in each.
    confidence, accuracy : float array of shape (n_bins,)
        Mean confidence and share right in each; NaN in an empty bin.

    Examples
    --------
    >>> table = calibration([0.9, 0.8, 0.3], [True, False, False], n_bins=2)
    >>> table.counts.tolist(), table.accuracy.tolist(), round(table.error, 3)
    ([1, 2], [0.0, 0.5], 0.333)
    """

    edges: Floats
    counts: NDArray[np.intp]
    confidence: Floats
    accuracy: Floats

    @property
    def error(self) -> float:
        """Expected calibration error: mean gap of confidence and accuracy, weighted by images."""
        filled = self.counts > 0
        if not filled.any():
            return np.nan
        gaps = np.abs(self.confidence - self.accuracy)[filled]
        return float(np.average(gaps, weights=self.counts[filled]))

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
    """Compare confidence with how often it is right, in bins of equal width.

    Parameters
    ----------
    confidence : array of shape (n_images,)
        Probabilities, 0 to 1.
    right : bool array of shape (n_images,)
        Whether each label is right.
    n_bins : int
        Number of bins.

    Returns
    -------
    calibration : Calibration
        The reliability table and the expected calibration error.

    Examples
    --------
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
