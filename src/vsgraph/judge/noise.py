"""Estimates of how many web labels are wrong."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.result.scores import TopScores


def noise_rate(probs: TopScores | NDArray[Any], web_labels: NDArray[Any]) -> float:
    """Estimate the share of wrong labels (confident learning, Northcutt et al. 2021).

    A class is *confident* for an image if its probability is at least the mean of that class among
    the images labeled with it. Among images with a confident class, a label is wrong if the
    likeliest confident class is another one. The share is computed for each class and weighted by
    its number of images. `probs`, (n_images, n_classes), must come from a classifier that was not
    trained on the image itself (out of fold); `web_labels` is (n_images,).

    >>> probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.9, 0.1]])
    >>> noise_rate(probs, np.array([0, 0, 1, 1, 1]))
    0.2
    """
    n_classes = probs.shape[1]
    labels = np.asarray(web_labels)
    if labels.shape != (len(probs),) or labels.min() < 0 or labels.max() >= n_classes:
        raise InputError(f"web_labels must be {len(probs)} class numbers below {n_classes}")
    rows = np.arange(len(labels))
    own = probs.at(labels) if isinstance(probs, TopScores) else np.asarray(probs)[rows, labels]
    counts = np.bincount(labels, minlength=n_classes)
    least = np.bincount(labels, weights=own, minlength=n_classes) / np.maximum(counts, 1)
    least[counts == 0] = np.inf
    confident, wrong = np.zeros(n_classes), np.zeros(n_classes)
    for part in row_blocks(len(labels), row_bytes=16 * n_classes):
        block, given = np.asarray(probs[part]), labels[part]
        passed = np.where(block >= least, block, -1)
        best = passed.argmax(axis=1)
        sure = passed.max(axis=1) >= 0
        confident += np.bincount(given[sure], minlength=n_classes)
        wrong += np.bincount(given[sure & (best != given)], minlength=n_classes)
    share = np.divide(wrong, confident, out=np.zeros(n_classes), where=confident > 0)
    return float((share * counts).sum() / max(1, counts.sum()))


def wrong_share(correction: Correction) -> float:
    """Estimate the share of wrong web labels from a correction with one label per image.

    It is the mean improbability of the web label, one for a rejected image. If images show several
    things, it is nearer the truth than :func:`noise_rate`, since it also uses the texts.
    """
    if correction.web_labels.ndim == 2:
        raise InputError("the share of wrong labels is not estimated for several labels per image")
    wrong = 1 - correction.final_probs.at(correction.web_labels)
    return float(np.where(correction.decisions == Decision.REJECT, 1, wrong).mean())
