"""Labels counted by class, and scores read in blocks, for all measures."""

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats, row_blocks
from vsgraph.common.checks import Floats, check_matrix, check_truth
from vsgraph.errors import InputError
from vsgraph.result.scores import TopScores

Truth: TypeAlias = ArrayLike | csr_array
AnyScores: TypeAlias = ArrayLike | TopScores


@dataclasses.dataclass(frozen=True, eq=False)
class ClassCounts:
    """How often each class was true, was given, and both, with the F1 scores that follow.

    A class that was never given has a precision of zero, and one that is never true a recall of
    zero. F1 is zero if both are.

    >>> counts = count_classes([[True, False], [True, True]], [0, 1])
    >>> counts.precision.tolist(), counts.recall.tolist()
    ([0.5, 1.0], [1.0, 1.0])
    >>> round(counts.c_f1, 3), round(counts.o_f1, 3)
    (0.857, 0.8)
    """

    n_true: Floats  # (n_classes,), images that show the class
    n_given: Floats  # images that were given it
    n_right: Floats  # both

    @property
    def precision(self) -> Floats:
        """Of the images given a class, the share that shows it, by class."""
        return _ratio(self.n_right, self.n_given)

    @property
    def recall(self) -> Floats:
        """Of the images that show a class, the share that was given it, by class."""
        return _ratio(self.n_right, self.n_true)

    @property
    def f1(self) -> Floats:
        """Harmonic mean of precision and recall, by class."""
        return _ratio(2 * self.n_right, self.n_given + self.n_true)

    @property
    def c_p(self) -> float:
        """Mean of the classes' precision (C-P)."""
        return float(self.precision.mean())

    @property
    def c_r(self) -> float:
        """Mean of the classes' recall (C-R)."""
        return float(self.recall.mean())

    @property
    def c_f1(self) -> float:
        """Harmonic mean of C-P and C-R: the paper's C-F1."""
        return harmonic_mean(self.c_p, self.c_r)

    @property
    def o_p(self) -> float:
        """Of all labels given, the share that is right (O-P)."""
        return float(_ratio(self.n_right.sum(), self.n_given.sum()))

    @property
    def o_r(self) -> float:
        """Of all true labels, the share that was given (O-R)."""
        return float(_ratio(self.n_right.sum(), self.n_true.sum()))

    @property
    def o_f1(self) -> float:
        """Harmonic mean of O-P and O-R (O-F1)."""
        return harmonic_mean(self.o_p, self.o_r)

    def to_dict(self) -> dict[str, float]:
        """Return the six summary numbers by name."""
        names = ("c_p", "c_r", "c_f1", "o_p", "o_r", "o_f1")
        return {name: getattr(self, name) for name in names}


def harmonic_mean(first: float, second: float) -> float:
    """Return ``2 a b / (a + b)``, zero if both are zero.

    >>> harmonic_mean(0.5, 1.0), harmonic_mean(0.0, 0.0)
    (0.6666666666666666, 0.0)
    """
    return 2 * first * second / (first + second) if first + second > 0 else 0.0


def count_classes(given: ArrayLike | csr_array, truth: Truth) -> ClassCounts:
    """Count true, given and right labels by class; `given` is a bool (n_images, n_classes) matrix.

    >>> count_classes([[True, False], [False, False]], [0, -1]).n_right.tolist()
    [1.0, 0.0]
    """
    if np.ndim(given) != 2:
        raise InputError(f"given must be a 2-d table of booleans, got {np.ndim(given)} dimensions")
    n_rows, n_classes = given.shape if isinstance(given, csr_array) else np.shape(given)
    labels = check_truth("given", given, n_rows=n_rows, n_classes=n_classes)
    shown = check_truth("truth", truth, n_rows=n_rows, n_classes=n_classes)
    return ClassCounts(*(per_class(table) for table in (shown, labels, shown * labels)))


def check_judged(scores: AnyScores, truth: Truth) -> tuple[Floats | TopScores, csr_array]:
    """Return checked scores, and the truth as a sparse matrix of the same shape."""
    table: Floats | TopScores
    if isinstance(scores, TopScores):
        table = scores
    else:
        table = check_matrix("scores", scores, keep_half=True)
    n_rows, n_classes = table.shape
    return table, check_truth("truth", truth, n_rows=n_rows, n_classes=n_classes)


def score_blocks(table: Floats | TopScores) -> Iterator[tuple[slice, Floats]]:
    """Yield dense blocks of scores with the slice of their rows."""
    for rows in row_blocks(len(table), row_bytes=16 * table.shape[1]):
        yield rows, as_floats(np.asarray(table[rows]))


def per_class(table: csr_array) -> Floats:
    """Return the sum of every column."""
    return np.asarray(table.sum(axis=0), np.float64)


def _ratio(part: Any, whole: Any) -> Floats:  # noqa: ANN401
    """Divide; the result is zero if there is nothing to divide by."""
    bottom = np.asarray(whole, np.float64)
    return np.divide(part, bottom, out=np.zeros_like(bottom), where=bottom > 0)
