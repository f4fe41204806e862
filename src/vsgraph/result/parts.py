"""Anchors and decisions, the parts of a correction."""

import dataclasses
import enum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats, label_matrix
from vsgraph.common.files import open_array


@dataclasses.dataclass(frozen=True, eq=False)
class Anchors:
    """Images taken as sure examples of a class.

    Attributes
    ----------
    rows : int array of shape (n_anchors,)
        The images; with multi-label data an image can be an anchor of several classes.
    classes : int array of shape (n_anchors,)
        The class that each is an anchor of.
    match : float array of shape (n_anchors,)
        Cosine of smoothed text and label (Eq. 5), or the score that made it an anchor.

    Examples
    --------
    >>> len(Anchors(np.array([4, 2]), np.array([0, 1]), np.array([0.9, 0.8])))
    2
    """

    rows: NDArray[np.intp]
    classes: NDArray[np.intp]
    match: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map anchors from the files of a saved correction or stage."""
        fields = dataclasses.fields(cls)
        return cls(*(open_array(folder / f"anchor_{field.name}.npy") for field in fields))


NONE, UNANSWERED = -1, -2  # what a person may say besides a class: none of them, nothing yet


class Decision(enum.IntEnum):
    """What to do with an image.

    >>> Decision.RELABEL.name.lower()
    'relabel'
    """

    KEEP = 0
    RELABEL = 1
    REJECT = 2


class Rule(enum.IntEnum):
    """The rule behind a decision, see :mod:`vsgraph.method.decisions`.

    >>> Rule(4).name.lower()
    'unsure'
    """

    NOT_JUDGED = 0
    OPEN_SET = 1
    AGREES = 2
    CONFIDENT = 3
    UNSURE = 4
    DOUBTFUL = 5
    UNWANTED = 6
    ANSWERED = 7

    @property
    def sentence(self) -> str:
        """The rule in words."""
        return _SENTENCES[self]


OUTCOMES = {
    Rule.NOT_JUDGED: Decision.KEEP,
    Rule.OPEN_SET: Decision.REJECT,
    Rule.AGREES: Decision.KEEP,
    Rule.CONFIDENT: Decision.RELABEL,
    Rule.UNSURE: Decision.KEEP,
    Rule.DOUBTFUL: Decision.REJECT,
    Rule.UNWANTED: Decision.REJECT,
    Rule.ANSWERED: Decision.KEEP,  # or what the answer says, see result.answered
}
_SENTENCES = {
    Rule.NOT_JUDGED: "there is nothing to judge it by (no anchors, or no picture and text)",
    Rule.OPEN_SET: "the image most likely shows none of the classes",
    Rule.AGREES: "the likeliest label is the web label",
    Rule.CONFIDENT: "another label is likely enough to replace the web label",
    Rule.UNSURE: "another label is likelier, but not by enough to overrule the web label",
    Rule.DOUBTFUL: "no label is sure enough for the wanted share of right labels",
    Rule.UNWANTED: "the image most likely shows a sense that is not meant",
    Rule.ANSWERED: "a person decided",
}


def count_decisions(
    decisions: NDArray[np.uint8], unreadable: NDArray[np.bool_] | None = None
) -> dict[str, int]:
    """Count images by decision; kept images with unreadable pictures count as `unreadable`.

    >>> count_decisions(np.array([0, 0, 2]), np.array([False, True, True]))
    {'keep': 1, 'relabel': 0, 'reject': 1, 'unreadable': 1}
    """
    counts = {d.name.lower(): int((decisions == d).sum()) for d in Decision}
    if unreadable is None:
        return counts
    n_unreadable = int(((decisions == Decision.KEEP) & unreadable).sum())
    return counts | {"keep": counts["keep"] - n_unreadable, "unreadable": n_unreadable}


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions on all images.

    Attributes
    ----------
    final_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        In the shape of the web labels; -1, or a row of False, for a rejected image.
    decisions, rules : uint8 array of shape (n_images,)
        :class:`Decision` and :class:`Rule` of each image.

    Examples
    --------
    >>> decided = Decisions(np.array([0, -1]), np.array([0, 2]), np.array([2, 1]))
    >>> [Decision(code).name for code in decided.decisions]
    ['KEEP', 'REJECT']
    """

    final_labels: NDArray[np.intp] | NDArray[np.bool_]
    decisions: NDArray[np.uint8]
    rules: NDArray[np.uint8]


def shares_by_class(labels: NDArray[Any], quality: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return the mean quality of each class's labels, and its standard error.

    >>> share, error = shares_by_class(np.array([0, 0, 1]), np.array([1.0, 0.5, 1.0]), 2)
    >>> share.tolist(), error.tolist()
    ([0.75, 1.0], [0.25, 0.0])
    """
    matrix = label_matrix(labels, n_classes, np.float64)
    n_images = np.maximum(np.asarray(matrix.sum(axis=0)).ravel(), 1)
    share = np.asarray(matrix.T @ quality).ravel() / n_images
    variance = np.asarray(matrix.T @ (quality * (1 - quality))).ravel()
    return share, np.sqrt(variance) / n_images
