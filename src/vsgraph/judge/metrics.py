"""The paper's measures: top-k accuracy, F1 of several labels per image, open-set precision.

Scores are an array of shape (n_images, n_classes) or :class:`TopScores`, and are read in blocks.
The truth is one class number per image, -1 if it shows no class, or a boolean matrix, dense or
sparse, of all classes that each image shows. docs/metrics.md has the formulas.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats, row_blocks
from vsgraph.common.checks import Floats, check_at_least, check_fraction, check_number, check_one_of
from vsgraph.errors import InputError
from vsgraph.judge.counts import (
    AnyScores,
    ClassCounts,
    Truth,
    check_judged,
    count_classes,
    harmonic_mean,
    per_class,
    score_blocks,
)
from vsgraph.judge.ranking import (
    Calibration,
    auroc,
    average_precisions,
    calibration,
    macro_map,
    precision_at,
)
from vsgraph.result.scores import TopScores

Reading = Literal["highest", "every"]
READINGS: tuple[str, ...] = get_args(Reading)
THRESHOLD = 0.2  # the paper's, for images of none of the classes
TOP = 3  # the paper's K

__all__ = [
    "Accuracy",
    "Calibration",
    "ClassCounts",
    "accuracy",
    "auroc",
    "average_accuracy",
    "average_precisions",
    "calibration",
    "count_classes",
    "f1_at_top",
    "harmonic_mean",
    "macro_map",
    "open_set",
    "precision_at",
    "top_k_accuracy",
]


class Accuracy(NamedTuple):
    """Share of images with the true class as the likeliest, and among the five likeliest.

    >>> average_accuracy(Accuracy(0.5, 0.75), Accuracy(0.5, 1.0))
    0.6875
    """

    top_1: float
    top_5: float


def top_k_accuracy(scores: AnyScores, truth: Truth, *, k: int = 1) -> float:
    """Return the share of images whose true class is among their `k` highest scores.

    Images that show no class are left out; of several, one is enough. Ties go to the lower class
    number. NaN if no image shows any class.

    >>> top_k_accuracy([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], [2, 0])
    0.5
    >>> top_k_accuracy([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], [2, 0], k=2)
    1.0
    """
    table, shown = check_judged(scores, truth)
    best = _top_classes(table, k)
    hits = sum(int(_shows(shown[rows], top).any(axis=1).sum()) for rows, top in best)
    n_shown = int((np.diff(shown.indptr) > 0).sum())
    return hits / n_shown if n_shown else np.nan


def accuracy(scores: AnyScores, truth: Truth) -> Accuracy:
    """Return top-1 and top-5 accuracy.

    >>> accuracy(np.eye(6), [0, 1, 2, 3, 4, 0])
    Accuracy(top_1=0.8333333333333334, top_5=1.0)
    """
    return Accuracy(top_k_accuracy(scores, truth, k=1), top_k_accuracy(scores, truth, k=5))


def average_accuracy(*sets: tuple[float, float]) -> float:
    """Return the mean of the top-1 and top-5 accuracies of several data sets.

    The paper's hyperparameter figure shows it for the validation sets of WebVision and ImageNet.

    >>> round(average_accuracy((68.14, 84.46), (63.16, 81.45)), 2)
    74.3
    """
    if not sets or any(len(pair) != 2 for pair in sets):
        raise InputError("average_accuracy takes a pair (top-1, top-5) for each data set")
    return float(np.mean(sets))


def f1_at_top(scores: AnyScores, truth: Truth, *, k: int = TOP) -> ClassCounts:
    """Count labels if each image is given its `k` likeliest classes (C-F1, O-F1 of NUS-81-Web).

    Ties go to the lower class number. An image that shows no class lowers precision.

    >>> f1_at_top([[0.9, 0.5, 0.1], [0.1, 0.8, 0.7]], [[1, 0, 0], [0, 1, 1]], k=2).o_f1
    0.8571428571428571
    """
    table, shown = check_judged(scores, truth)
    given = np.zeros(shown.shape[1])
    right = np.zeros(shown.shape[1])
    for rows, top in _top_classes(table, k):
        hit = _shows(shown[rows], top)
        given += np.bincount(top.ravel(), minlength=len(given))
        right += np.bincount(top.ravel(), weights=hit.ravel(), minlength=len(given))
    return ClassCounts(per_class(shown), given, right)


def open_set(
    scores: AnyScores, truth: Truth, *, reading: Reading, threshold: float = THRESHOLD
) -> ClassCounts:
    """Count labels above a threshold, among images of known and of unknown classes.

    In the paper, an image is "classified into the predicted category" if its confidence is beyond
    0.2. `reading` is 'highest' (give the likeliest class if its score is above the threshold) or
    'every' (give every class above it); the paper's table fits 'every' better, see docs/metrics.md.

    >>> scores, truth = [[0.6, 0.3], [0.1, 0.15], [0.5, 0.1]], [1, 1, -1]
    >>> open_set(scores, truth, reading="highest").n_right.tolist()
    [0.0, 0.0]
    >>> open_set(scores, truth, reading="every").n_right.tolist()
    [0.0, 1.0]
    """
    check_one_of("reading", reading, READINGS)
    check_fraction("threshold", threshold)
    table, shown = check_judged(scores, truth)
    given, right = np.zeros(shown.shape[1]), np.zeros(shown.shape[1])
    for rows, block in score_blocks(table):
        passed = block > threshold
        if reading == "highest":
            passed &= np.arange(block.shape[1]) == block.argmax(axis=1)[:, None]
        given += passed.sum(axis=0)
        right += per_class(csr_array(passed) * shown[rows])
    return ClassCounts(per_class(shown), given, right)


def _top_classes(
    table: Floats | TopScores, k: int
) -> Iterator[tuple[slice, NDArray[np.integer[Any]]]]:
    """Yield the classes of the k highest scores, ties by class, one block of rows at a time."""
    check_at_least("k", check_number("k", k, int), 1)
    k = min(k, table.shape[1])
    if isinstance(table, TopScores) and table.classes.shape[1] < k:
        raise InputError(
            f"k must be at most the number of scores kept, {table.classes.shape[1]}, got {k}"
        )
    for rows in row_blocks(len(table), row_bytes=16 * table.shape[1]):
        if isinstance(table, TopScores):
            yield rows, table.classes[rows, :k]
            continue
        block = as_floats(np.array(table[rows]))
        best = np.empty((len(block), k), np.intp)
        for place in range(k):
            best[:, place] = block.argmax(axis=1)
            np.put_along_axis(block, best[:, place : place + 1], -np.inf, axis=1)
        yield rows, best


def _shows(shown: csr_array, classes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return which of its given classes each image of a block shows."""
    return np.take_along_axis(shown.toarray() > 0, classes.astype(np.intp), axis=1)
