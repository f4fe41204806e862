"""Keep, relabel or reject: what to do with each image, and by which rule.

By default every label has a probability of being right (:mod:`vsgraph.method.doubt`), and as many
images are kept or relabeled as can be had at the wanted share of right labels (`purity`). In order,
the first rule that applies decides:

1. *not judged*: there is nothing to judge by, since the web label's class has no anchors, or the
   image has neither a picture nor a text: keep.
2. *unwanted*: it most likely shows a sense that is not meant: reject.
3. *open set*: it most likely shows none of the classes: reject.
4. *doubtful*: its likeliest label is not sure enough for the wanted share: reject.
5. *agrees*: the likeliest label is the web label: keep.
6. *confident*: another label is likelier: relabel.

In the paper's forms, and with several labels per image:

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

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats
from vsgraph.errors import VSGraphWarning
from vsgraph.method.open_set import LIKELY, far_from_all, own_texts_count
from vsgraph.method.scoring import ImageScores
from vsgraph.result.parts import OUTCOMES, Decision, Decisions, Rule
from vsgraph.settings import Settings

HALF = 0.5
SUREST = 0.1  # of the labels, if a purity cannot be had


def decide_all(scores: ImageScores, web_labels: NDArray[Any], *, settings: Settings) -> Decisions:
    """Decide on every image, one block at a time.

    Parameters
    ----------
    scores : ImageScores
        What is known of every image.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper.
    settings : Settings
        The thresholds.

    Returns
    -------
    decisions : Decisions
        In the shape of `web_labels`.
    """
    if scores.unwanted is not None:
        least = least_kept(scores, web_labels, settings=settings)
        return decide_by_belief(scores, scores.unwanted, web_labels, least=least)
    far = _far_images(scores, settings, several=web_labels.ndim == 2)
    final_labels = np.empty_like(web_labels)
    decisions, rules = np.empty((2, len(web_labels)), np.uint8)
    for rows in row_blocks(len(web_labels), row_bytes=16 * len(scores.anchored)):
        block = decide(
            scores.final[rows], web_labels[rows], far=far[rows], silent=scores.silent[rows],
            has_anchors=scores.anchored, settings=settings,
        )  # fmt: skip
        final_labels[rows] = block.final_labels
        decisions[rows], rules[rows] = block.decisions, block.rules
    return Decisions(final_labels, decisions, rules)


def least_kept(scores: ImageScores, web_labels: NDArray[np.intp], *, settings: Settings) -> float:
    """Return the least probability of a label that is kept, for the wanted share of right ones."""
    purity = settings.purity if scores.text is not None else 0.0  # meanings are not checked
    shows_class = _judged(scores, web_labels) & (np.asarray(scores.unwanted) < 0)
    return least_belief(scores.final.max()[shows_class], purity)


def _judged(scores: ImageScores, web_labels: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which images there is something to judge by; a web label of -1 is none.

    A class may have no anchors because all its images show a sense that is not meant.
    """
    known = scores.anchored[web_labels] | (web_labels < 0) | (np.asarray(scores.unwanted) >= 0)
    return known & ~scores.silent


def decide_by_belief(
    scores: ImageScores, unwanted: NDArray[np.int16], web_labels: NDArray[np.intp], *, least: float
) -> Decisions:
    """Decide on every image; labels less probable than `least` are not kept."""
    likeliest, belief = scores.final.argmax(), scores.final.max()
    judged = _judged(scores, web_labels)
    shows_class = judged & (unwanted < 0)
    rules = np.select(
        [~judged, ~shows_class, belief < HALF, belief < least, likeliest == web_labels],
        [Rule.NOT_JUDGED, Rule.UNWANTED, Rule.OPEN_SET, Rule.DOUBTFUL, Rule.AGREES],
        Rule.CONFIDENT,
    ).astype(np.uint8)
    outcome = np.array([OUTCOMES[rule] for rule in Rule])[rules].astype(np.uint8)
    labels = np.where(rules == Rule.CONFIDENT, likeliest, web_labels)
    return Decisions(np.where(outcome == Decision.REJECT, -1, labels), outcome, rules)


