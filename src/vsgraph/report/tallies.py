"""Which images of each class stayed, left, were rejected, and which came in."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import check_truth
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

Rows = NDArray[np.intp]


@dataclasses.dataclass(frozen=True, eq=False)
class Tally:
    """What became of the images of one class, as rows in ascending order."""

    number: int  # the class
    found: Rows  # images with this web label
    kept: Rows  # those of `found` that still have it
    left: Rows  # those that lost it to another class
    rejected: Rows  # those that have no label any more
    came: Rows  # images of other web labels that have it now
    right: float | None  # estimated share of right web labels; None if they were not doubted

    @property
    def noise(self) -> float:
        """Estimated share of wrong web labels, or else the share that did not stay."""
        return self.changed if self.right is None else 1 - self.right

    @property
    def changed(self) -> float:
        """Share of the images found that did not stay."""
        return 1 - len(self.kept) / len(self.found) if len(self.found) else 0.0


class Labels:
    """Web and final labels of a correction, by image and by class."""

    def __init__(self, correction: Correction) -> None:
        self.web, self.final = (
            check_truth("labels", labels, n_rows=len(labels), n_classes=len(correction.class_names))
            for labels in (correction.web_labels, correction.final_labels)
        )  # both sparse, (n_images, n_classes)
        self._rejected = correction.decisions == Decision.REJECT
        self._right = correction.class_shares()[0] if correction.unwanted is not None else None

    def tallies(self) -> Iterator[Tally]:
        """Count every class."""
        web, final = self.web.tocsc(), self.final.tocsc()
        for number in range(web.shape[1]):
            before, after = _column(web, number), _column(final, number)
            stays = np.isin(before, after)
            rejected = self._rejected[before] & ~stays
            yield Tally(
                number, before, before[stays], before[~stays & ~rejected], before[rejected],
                after[~np.isin(after, before)],
                None if self._right is None else float(self._right[number]),
            )  # fmt: skip


def first_classes(table: csr_array, rows: Rows) -> Rows:
    """Return the first class of each row, -1 if it has none.

    >>> first_classes(csr_array(np.array([[0, 1], [0, 0]])), np.array([0, 1])).tolist()
    [1, -1]
    """
    starts, ends = table.indptr[rows], table.indptr[rows + 1]
    padded = np.append(table.indices, -1)
    return np.where(starts < ends, padded[np.minimum(starts, len(padded) - 1)], -1).astype(np.intp)


def first_other(table: csr_array, than: csr_array, rows: Rows) -> Rows:
    """Return the first class of each row that it does not have in `than`, -1 if there is none."""
    return first_classes(csr_array(table[rows] > than[rows]), np.arange(len(rows)))


def _column(table: Any, number: int) -> Rows:  # noqa: ANN401
    return np.sort(table.indices[table.indptr[number] : table.indptr[number + 1]]).astype(np.intp)
