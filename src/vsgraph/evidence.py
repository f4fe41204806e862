"""Beyond the paper: weigh what graph, CNN, web label and text say of an image.

Four witnesses speak of the class ``c`` of image ``i``, and none is believed blindly::

    p(c)  ~  p_g(c)^a  *  p_c(c)^b  *  P(web label | c)^e  *  [ r * R(c) + (1 - r) ]

- ``P(web label | c)`` is a table of how often images of a class are found under each query,
  estimated from the crawl itself: it says that half of what 'orange' finds is no fruit.
- ``R(c)`` is how much more the text speaks of class ``c`` than texts of the crawl do on average:
  a softmax of its cosines to all label meanings, with sharpness ``s``.
- ``r`` is the share of texts that belong to their image. Where a text may be another image's, a
  class that it does not mention loses at most the factor ``1 - r``, so that a wrong text cannot
  rule out the right class. Without text the bracket is one.

The weights ``a, b, e``, the sharpness ``s`` and the trust ``r`` are not chosen: they are those
under which the texts are the least surprising, given everything else known of their images. So a
CNN that merely repeats the web labels it was trained on gets little weight, an overconfident
graph is toned down, and text that is noise is left out. No human label is used. How they are
found stands in :mod:`vsgraph.witnesses`.
"""

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import expit, logit, softmax

from vsgraph.checks import (
    Floats,
    check_labels,
    check_matrix,
    check_meanings,
    check_probs,
    filled_rows,
    unit_rows,
)
from vsgraph.witnesses import SMALLEST, Doubles, Model, estimate, weighted

