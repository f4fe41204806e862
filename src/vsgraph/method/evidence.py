"""Beyond the paper: weigh what graph, CNN, web label and text say of an image.

Four witnesses speak of the class ``c`` of image ``i``, and none is believed blindly::

    p(c)  ~  p_g(c)^a  *  p_c(c)^b  *  P(web label | c)^e  *  [ r * R(c) + (1 - r) ]

- Where one model encodes pictures and descriptions, what the picture says of each description is
  a further factor like ``p_c`` (:mod:`vsgraph.method.zero_shot`).
- ``P(web label | c)`` is a table of how often images of a class are found under each query,
  estimated from the crawl itself: it says that half of what 'orange' finds is no fruit.
- ``R(c)`` is how much more the text speaks of class ``c`` than texts of the crawl do on average:
  a softmax of its cosines to all label meanings, with sharpness ``s``.
- ``r`` is how far the text is trusted to be the image's own: one share for all texts, times what is
  known of each (:mod:`vsgraph.method.trust`). A class that it does not mention loses at most the
  factor ``1 - r``: a foreign text cannot rule out the right class. Without text it is one.

The weights ``a, b, e``, the sharpness ``s`` and the trust ``r`` are not chosen: they are those
under which the texts are the least surprising, given everything else known of their images. So a
CNN that merely repeats the web labels it was trained on gets little weight, an overconfident
graph is toned down, and text that is noise is left out. No human label is used. How they are
found stands in :mod:`vsgraph.method.evidence_fit`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import expit, softmax

from vsgraph.common.blocks import Arrays, as_floats, map_rows, row_blocks
from vsgraph.common.checks import (
    Floats,
    check_labels,
    check_matrix,
    check_meanings,
    check_probs,
    filled_rows,
    unit_rows,
)
from vsgraph.method.evidence_fit import SMALLEST, Doubles, Model, Spoken, estimate, weighted
from vsgraph.result.scores import log_odds

SAMPLE_CELLS = 2**21  # texts times classes that the weights are estimated from
MIN_TEXTS_PER_CLASS = 2


class Scores(Protocol):
    """Scores that are read by rows: an array, mapped or not, a Network, or TopScores."""

    def __getitem__(self, rows: Any, /) -> Any: ...  # noqa: ANN401


class Weighed(NamedTuple):
    """All evidence on a block of images."""

    probs: Floats  # (n_rows, n_classes)
    text_factor: Floats  # (n_rows, n_classes), how much the text raises or lowers each class
    own: Floats  # (n_rows,), probability that the text is the image's own, by all that is known


def only_graph(gnn: Floats) -> Weighed:
    """Return the evidence where nothing but the graph speaks."""
    return Weighed(gnn, np.ones((1, 1), np.float32), np.zeros(len(gnn), np.float32))


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
        Estimated ``P(web label | class)``, one row per class; zeros where it cannot be given.
    weights : dict of str to float
        ``graph``, ``cnn`` and ``web`` (a, b and e of the formula), the text's ``sharpness`` and the
        ``trust`` in it (s and r); ``zero shot`` where pictures and descriptions share a space.

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
        None where there is too little text to weigh by (fewer than two texts per class).

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
        "text_embeddings", text_embeddings, n_columns=meaning.shape[1],
        nan_rows_are_missing=True, keep_half=True,
    )  # fmt: skip
    shape = (len(text), len(meaning))
    labels = check_labels("web_labels", web_labels, n_rows=shape[0], n_classes=shape[1])
    graph = check_probs("gnn_probs", gnn_probs, shape=shape)
    witnesses: dict[str, Scores] = {"graph": graph}
    if cnn_probs is not None:
        witnesses["cnn"] = check_probs("cnn_probs", cnn_probs, shape=shape)
    learned = learn_weights(
        witnesses,
        text,
        meaning,
        labels,
        given=np.asarray(graph.any(axis=0)),
        single=np.ndim(web_labels) == 1,
    )
    if learned is None:
        return None
    blocks = row_blocks(len(text), row_bytes=8 * len(meaning))
    parts = [
        learned.weigh(rows, [witness[rows] for witness in witnesses.values()]) for rows in blocks
    ]
    probs, factor, _ = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Evidence(probs, factor, learned.confusion, learned.summary())


@dataclasses.dataclass(frozen=True)
class Weigher:
    """Weights that were learned, and what they are applied to.

    Attributes
    ----------
    names : tuple of str
        What the witnesses are called, the graph first.
    model : Model
        The estimated numbers.
    given : int array
        Classes that can be given.
    text, own, meanings, middle
        Texts, the probability that each is the image's own, classes given, what all texts share.
    share : csr_array of shape (n_images, n_classes)
        Web labels; several of an image count for one together.
    sampled, posterior
        The rows that the numbers were estimated from and what was thought of each.
    single : bool
        An image has one class only.
    """

    names: tuple[str, ...]
    model: Model
    given: NDArray[np.intp]
    text: Floats
    own: Floats
    meanings: Floats
    middle: Floats
    share: csr_array
    sampled: NDArray[np.intp]
    posterior: Doubles
    single: bool

    @property
    def confusion(self) -> Floats:
        """Estimated ``P(web label | class)``; zeros for a class that cannot be given."""
        n_classes = self.share.shape[1]
        table = np.zeros((n_classes, n_classes), np.float32)
        table[self.given] = self.model.confusion
        return table

    @property
    def trusted(self) -> Floats:
        """How far each text is trusted to be the image's own, (n_images,); 0 without text."""
        return (self.model.trust * self.own).astype(np.float32)

    def summary(self) -> dict[str, float]:
        """Return how far each witness was believed."""
        weights = dict(zip((*self.names, "web"), self.model.weights.tolist(), strict=True))
        known = self.trusted[filled_rows(self.text)]
        trust = float(known.mean()) if len(known) else 0.0
        text = {"sharpness": self.model.sharpness, "trust": trust}
        return {"graph": 0.0, "cnn": 0.0} | weights | text

    def weigh(self, rows: slice, witnesses: list[Floats]) -> Weighed:
        """Apply the formula to a block of images."""
        n_classes = self.share.shape[1]
        probs = np.zeros((rows.stop - rows.start, n_classes), np.float32)
        factors = np.ones_like(probs)
        cosines = _centered_cosines(self.text[rows], self.meanings, self.middle)
        factor = self.model.text_factor(Spoken(cosines, self.own[rows]))
        heard = [witness[:, self.given] for witness in witnesses]
        told = [_log_share(w) if self.single else log_odds(w) for w in heard]
        total = weighted(
            self.model.weights, [*told, self.model.log_web(self.share[rows], self._added(rows))]
        )
        trusted = self.model.trust * self.own[rows]
        own = _belongs(softmax(total, axis=1), factor, trusted)
        total += np.log(np.maximum(factor, SMALLEST))
        probs[:, self.given] = softmax(total, axis=1) if self.single else expit(total)
        factors[:, self.given] = factor
        return Weighed(probs, factors, own)

    def _added(self, rows: slice) -> Doubles:
        """Return what each row of a block itself added to the counts."""
        own = np.zeros((rows.stop - rows.start, len(self.given)))
        first, last = np.searchsorted(self.sampled, [rows.start, rows.stop])
        own[self.sampled[first:last] - rows.start] = self.posterior[first:last]
        return own


