"""How many web labels are wrong, estimated from a classifier's probabilities or a correction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.errors import InputError
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.result.scores import TopScores


def noise_rate(probs: TopScores | NDArray[Any], web_labels: NDArray[Any]) -> float:
    """Estimate the share of wrong labels (confident learning, Northcutt et al. 2021).

    A class is *confident* for an image if its probability reaches the mean that the class has among
    the images labeled so. Of the images with a confident class, those whose likeliest one is
    another than their label count as wrong. The share is taken class by class and weighed by how
    many images have the label, so that classes with unsure images count no less.

    Parameters
    ----------
    probs : array or TopScores of shape (n_images, n_classes)
        Of a classifier that did not learn from the image itself (out of fold).
    web_labels : int array of shape (n_images,)
        The labels to judge.

    Returns
    -------
    rate : float
        0 to 1.

    Examples
    --------
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
    for start in range(0, len(labels), 4096):
        block = np.asarray(probs[start : start + 4096])
        given = labels[start : start + 4096]
        passed = np.where(block >= least, block, -1)
        best = passed.argmax(axis=1)
        sure = passed.max(axis=1) >= 0
        confident += np.bincount(given[sure], minlength=n_classes)
        wrong += np.bincount(given[sure & (best != given)], minlength=n_classes)
    share = np.divide(wrong, confident, out=np.zeros(n_classes), where=confident > 0)
    return float((share * counts).sum() / max(1, counts.sum()))


def wrong_share(correction: Correction) -> float:
    """Return the share of web labels that a correction holds to be wrong.

    The mean over images of how improbable the web label is; one where an image was rejected. Nearer
    the truth than :func:`noise_rate` where images show several things, since it reads
    the texts, too.

    Parameters
    ----------
    correction : Correction
        With one web label an image.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> made = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4,
    ...                        settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> wrong_share(made) < 0.1
    True
    """
    if correction.web_labels.ndim == 2:
        raise InputError("with several labels an image the share of wrong ones is not estimated")
    wrong = 1 - correction.final_probs.at(correction.web_labels)
    return float(np.where(correction.decisions == Decision.REJECT, 1, wrong).mean())
