"""Which images of each class stayed, left, were rejected, and which came in."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

Rows = NDArray[np.intp]


@dataclasses.dataclass(frozen=True, eq=False)
class Tally:
    """What became of the images of one class, as rows in ascending order.

    Attributes
    ----------
    number : int
        The class.
    found : int array
        Images with this web label.
    kept, left, rejected : int array
        Those that still have it, that lost it to another class, that have no label any more.
    came : int array
        Images of other web labels that have it now.
    """

    number: int
    found: Rows
    kept: Rows
    left: Rows
    rejected: Rows
    came: Rows

    @property
    def changed(self) -> float:
        """Share of the images found that did not stay."""
        return 1 - len(self.kept) / len(self.found) if len(self.found) else 0.0


class Labels:
    """Web and final labels of either shape, by image and by class.

    Parameters
    ----------
    correction : Correction
        Single-label or multi-label.
    """

    def __init__(self, correction: Correction) -> None:
        n_classes = len(correction.class_names)
        self.web = _as_sparse(correction.web_labels, n_classes)
        self.final = _as_sparse(correction.final_labels, n_classes)
        self._of_web, self._of_final = self.web.tocsc(), self.final.tocsc()
        self._rejected = correction.decisions == Decision.REJECT

    def tally(self, number: int) -> Tally:
        """Count one class."""
        found, after = (_column(table, number) for table in (self._of_web, self._of_final))
        stays = np.isin(found, after)
        rejected = self._rejected[found] & ~stays
        return Tally(
            number, found, found[stays], found[~stays & ~rejected], found[rejected],
            after[~np.isin(after, found)],
        )  # fmt: skip

    def tallies(self) -> Iterator[Tally]:
        """Count every class."""
        return (self.tally(number) for number in range(self.web.shape[1]))

    def new_classes(self, rows: Rows) -> Rows:
        """Return for each row its first label that is new, -1 if there is none."""
        return _first_other(self.final, self.web, rows)

    def old_classes(self, rows: Rows) -> Rows:
        """Return for each row its first web label that it has no more, -1 if there is none."""
        return _first_other(self.web, self.final, rows)


def first_classes(table: csr_array, rows: Rows) -> Rows:
    """Return the first class of each row, -1 where there is none.

    >>> first_classes(csr_array(np.array([[0, 1], [0, 0]])), np.array([0, 1])).tolist()
    [1, -1]
    """
    starts, ends = table.indptr[rows], table.indptr[rows + 1]
    padded = np.append(table.indices, -1)
    return np.where(starts < ends, padded[np.minimum(starts, len(padded) - 1)], -1).astype(np.intp)


def _first_other(table: csr_array, than: csr_array, rows: Rows) -> Rows:
    return first_classes(csr_array(table[rows] > than[rows]), np.arange(len(rows)))


def _column(table: Any, number: int) -> Rows:  # noqa: ANN401
    return np.sort(table.indices[table.indptr[number] : table.indptr[number + 1]]).astype(np.intp)


def _as_sparse(labels: NDArray[Any], n_classes: int) -> csr_array:
    """Return labels as a sparse boolean matrix, read a block at a time."""
    parts = []
    for block in row_blocks(len(labels), row_bytes=labels.itemsize * labels[:1].size):
        part = np.asarray(labels[block])
        if part.ndim == 2:
            parts.append((part.sum(axis=1), np.nonzero(part)[1]))
        else:
            parts.append((part >= 0, part[part >= 0]))
    counts = np.concatenate([count for count, _ in parts]).astype(np.int64)
    classes = np.concatenate([found for _, found in parts]).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((np.ones(len(classes), bool), classes, starts), (len(labels), n_classes))
