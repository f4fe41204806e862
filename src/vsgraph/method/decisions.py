"""Keep, relabel or reject: what to do with each image, and by which rule.

In order, the first rule that applies decides:

1. *not judged*: there is nothing to judge by, since no web label's class has anchors, or the image
   has neither a picture nor a text: keep.
2. *open set*: nothing speaks for even the likeliest label (:mod:`vsgraph.method.open_set`): reject.
3. *agrees*: the likeliest label is the web label: keep.
4. *confident*: another label is likely enough (`relabel_threshold`): relabel.
5. *unsure*: another label is likelier, but not by enough to overrule the web label: keep.

With multi-label data the labels of an image are the web labels, plus those that are likely enough
(`relabel_threshold`), less those that are unlikely enough (`drop_threshold`). A label whose class
has no anchors stays as it is; an image left without any label is rejected.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats, check_labels, check_matrix, check_vector
from vsgraph.result.parts import OUTCOMES, Decisions, Rule
from vsgraph.settings import Settings


def decide(
    final_probs: ArrayLike,
    web_labels: ArrayLike | csr_array,
    *,
    far: ArrayLike,
    has_anchors: ArrayLike,
    silent: ArrayLike | None = None,
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
    silent : bool array of shape (n_images,), optional
        Images of which neither picture nor text is known; none by default.
    settings : Settings
        `relabel_threshold` and `drop_threshold`.

    Returns
    -------
    decisions : Decisions
        In the shape of `web_labels`.

    Examples
    --------
    >>> chosen = decide([[0.9, 0.1], [0.8, 0.2], [0.4, 0.3]], [0, 1, 1], far=[False] * 3,
    ...                 has_anchors=[True, True], settings=Settings())
    >>> chosen.decisions.tolist(), chosen.final_labels.tolist()
    ([0, 1, 0], [0, 0, 1])
    """
    probs = check_matrix("final_probs", final_probs)
    labels = check_labels("web_labels", web_labels, n_rows=len(probs), n_classes=probs.shape[1])
    n_images, n_classes = probs.shape
    far_rows = check_vector("far", far, length=n_images, dtype=bool)
    anchored = check_vector("has_anchors", has_anchors, length=n_classes, dtype=bool)
    unheard = np.zeros(n_images, bool)
    if silent is not None:
        unheard = check_vector("silent", silent, length=n_images, dtype=bool)
    web: NDArray[Any] = labels.indices
    final: NDArray[Any]
    if np.ndim(web_labels) == 1:
        final, changed, likelier = _choose_one(probs, web, settings)
    else:
        web = labels.toarray().astype(bool)
        final, changed, likelier = _choose_several(np.where(anchored, probs, web), web, settings)
    n_labels = np.diff(labels.indptr)
    unknown_class = (n_labels > 0) & ~(np.asarray(labels @ anchored.astype(np.float32)) > 0)
    empty = (final == -1) if final.ndim == 1 else ~final.any(axis=1)
    rules = np.select(
        [unheard | unknown_class, far_rows | empty, changed, likelier],
        [Rule.NOT_JUDGED, Rule.OPEN_SET, Rule.CONFIDENT, Rule.UNSURE],
        Rule.AGREES,
    ).astype(np.uint8)
    final[rules == Rule.NOT_JUDGED] = web[rules == Rule.NOT_JUDGED]
    final[rules == Rule.OPEN_SET] = -1 if final.ndim == 1 else False
    outcome = np.array([OUTCOMES[rule] for rule in Rule])
    return Decisions(final, outcome[rules].astype(np.uint8), rules)


def _choose_one(
    probs: Floats, web: NDArray[np.intp], settings: Settings
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return final label, whether it changed, whether another was likelier; a tie is no change."""
    rows = np.arange(len(probs))
    best = probs.argmax(axis=1)
    likelier = probs[rows, best] > probs[rows, web]
    changed = likelier & (probs[rows, best] >= settings.relabel_threshold)
    return np.where(changed, best, web).astype(np.intp), changed, likelier


def _choose_several(
    probs: Floats, web: NDArray[np.bool_], settings: Settings
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return final labels, whether they changed, whether others were likelier."""
    final = np.where(web, probs >= settings.drop_threshold, probs >= settings.relabel_threshold)
    return final, (final != web).any(axis=1), ((probs >= 0.5) != web).any(axis=1)