def least_belief(belief: Floats, purity: float) -> float:
    """Return the least probability of a label that is kept, so that so many of them are right.

    If not even the surest labels are, as many are kept as are as right as the surest tenth.

    >>> least_belief(np.array([0.99, 0.95, 0.9, 0.6, 0.2]), 0.94)
    0.9
    """
    if not len(belief):
        return HALF
    best_first = np.sort(belief)[::-1].astype(np.float64)
    share = np.cumsum(best_first) / np.arange(1, len(best_first) + 1)
    if share[0] < purity:
        reached = float(share[math.ceil(SUREST * len(share)) - 1])
        warnings.warn(
            f"not even the surest labels are right in {purity:.1%} of the cases; as many are kept "
            f"as can be had at {reached:.1%}, but none that is likelier wrong than right",
            VSGraphWarning,
            stacklevel=2,
        )
        purity = reached
    return max(float(best_first[np.flatnonzero(share >= purity)[-1]]), HALF)


def _far_images(scores: ImageScores, settings: Settings, *, several: bool) -> NDArray[np.bool_]:
    """Find the images that are far from every class, (n_images,)."""
    own_nearness = scores.own_nearness
    trust = scores.weights.get("trust")
    if trust is not None and not own_texts_count(scores.sample_nearness, trust, settings=settings):
        own_nearness = np.full_like(own_nearness, np.nan)
    return far_from_all(
        scores.graph_score, scores.final.max(), own_nearness, scores.near_nearness,
        settings=settings, likely=settings.drop_threshold if several else LIKELY,
    )  # fmt: skip


def decide(
    probs: Floats,
    web_labels: NDArray[Any],
    *,
    far: NDArray[np.bool_],
    silent: NDArray[np.bool_],
    has_anchors: NDArray[np.bool_],
    settings: Settings,
) -> Decisions:
    """Decide on a block of images.

    Parameters
    ----------
    probs : float array of shape (n_images, n_classes)
        ``p_f`` in the paper, or the weighed evidence.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper.
    far, silent : bool array of shape (n_images,)
        Images that are far from every class; those with neither a picture nor a text.
    has_anchors : bool array of shape (n_classes,)
        Classes that have anchors.
    settings : Settings
        `relabel_threshold` and `drop_threshold`.

    Returns
    -------
    decisions : Decisions
        In the shape of `web_labels`.

    Examples
    --------
    >>> nobody = np.zeros(3, bool)
    >>> decisions = decide(np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.3]]), np.array([0, 1, 1]),
    ...                    far=nobody, silent=nobody, has_anchors=np.ones(2, bool),
    ...                    settings=Settings())
    >>> decisions.decisions.tolist(), decisions.final_labels.tolist()
    ([0, 1, 0], [0, 0, 1])
    """
    final: NDArray[Any]
    if web_labels.ndim == 1:
        final, changed, likelier = _choose_one(probs, web_labels, settings)
        unknown_class = ~has_anchors[web_labels]
        empty = np.zeros(len(probs), bool)
    else:
        known = np.where(has_anchors, probs, web_labels)
        final, changed, likelier = _choose_several(known, web_labels, settings)
        unknown_class = web_labels.any(axis=1) & ~(web_labels & has_anchors).any(axis=1)
        empty = np.asarray(~final.any(axis=1))
    rules = np.select(
        [silent | unknown_class, far | empty, changed, likelier],
        [Rule.NOT_JUDGED, Rule.OPEN_SET, Rule.CONFIDENT, Rule.UNSURE],
        Rule.AGREES,
    ).astype(np.uint8)
    not_judged, open_set = rules == Rule.NOT_JUDGED, rules == Rule.OPEN_SET
    final[not_judged] = web_labels[not_judged]
    final[open_set] = -1 if final.ndim == 1 else False
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
