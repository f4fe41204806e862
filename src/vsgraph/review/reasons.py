"""Why an image is worth an answer, in words."""

import numpy as np
from numpy.typing import NDArray

from vsgraph.method.queue import look_alikes, row_of
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED

UNSURE = 0.09  # p (1 - p) of a label that is 10 to 90 % probable


def reasons(
    correction: Correction, answered_labels: NDArray[np.intp] | None, rows: NDArray[np.intp]
) -> list[str]:
    """Return for each row in words why it is worth an answer."""
    quality, links = correction.label_quality, look_alikes(correction)
    told = []
    for row in rows.tolist():
        near, weights = row_of(links, row)
        is_open = (quality[near] * (1 - quality[near]) > UNSURE) & (weights > 0)
        if answered_labels is not None:
            is_open &= answered_labels[near] == UNANSWERED
        n_open = int(is_open.sum())
        alike = f", {n_open} unsure look{'s' if n_open == 1 else ''} alike" if n_open else ""
        told.append(f"label {quality[row]:.0%} probable{alike}")
    return told
