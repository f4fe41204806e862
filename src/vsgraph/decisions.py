"""Keep, relabel or reject: what to do with each image, and by which rule.

In order, the first rule that applies decides:

1. *no anchors*: the web label's class has no anchors, so nothing can be said of it: keep.
2. *open set*: nothing speaks for even the likeliest label, see :mod:`vsgraph.openset`: reject.
3. *agrees*: the likeliest label is the web label: keep.
4. *confident*: another label is likely enough (`relabel_threshold`): relabel.
5. *unsure*: another label is likelier, but not by enough to overrule the web label: keep.

With multi-label data the labels of an image are the web labels, plus those that are likely enough,
less those that are unlikely enough; an image left without any is rejected.
"""

import dataclasses
import enum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.checks import Floats, check_labels, check_matrix
from vsgraph.settings import Settings


class Decision(enum.IntEnum):
    """What to do with an image."""

    KEEP = 0
    RELABEL = 1
    REJECT = 2


class Rule(enum.IntEnum):
    """Why: the rule that decided, see the module's text."""

    NO_ANCHORS = 0
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


_SENTENCES = {
    Rule.NO_ANCHORS: "no image of this class has text near it, so there is nothing to judge it by",
    Rule.OPEN_SET: "the image is far from every class",
    Rule.AGREES: "the likeliest label is the web label",
    Rule.CONFIDENT: "another label is likely enough to replace the web label",
    Rule.UNSURE: "another label is likelier, but not by enough to overrule the web label",
}


@dataclasses.dataclass(frozen=True)
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
    """

    final_labels: NDArray[np.intp] | NDArray[np.bool_]
    decisions: NDArray[np.uint8]
    rules: NDArray[np.uint8]


def decide(
    final_probs: ArrayLike,
    web_labels: ArrayLike | csr_array,
    *,
    far: ArrayLike,
    has_anchors: ArrayLike,
    settings: Settings,
) -> Decisions:
    """Choose keep, relabel or reject for every image.

    Parameters
    ----------
    final_probs : array of shape (n_images, n_classes)
        ``p_f`` in the paper, or the weighed evidence.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper.
    far : bool array of shape (n_images,)
        Images that are far from every class, see :func:`vsgraph.far_from_all`.
    has_anchors : bool array of shape (n_classes,)
        Classes that have anchors.
    settings : Settings
        `relabel_threshold`.

    Returns
    -------
    decisions : Decisions
        In the shape of `web_labels`.

    Examples
    --------
    >>> chosen = decide([[0.9, 0.1], [0.8, 0.2], [0.4, 0.3]], [0, 1, 1], far=[False] * 3,
    ...                 has_anchors=[True, True], settings=Settings())
    >>> [Decision(code).name for code in chosen.decisions], chosen.final_labels.tolist()
    (['KEEP', 'RELABEL', 'KEEP'], [0, 0, 1])
    """
    probs = check_matrix("final_probs", final_probs)
    labels = check_labels("web_labels", web_labels, n_rows=len(probs), n_classes=probs.shape[1])
    far_rows, anchored = np.asarray(far, bool), np.asarray(has_anchors, bool)
    choose = _choose_one if np.ndim(web_labels) == 1 else _choose_several
    web = labels.indices if np.ndim(web_labels) == 1 else labels.toarray().astype(bool)
    final, changed, likelier = choose(probs, web, settings.relabel_threshold)
    judged = np.asarray(labels @ anchored.astype(np.float32)) > 0
    empty = (final == -1) if final.ndim == 1 else ~final.any(axis=1)
    rules = np.select(
        [~judged, far_rows | empty, changed, likelier],
        [Rule.NO_ANCHORS, Rule.OPEN_SET, Rule.CONFIDENT, Rule.UNSURE],
        Rule.AGREES,
    ).astype(np.uint8)
    final[rules == Rule.NO_ANCHORS] = web[rules == Rule.NO_ANCHORS]
    final[rules == Rule.OPEN_SET] = -1 if final.ndim == 1 else False
    outcome = np.array([Decision.KEEP, Decision.REJECT, Decision.KEEP, Decision.RELABEL, 0])
    return Decisions(final, outcome[rules].astype(np.uint8), rules)


def _choose_one(
    probs: Floats, web: NDArray[np.intp], threshold: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return final label, whether it changed, whether another was likelier; a tie is no change."""
    rows = np.arange(len(probs))
    best = probs.argmax(axis=1)
    likelier = probs[rows, best] > probs[rows, web]
    changed = likelier & (probs[rows, best] >= threshold)
    return np.where(changed, best, web).astype(np.intp), changed, likelier


def _choose_several(
    probs: Floats, web: NDArray[np.bool_], threshold: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return final labels, whether they changed, whether others were likelier."""
    final = np.where(web, probs >= 1 - threshold, probs >= threshold)
    return final, (final != web).any(axis=1), ((probs >= 0.5) != web).any(axis=1)
