"""The small records that a correction is made of: anchors and decisions."""

import dataclasses
import enum

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Anchors:
    """Images taken to be sure examples of a class.

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


class Decision(enum.IntEnum):
    """What to do with an image.

    >>> Decision.RELABEL.name.lower()
    'relabel'
    """

    KEEP = 0
    RELABEL = 1
    REJECT = 2


class Rule(enum.IntEnum):
    """Why: the rule that decided, see :mod:`vsgraph.method.decisions`.

    >>> Rule(4).name.lower()
    'unsure'
    """

    NOT_JUDGED = 0
    OPEN_SET = 1
    AGREES = 2
    CONFIDENT = 3
    UNSURE = 4

    @property
    def sentence(self) -> str:
        """The rule in words.

        >>> Rule.AGREES.sentence
        'the likeliest label is the web label'
        """
        return _SENTENCES[self]


OUTCOMES = {
    Rule.NOT_JUDGED: Decision.KEEP,
    Rule.OPEN_SET: Decision.REJECT,
    Rule.AGREES: Decision.KEEP,
    Rule.CONFIDENT: Decision.RELABEL,
    Rule.UNSURE: Decision.KEEP,
}
_SENTENCES = {
    Rule.NOT_JUDGED: "there is nothing to judge it by (no anchors, or no picture and text)",
    Rule.OPEN_SET: "the image is far from every class",
    Rule.AGREES: "the likeliest label is the web label",
    Rule.CONFIDENT: "another label is likely enough to replace the web label",
    Rule.UNSURE: "another label is likelier, but not by enough to overrule the web label",
}


def count_decisions(
    decisions: NDArray[np.uint8], unreadable: NDArray[np.bool_] | None = None
) -> dict[str, int]:
    """Count images by decision; apart, those kept whose picture could not be read, if told which.

    >>> count_decisions(np.array([0, 0, 2]), np.array([False, True, True]))
    {'keep': 1, 'relabel': 0, 'reject': 1, 'unreadable': 1}
    """
    counts = {d.name.lower(): int((decisions == d).sum()) for d in Decision}
    if unreadable is None:
        return counts
    lost = int(((decisions == Decision.KEEP) & unreadable).sum())
    return counts | {"keep": counts["keep"] - lost, "unreadable": lost}


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """What to do with every image.

    Attributes
    ----------
    final_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        In the shape of the web labels; -1, or a row of False, for a rejected image.
    decisions : uint8 array of shape (n_images,)
        :class:`Decision` of each image.
    rules : uint8 array of shape (n_images,)
        :class:`Rule` that decided.

    Examples
    --------
    >>> made = Decisions(np.array([0, -1]), np.array([0, 2]), np.array([2, 1]))
    >>> [Decision(code).name for code in made.decisions]
    ['KEEP', 'REJECT']
    """

    final_labels: NDArray[np.intp] | NDArray[np.bool_]
    decisions: NDArray[np.uint8]
    rules: NDArray[np.uint8]
