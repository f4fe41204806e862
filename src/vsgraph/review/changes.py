"""What a new solution changed in the labels of the one before."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.result.correction import Correction
from vsgraph.review.view import label_names

MOST_MOVES = 40
MOST_SHOWN = 12


@dataclasses.dataclass(frozen=True)
class Move:
    """Images whose labels changed in the same way."""

    before: str  # the names of the labels; '' for none
    after: str
    count: int
    rows: list[int]  # the first of them


@dataclasses.dataclass(frozen=True)
class Changes:
    """How labels differ from before."""

    n_changed: int
    counts: tuple[dict[str, int], dict[str, int]]  # of decisions, before and after
    estimate: tuple[float | None, float | None]  # share of right labels left, before and after
    moves: list[Move]  # the most frequent first


def find_changes(
    before: Correction, after: Correction, *, but: NDArray[np.bool_] | None = None
) -> Changes:
    """Compare the labels of two corrections of the same images, leaving out some rows."""
    differs = _differ(before.final_labels, after.final_labels)
    if but is not None:
        differs &= ~but
    rows = np.flatnonzero(differs)
    pairs: dict[tuple[str, str], list[int]] = {}
    for row in rows.tolist():
        pair = (_names(before, row), _names(after, row))
        pairs.setdefault(pair, []).append(row)
    ordered = sorted(pairs.items(), key=lambda item: (-len(item[1]), item[0]))
    return Changes(
        len(rows),
        (before.counts, after.counts),
        (_right(before), _right(after)),
        [Move(*pair, len(of), of[:MOST_SHOWN]) for pair, of in ordered[:MOST_MOVES]],
    )


def _differ(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    different = np.asarray(one) != np.asarray(other)
    return different.any(axis=1) if different.ndim == 2 else different


def _names(correction: Correction, row: int) -> str:
    return ", ".join(label_names(correction.final_labels[row], correction.class_names))


def _right(correction: Correction) -> float | None:
    return correction.estimate["left"] if correction.estimate else None
