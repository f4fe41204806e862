"""Checks of arguments, made once, in the public functions.

Each check takes the name and value of an argument. It returns the value in the form that the code
works with, or raises :class:`~vsgraph.errors.InputError` with the name, the rule, the first
offending rows and what to do.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from vsgraph.common.blocks import row_blocks
from vsgraph.errors import InputError, is_meant

Floats = NDArray[np.floating[Any]]

ROUNDING_OF_HALF = 1e-3


def name_rows(mask: NDArray[np.bool_], *, shown: int = 5) -> str:
    """Name the first rows where `mask` holds and count the rest.

    >>> name_rows(np.array([False, True, True]))
    'rows 1, 2'
    >>> name_rows(np.ones(8, bool), shown=2)
    'rows 0, 1 and 6 more'
    """
    rows = np.flatnonzero(mask)
    listed = ", ".join(map(str, rows[:shown]))
    rest = f" and {len(rows) - shown} more" if len(rows) > shown else ""
    return f"row{'s' if len(rows) > 1 else ''} {listed}{rest}"


def check_matrix(
    name: str,
    value: ArrayLike,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
    nan_rows_are_missing: bool = False,
    keep_half: bool = False,
) -> Floats:
    """Return a finite 2-d float array; fp16 becomes float32 and integers become float64.

    With `nan_rows_are_missing`, rows that are all NaN mean "not there" and become zero. With
    `keep_half`, fp16 stays fp16, for code that reads blocks.
    """
    array = _as_floats(name, value, keep_half=keep_half)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{name} must be a non-empty 2-d array, got shape {array.shape}")
    if n_rows is not None and len(array) != n_rows:
        raise InputError(f"{name} must have one row per image: expected {n_rows}, got {len(array)}")
    if n_columns is not None and array.shape[1] != n_columns:
        raise InputError(
            f"{name} must have {n_columns} columns, got {array.shape[1]}: probabilities have one "
            "per class; texts and labels must come from the same encoder"
        )
    bad = ~_rows_where(array, lambda block: np.isfinite(block).all(axis=1))
    if nan_rows_are_missing and bad.any():
        missing: NDArray[np.bool_] = np.asarray(np.isnan(array).all(axis=1))
        array = np.where(missing[:, None], np.zeros((), array.dtype), array)
        bad &= ~missing
    if bad.any():
        raise InputError(
            f"{name} has NaN or infinite values in {name_rows(bad)}; replace them (use a row of "
            "zeros for an image without picture or text)"
        )
    return array


def _rows_where(array: Floats, holds: Callable[[Floats], Any]) -> NDArray[np.bool_]:
    """Return which rows pass a test, one block at a time."""
    blocks = row_blocks(len(array), row_bytes=4 * array.shape[1])
    return np.concatenate([holds(array[rows]) for rows in blocks])


def _as_floats(name: str, value: ArrayLike, *, keep_half: bool) -> Floats:
    """Return `value` as a float array, copied only if the type must change."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers with rows of equal length") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must be an array of numbers, got {array.dtype}")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype.itemsize < 4 and not keep_half else array


def check_meanings(name: str, value: ArrayLike) -> Floats:
    """Return label embeddings; every class must have a meaning."""
    meanings = check_matrix(name, value)
    empty = ~filled_rows(meanings)
    if empty.any():
        raise InputError(f"{name} is zero in {name_rows(empty)}; every class needs a description")
    return meanings


def check_vector(name: str, value: ArrayLike, *, length: int, dtype: type[Any]) -> NDArray[Any]:
    """Return a 1-d array of a given length and type."""
    try:
        vector = np.asarray(value).astype(dtype)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a 1-d array of {dtype.__name__}") from error
    if vector.shape != (length,):
        raise InputError(f"{name} must have shape ({length},), got {vector.shape}")
    return vector


def check_probs(
    name: str, value: ArrayLike, *, shape: tuple[int, int], keep_half: bool = False
) -> Floats:
    """Return a float array of the given shape with every value in 0..1."""
    probs = check_matrix(name, value, n_rows=shape[0], n_columns=shape[1], keep_half=keep_half)
    most = 1 + (ROUNDING_OF_HALF if probs.dtype.itemsize < 4 else 1e-6)
    bad = ~_rows_where(probs, lambda block: ((block >= 0) & (block <= most)).all(axis=1))
    if bad.any():
        raise InputError(
            f"{name} must be probabilities between 0 and 1, but are not in {name_rows(bad)}; "
            "apply a softmax or sigmoid to scores first"
        )
    return probs


