"""A correction with the answers of people in the place of its own decisions."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import label_matrix
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED, Decision, Rule
from vsgraph.result.scores import TopScores


def with_answers(
    correction: Correction, labels: NDArray[Any], rows: NDArray[np.intp] | None = None
) -> Correction:
    """Return a correction whose answered images have the labels that people gave them.

    Such a label is certain: its probability is one, that of every other class zero.

    Parameters
    ----------
    correction : Correction
        What the method found.
    labels : int array of shape (n_images,), or of shape (n_answered,) or (n_answered, n_classes)
        The answer of each image: a class, NONE, or UNANSWERED. With `rows`, those of some images,
        boolean if images have several labels.
    rows : int array of shape (n_answered,), optional
        The answered images.

    Returns
    -------
    answered : Correction
        With :attr:`Rule.ANSWERED` for these images.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> found = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, class_names=["bat", "owl"],
    ...                         settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> with_answers(found, np.array([1, -1] + [-2] * 6)).counts
    {'keep': 6, 'relabel': 1, 'reject': 1}
    """
    if rows is None:
        rows = np.flatnonzero(labels != UNANSWERED)
        labels = labels[rows]
    if not len(rows):
        return correction
    final, decisions, rules = (
        np.array(array)
        for array in (correction.final_labels, correction.decisions, correction.rules)
    )
    final[rows], rules[rows] = labels, Rule.ANSWERED
    shown = labels[:, None] if labels.ndim == 1 else labels  # (n_answered, 1 or n_classes)
    web = correction.web_labels[rows].reshape(shown.shape)
    is_none = (labels < 0) if labels.ndim == 1 else ~labels.any(axis=1)
    is_web = (shown == web).all(axis=1)
    decisions[rows] = np.where(
        is_none, Decision.REJECT, np.where(is_web, Decision.KEEP, Decision.RELABEL)
    )
    unwanted = None if correction.unwanted is None else np.array(correction.unwanted)
    if unwanted is not None:
        unwanted[rows[~is_none]] = -1
    return dataclasses.replace(
        correction, final_labels=final, decisions=decisions, rules=rules, unwanted=unwanted,
        final_probs=_certain(correction.final_probs, rows, labels),
    )  # fmt: skip


def _certain(scores: TopScores, rows: NDArray[np.intp], labels: NDArray[Any]) -> TopScores:
    """Return scores of one for the labels of some rows, and of zero for their other classes."""
    certain = scores.copy()
    for block in row_blocks(len(rows), row_bytes=8 * scores.n_classes):
        certain.put(rows[block], label_matrix(labels[block], scores.n_classes).toarray())
    return certain