SAMPLE_CELLS = 2**24  # texts times classes that the weights are estimated from
BLOCK_CELLS = 2**22
MIN_TEXTS_PER_CLASS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the witnesses say together, and how much each was believed.

    Attributes
    ----------
    probs : float array of shape (n_images, n_classes)
        Single-label: rows sum to one. Multi-label: each class by itself. Zero for a class that the
        graph gives to no image.
    text_factor : float array of shape (n_images, n_classes)
        How much the text raises or lowers each class; one where it has nothing to say.
    confusion : float array of shape (n_classes, n_classes)
        Estimated ``P(web label | class)``, a row a class; zeros for a class that cannot be given.
    weights : dict of str to float
        ``graph``, ``cnn`` and ``web`` (a, b and e of the formula), the text's ``sharpness`` and the
        ``trust`` in it (s and r).

    Examples
    --------
    >>> text = np.tile(np.eye(2), (10, 1))
    >>> found = weigh_evidence(np.full((20, 2), 0.5), None, text, np.eye(2), [0, 1] * 10)
    >>> sorted(found.weights), found.confusion.shape
    (['cnn', 'graph', 'sharpness', 'trust', 'web'], (2, 2))
    """

    probs: Floats
    text_factor: Floats
    confusion: Floats
    weights: dict[str, float]


def weigh_evidence(
    gnn_probs: ArrayLike,
    cnn_probs: ArrayLike | None,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
) -> Evidence | None:
    """Weigh graph, CNN, web label and text against each other for every image.

    Parameters
    ----------
    gnn_probs : array of shape (n_images, n_classes)
        ``p_g`` in the paper.
    cnn_probs : array of shape (n_images, n_classes), optional
        ``p_c`` in the paper, best from a network that was not trained on the image.
    text_embeddings : array of shape (n_images, n_dims)
        ``t`` in the paper; a row of zeros or NaN where there is no text.
    label_embeddings : array of shape (n_classes, n_dims)
        ``l`` in the paper.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper.

    Returns
    -------
    evidence : Evidence or None
        None where there is too little text to weigh by (fewer than two texts a class).

    Examples
    --------
    >>> graph = np.tile([[0.8, 0.1], [0.2, 0.7]], (20, 1))
    >>> text = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1))
    >>> text[0] = [0.0, 1.0]  # the text of the first image is another's
    >>> weigh_evidence(graph, None, text, np.eye(2), [0, 1] * 20).probs.argmax(axis=1)[:2].tolist()
    [0, 1]
    """
    meaning = check_meanings("label_embeddings", label_embeddings)
    text = check_matrix(
        "text_embeddings", text_embeddings, n_columns=meaning.shape[1], nan_rows_are_missing=True
    )
    shape = (len(text), len(meaning))
    labels = check_labels("web_labels", web_labels, n_rows=shape[0], n_classes=shape[1])
    witnesses = [check_probs("gnn_probs", gnn_probs, shape=shape)]
    if cnn_probs is not None:
        witnesses.append(check_probs("cnn_probs", cnn_probs, shape=shape))
    given = np.flatnonzero(witnesses[0].any(axis=0))  # classes that can be given
    has_text = filled_rows(text)
    if not len(given) or has_text.sum() < MIN_TEXTS_PER_CLASS * len(given):
        return None
    witnesses = [witness[:, given] for witness in witnesses]
    cosines = _centered_cosines(text, meaning[given], has_text)
    share = csr_array(diags_array(1 / np.maximum(np.diff(labels.indptr), 1)) @ labels)
    rows = _sample_rows(has_text, n_classes=len(given))
    sample = [_log_share(witness[rows]) for witness in witnesses]
    model, posterior = estimate(sample, cosines[rows], share[rows], given)
    own = np.zeros(cosines.shape, np.float32)
    own[rows] = posterior
    single = np.ndim(web_labels) == 1
    probs, factor = _speak(model, witnesses, cosines, share, own, single=single)
    whole = Evidence(
        np.zeros(shape, np.float32),
        np.ones(shape, np.float32),
        np.zeros((shape[1], shape[1]), np.float32),
        model.summary(),
    )
    whole.probs[:, given], whole.text_factor[:, given] = probs, factor
    whole.confusion[given] = model.confusion
    return whole


def _centered_cosines(text: Floats, meaning: Floats, has_text: NDArray[np.bool_]) -> Floats:
    """Compare texts and meanings after taking out what all of them share; NaN without text."""
    texts, meanings = unit_rows(text), unit_rows(meaning)
    if len(meanings) > 1:
        texts = unit_rows(texts - texts[has_text].mean(axis=0))
        meanings = unit_rows(meanings - meanings.mean(axis=0))
    cosines = texts @ meanings.T
    cosines[~has_text] = np.nan
    return cosines


def _sample_rows(has_text: NDArray[np.bool_], *, n_classes: int) -> NDArray[np.intp]:
    """Return rows with text, evenly spread, as many as the estimate needs."""
    rows = np.flatnonzero(has_text)
    n_sample = min(len(rows), max(1, SAMPLE_CELLS // n_classes))
    return rows[np.linspace(0, len(rows) - 1, n_sample).astype(np.intp)]


def _log_share(probs: Floats) -> Doubles:
    """Return the log of each class's share in its row; equal shares where a row is zero."""
    total = probs.sum(axis=1, keepdims=True, dtype=np.float64)
    share = np.where(total > 0, probs / np.where(total > 0, total, 1), 1 / probs.shape[1])
    return np.log(np.maximum(share, SMALLEST))


def _speak(
    model: Model,
    witnesses: list[Floats],
    cosines: Floats,
    share: csr_array,
    own: Floats,
    *,
    single: bool,
) -> tuple[Floats, Floats]:
    """Apply the formula to every image, in blocks."""
    probs = np.empty(cosines.shape, np.float32)
    factors = np.empty(cosines.shape, np.float32)
    block = max(1, BLOCK_CELLS // cosines.shape[1])
    for start in range(0, len(cosines), block):
        rows = slice(start, start + block)
        factor = model.text_factor(cosines[rows])
        told = [_log_share(w[rows]) if single else _log_odds(w[rows]) for w in witnesses]
        total = weighted(model.weights, [*told, model.log_web(share[rows], own[rows])])
        total += np.log(np.maximum(factor, SMALLEST))
        probs[rows] = softmax(total, axis=1) if single else expit(total)
        factors[rows] = factor
    return probs, factors


def _log_odds(probs: Floats) -> Doubles:
    """Return log odds, kept finite."""
    return logit(np.clip(probs.astype(np.float64), 1e-6, 1 - 1e-6))