def label_matrix(labels: NDArray[Any], n_classes: int, dtype: type[Any] = np.float32) -> csr_array:
    """Return labels of either shape as a sparse matrix of ones, (n_images, n_classes).

    Labels are class numbers, -1 for none, or a table of booleans.

    >>> label_matrix(np.array([1, -1]), 2).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    if labels.ndim == 2:
        return csr_array(labels.astype(dtype))
    given = labels >= 0
    starts = np.concatenate([[0], np.cumsum(given)])
    return csr_array((np.ones(starts[-1], dtype), labels[given], starts), (len(labels), n_classes))


def check_labels(
    name: str, value: ArrayLike | csr_array, *, n_rows: int, n_classes: int
) -> csr_array:
    """Return labels of either shape as one sparse matrix of ones, (n_rows, n_classes).

    >>> check_labels("web_labels", [1, 0], n_rows=2, n_classes=2).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> check_labels("web_labels", [[True, True]], n_rows=1, n_classes=2).toarray().tolist()
    [[1.0, 1.0]]
    """
    try:
        labels: Any = value if issparse(value) else np.asarray(value)
    except ValueError as error:
        raise InputError(
            f"{name} must be class indices, or a ({n_rows}, {n_classes}) table of booleans if "
            "images have several labels, but not lists of different lengths"
        ) from error
    if labels.ndim not in {1, 2} or labels.shape[0] != n_rows:
        raise InputError(
            f"{name} must have one entry per image: ({n_rows},) whole numbers or ({n_rows}, "
            f"{n_classes}) booleans, got shape {labels.shape}"
        )
    if labels.ndim == 2:
        return _check_label_matrix(name, labels, n_classes=n_classes)
    if labels.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be whole numbers (class indices), got {labels.dtype}; number the classes "
            "in the order of the label embeddings"
        )
    _check_range(name, labels, 0, n_classes)
    return label_matrix(labels, n_classes)


def _check_range(name: str, labels: NDArray[Any], lowest: int, n_classes: int) -> None:
    """Raise an error if a class number is too low or too high."""
    bad = (labels < lowest) | (labels >= n_classes)
    if bad.any():
        raise InputError(
            f"{name} must lie in {lowest}..{n_classes - 1}, got {labels.min()}..{labels.max()} "
            f"({name_rows(bad)}), for {n_classes} classes"
        )


def _check_label_matrix(name: str, labels: Any, *, n_classes: int) -> csr_array:  # noqa: ANN401
    """Return a multi-label matrix as a sparse matrix of ones."""
    if labels.shape[1] != n_classes:
        raise InputError(f"{name} must have {n_classes} columns, one per class, got {labels.shape}")
    if labels.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold only True and False, got {labels.dtype}")
    matrix = csr_array(labels, copy=True)
    if not np.isin(matrix.data, (0, 1)).all():
        raise InputError(f"{name} must hold only True and False (or 0 and 1) when it is 2-d")
    matrix.eliminate_zeros()
    return csr_array((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), matrix.shape)


def check_truth(
    name: str, value: ArrayLike | csr_array, *, n_rows: int, n_classes: int
) -> csr_array:
    """Return what images really show as a sparse matrix of ones, (n_rows, n_classes).

    Like :func:`check_labels`, but an image may show no class: -1, or a row of False.

    >>> check_truth("truth", [1, -1], n_rows=2, n_classes=2).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    if issparse(value) or np.ndim(value) != 1:
        return check_labels(name, value, n_rows=n_rows, n_classes=n_classes)
    labels = np.asarray(value)
    if labels.dtype.kind not in "iu" or labels.shape != (n_rows,):
        raise InputError(
            f"{name} must be ({n_rows},) whole numbers, -1 for an image that shows no class, or "
            f"a ({n_rows}, {n_classes}) table of booleans; got {labels.dtype} {labels.shape}"
        )
    _check_range(name, labels, -1, n_classes)
    return label_matrix(labels, n_classes)


def check_at_least(name: str, value: float, low: float) -> None:
    """Raise an error if a number is below `low` or infinite."""
    if not low <= value < math.inf:
        raise InputError(f"{name} must be at least {low} and finite, got {value}")


def check_number(name: str, value: object, kind: type[int] | type[float]) -> int | float:
    """Return a plain Python int or float; a float is never accepted as an int."""
    try:
        return operator.index(value) if kind is int else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{name} must be {what}, got {value!r}") from error


def check_fraction(name: str, value: float) -> None:
    """Raise an error if a number is outside 0..1."""
    if not 0 <= value <= 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value}")


def check_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise an error if a word is not one of `choices`."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_known(kind: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise an error at the first name that is not known, with the name that may be meant.

    >>> check_known("setting", ["neighbours"], ["n_neighbors"])
    Traceback (most recent call last):
    vsgraph.errors.InputError: unknown setting 'neighbours'; did you mean n_neighbors?
    """
    for name in sorted(set(names) - set(known)):
        meant = is_meant(name, known)
        hint = f"did you mean {meant}?" if meant else f"known: {', '.join(known)}"
        raise InputError(f"unknown {kind} {name!r}; {hint}")


def filled_rows(array: Floats) -> NDArray[np.bool_]:
    """Return which rows hold anything; a row of zeros means "not there"."""
    return np.asarray(array.any(axis=1))


def mean_ranks(values: NDArray[Any]) -> Floats:
    """Return the rank of each value from 1; equal values share their mean rank.

    >>> mean_ranks(np.array([5, 2, 5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def unit_rows(array: Floats) -> Floats:
    """Scale every row to length one; a row of zeros stays zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    largest = np.abs(array).max(axis=1, keepdims=True)
    scaled = array / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1)