def learn_weights(
    witnesses: Mapping[str, Scores],
    text: Floats,
    meaning: Floats,
    labels: csr_array,
    *,
    given: NDArray[np.bool_],
    single: bool,
    own: Floats | None = None,
    progress: bool = False,
) -> Weigher | None:
    """Estimate how far to believe each witness, from a sample of the images that have text.

    Parameters
    ----------
    witnesses : mapping of str to arrays or scores of shape (n_images, n_classes)
        ``p_g`` ("graph") first, then others; only the sampled rows are read.
    text, meaning : float arrays
        Embeddings of texts and of all classes' descriptions.
    labels : csr_array of shape (n_images, n_classes)
        Web labels.
    given : bool array of shape (n_classes,)
        Classes that can be given.
    single : bool
        An image has one class only.
    own : float array of shape (n_images,), optional
        Probability that each text is the image's own (:mod:`vsgraph.method.trust`).
    progress : bool
        Show a progress bar.

    Returns
    -------
    weigher : Weigher or None
        None where there is too little text.
    """
    classes = np.flatnonzero(given)
    has_text = filled_rows(text)
    if not len(classes) or has_text.sum() < MIN_TEXTS_PER_CLASS * len(classes):
        return None
    meanings = unit_rows(meaning[classes])
    middle = np.zeros(text.shape[1], text.dtype)
    if len(meanings) > 1:
        meanings = unit_rows(meanings - meanings.mean(axis=0))
        middle = _mean_direction(text, int(has_text.sum()))
    share = csr_array(diags_array(1 / np.maximum(np.diff(labels.indptr), 1)) @ labels)
    rows = _sample_rows(has_text, n_classes=len(classes))
    heard = [_log_share(np.asarray(witness[rows])[:, classes]) for witness in witnesses.values()]
    own = has_text.astype(np.float32) if own is None else own
    spoken = Spoken(_centered_cosines(text[rows], meanings, middle), own[rows])
    model, posterior = estimate(heard, spoken, share[rows], classes, progress=progress)
    return Weigher(
        tuple(witnesses),
        model,
        classes,
        text,
        own,
        meanings,
        middle,
        share,
        rows,
        posterior,
        single,
    )


def _belongs(prior: Doubles, factor: Doubles, trusted: Floats) -> Floats:
    """Return how far texts are the images' own, `trusted` before, given what all others say."""
    told = (prior * factor).sum(axis=1)
    return ((told - (1 - trusted)) / np.maximum(told, SMALLEST)).astype(np.float32)


def _mean_direction(text: Floats, n_texts: int) -> Floats:
    """Return the mean of all texts, each scaled to length one."""

    def add_up(rows: slice) -> Arrays:
        return (unit_rows(as_floats(text[rows])).sum(axis=0),)

    blocks = row_blocks(len(text), row_bytes=8 * text.shape[1])
    total: Any = sum(part for (part,) in map_rows(add_up, blocks, title="mean text"))
    return total / n_texts


def _centered_cosines(text: Floats, meanings: Floats, middle: Floats) -> Floats:
    """Compare texts and meanings after taking out what all of them share; NaN without text."""
    texts = unit_rows(as_floats(text))
    empty = ~filled_rows(texts)
    cosines = unit_rows(texts - middle.astype(texts.dtype)) @ meanings.T
    cosines[empty] = np.nan
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
