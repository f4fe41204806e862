"""Beyond the paper: how far each label can be believed, whatever the other classes say.

The evidence is divided among the classes, so that some class always wins, also for an image that
shows none of them. Here every pair of an image and a class is judged by itself::

    logit P(image shows class)  =  bias  +  sum of  weight * term

The terms are on scales that do not depend on the encoders. They are the log odds of the graph and
of the evidence; how near the text comes to the meaning and to the name of the class, where 0 is a
text of another class and 1 the typical text of an anchor; whether the text has the name, or another
word for the meant sense; whether images that look like this one are called by that name; how many
labels are right at this distance of the text; and what is usual among the images of the class. So a
class whose texts seldom speak of it is doubted as a whole, and nothing says "yes" only because the
other classes say "no".

The weights were learned once, from several crawls made of COCO-Web, half of them with texts that
are missing or exchanged (`experiments/doubt_weights.py` prints them). Between the two sets the
estimated share of texts that belong to their image decides.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from vsgraph.common.blocks import as_floats, evenly_spread, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.method.inputs import Inputs, Words
from vsgraph.method.open_set import TextsAround, typical_match
from vsgraph.method.probe import Probes, learn_probe
from vsgraph.result.parts import Anchors
from vsgraph.result.scores import TopScores, log_odds

TERMS = (
    "bias", "graph", "evidence", "web label", "no text", "meaning", "usual meaning", "distance",
    "name", "usual name", "name in text", "usual name in text", "word in text", "called so nearby",
)  # fmt: skip
N_WITHOUT_WORDS = 8  # terms that need no names of classes
TEXT_TERMS = slice(5, 13)
WEB_LIKE_TRUST = 0.69  # of the crawls with missing and exchanged texts
WEIGHTS = {  # one row per set of terms: texts as they are, web-like texts
    True: np.array(
        [
            [-0.67, 0.23, 0.18, -0.28, 0.00, 0.74, 0.01, 0.46, 0.92, 0.04, 1.03, -0.06, 0.50, 0.13],
            [-0.93, 0.26, 0.23, 0.39, 0.14, 0.05, 0.43, 0.23, 0.03, 0.40, 0.46, 0.91, 0.07, 0.17],
        ]
    ),
    False: np.array(
        [
            [0.52, 0.34, 0.22, 0.57, 0.00, 1.34, -0.45, 0.57],
            [0.58, 0.36, 0.27, 0.37, 0.09, 0.14, 0.15, 0.45],
        ]
    ),
}
LIMIT = 7.0  # largest log odds of a term
EDGES = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])  # of nearness, from far to near
RIGHT_SHARES = np.array(  # images with right labels of COCO-Web by nearness
    [
        [0.001, 0.002, 0.003, 0.010, 0.030, 0.067, 0.137, 0.750],  # own texts
        [0.019, 0.017, 0.022, 0.025, 0.042, 0.071, 0.118, 0.686],  # web-like texts
        [0.065, 0.045, 0.060, 0.070, 0.093, 0.119, 0.169, 0.379],  # only texts around
    ]
)
PRIOR_TEXTS = 10  # what the usual distances count for in those of one class
LEAST_SHARE = 0.02
HARDLY = 0.25  # a label that is right less often than this at its distance is believed no more
FEW_MENTIONS = 5
PRIOR_IMAGES = 5  # what the mean of all classes counts for in the mean of one
SAMPLE = 4096
KEPT = 32  # scores of an image
FOLDS = 2  # of the probe that learns who is called so; more of them find no more

Indices = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Distance:
    """How probable labels are by how far the texts are from them.

    The nearness of a text to its class is compared with that of the class's anchors; of the image's
    own text and the texts around it, the nearer one counts. How it is distributed over images with
    right labels hardly differs between crawls (:data:`RIGHT_SHARES`). So where a class has many
    more distant texts than that, most of them are not of the class (a local false discovery rate).
    """

    around: TextsAround
    descriptions: Floats  # (n_classes, n_text_dims), of length one
    typical: tuple[Floats, Floats]  # (n_classes,) of anchors: own texts, texts around
    right: Floats  # (2, n_classes, n_bins) share of right labels, with and without own text

    def believe(self, rows: slice, text: Floats) -> Floats:
        """Return the share of right labels at the distance of each text and class of a block."""
        near = unit_rows(self.around[rows])
        own, close = (
            texts @ self.descriptions.T / typical
            for texts, typical in zip((text, near), self.typical, strict=True)
        )
        nearness = _nearer(own, close, filled_rows(text), filled_rows(near))
        columns = np.arange(len(self.descriptions))
        return self.right[(~filled_rows(text)).astype(int)[:, None], columns, _bins(nearness)]


def _nearer(own: Floats, near: Floats, has_own: Mask, has_near: Mask) -> Floats:
    """Return the larger of two kinds of nearness, one if neither is known."""
    shape = (-1, *[1] * (own.ndim - 1))
    own = np.where(has_own.reshape(shape), own, np.nan)
    near = np.where(has_near.reshape(shape), near, np.nan)
    return np.nan_to_num(np.fmax(own, near), nan=1.0)


def _bins(nearness: Floats) -> Indices:
    return np.digitize(nearness, EDGES)


@dataclasses.dataclass(frozen=True)
class Scale:
    """A cosine on a scale from 0, a text of another class, to 1, the typical text of an anchor."""

    zero: float
    one: float
    usual: Floats  # (n_classes,) mean over the images of each class, on this scale

    def __call__(self, cosines: Floats) -> Floats:
        """Put cosines on the scale; all of them are 0 if anchors' texts are no nearer."""
        if not self.one > self.zero:
            return np.zeros_like(cosines)
        return (cosines - self.zero) / (self.one - self.zero)


@dataclasses.dataclass(frozen=True)
class Naming:
    """What was learned about the names of the classes."""

    words: Words
    nearness: Scale
    usual_mention: Floats  # (n_classes,) share of each class's texts that have its name
    called: TopScores  # (n_images, n_classes) whether similar images are called so
    call_rate: Floats  # (n_classes,) the same of images that are called so; 0 if there are few
    probe: Probes  # that learned who is called so

    def terms(self, rows: slice, text: Floats) -> list[Floats]:
        """Return the terms of a block that need names; `text` has rows of length one or zero."""
        cosines = text @ unit_rows(self.words.name_embeddings).T
        return [
            np.where(filled_rows(text)[:, None], self.nearness(cosines), 0),
            self.nearness.usual[None],
            self.words.names[rows].toarray(),
            self.usual_mention[None],
            self.words.words[rows].toarray(),
            self._shown_nearby(rows),
        ]

    def _shown_nearby(self, rows: slice) -> Floats:
        """Return the log odds that images show a class, by what similar images are called.

        Not every image of a class is called by its name. The rate at which those are that are
        called so corrects for that. The term is 0 for a class that is hardly ever named.
        """
        rate = self.call_rate
        shown = np.clip(self.called[rows] / np.where(rate > 0, rate, 1), 0.01, 0.99)
        return np.where(rate > 0, _odds(shown), 0)


@dataclasses.dataclass(frozen=True)
class Doubt:
    """What was learned about a crawl, to judge every pair of an image and a class."""

    inputs: Inputs
    weights: Floats  # (n_terms,)
    nearness: Scale
    distance: Distance
    naming: Naming | None
    shift: float = 0.0  # added to all log odds, see :mod:`vsgraph.method.calibration`
    bare: Floats | None = None  # (n_terms,), for images without text; None if it is the same

    def believe(self, rows: slice, gnn: Floats, final: Floats) -> Floats:
        """Return the probability that each image of a block shows each class."""
        terms = self.terms(rows, gnn, final)
        total = np.full(gnn.shape, self.shift)
        no_text = terms[TERMS.index("no text")]  # (n_rows, 1)
        bare = self.weights if self.bare is None else self.bare
        for weight, without, term in zip(self.weights, bare, terms, strict=True):
            total += np.where(no_text, without, weight) * term
        right, probs = np.exp(terms[TERMS.index("distance")]), expit(total)
        return np.where(right < HARDLY, np.minimum(probs, right), probs).astype(np.float32)

    def terms(self, rows: slice, gnn: Floats, final: Floats) -> list[Floats]:
        """Return the terms of a block, each to be broadcast to (n_rows, n_classes)."""
        text = unit_rows(as_floats(self.inputs.text_embeddings[rows]))
        has_text = filled_rows(text)[:, None]
        cosines = text @ unit_rows(self.inputs.label_embeddings).T
        return [
            np.ones((1, 1)),
            _odds(gnn),
            _odds(final),
            self.inputs.labels[rows].toarray(),
            (~has_text).astype(np.float32),
            np.where(has_text, self.nearness(cosines), 0),
            self.nearness.usual[None],
            np.log(np.maximum(self.distance.believe(rows, text), LEAST_SHARE)),
            *(self.naming.terms(rows, text) if self.naming else ()),
        ]


def learn_doubt(
    inputs: Inputs,
    anchors: Anchors,
    around: TextsAround,
    *,
    trust: float,
    progress: bool = False,
) -> Doubt:
    """Learn the scales of a crawl; `trust` is the share of texts that belong to their image."""
    words, naming = inputs.words, None
    if words is not None:
        named = _named(words)
        n_classes = named.shape[1]
        probe = learn_probe(
            inputs.features, named, n_classes=n_classes, n_folds=FOLDS, progress=progress
        )
        called = probe.out_of_fold(n_kept=KEPT, progress=progress)
        scale = _scale(inputs, words.name_embeddings, anchors)
        mention = _usual_mention(inputs, words.names)
        naming = Naming(words, scale, mention, called, _call_rate(called, named), probe)
    weights = weights_at(trust, with_words=words is not None)
    scale = _scale(inputs, inputs.label_embeddings, anchors)
    distance = _distances(inputs, anchors, around, trust=trust)
    return Doubt(inputs, weights, scale, distance, naming)


def _distances(inputs: Inputs, anchors: Anchors, around: TextsAround, *, trust: float) -> Distance:
    """Count the texts of each class by their distance, and compare with those of right labels."""
    given = inputs.label_embeddings if inputs.descriptions is None else inputs.descriptions
    descriptions = unit_rows(given)
    own_text = as_floats(np.asarray(inputs.text_embeddings[anchors.rows]))
    typical = (
        typical_match(own_text, descriptions, anchors),
        typical_match(around[anchors.rows], descriptions, anchors),
    )
    counts = np.zeros((2, len(descriptions), len(EDGES) + 1))
    labels = inputs.labels.indices
    for rows in row_blocks(len(labels), row_bytes=16 * descriptions.shape[1]):
        text, near = (unit_rows(as_floats(t[rows])) for t in (inputs.text_embeddings, around))
        own, close = (
            np.einsum("ij,ij->i", texts, descriptions[labels[rows]]) / typical[kind][labels[rows]]
            for kind, texts in enumerate((text, near))
        )
        bins = _bins(_nearer(own, close, filled_rows(text), filled_rows(near)))
        np.add.at(counts, ((~filled_rows(text)).astype(int), labels[rows], bins), 1)
    return Distance(around, descriptions, typical, _right_shares(counts, trust))


def _right_shares(counts: Floats, trust: float) -> Floats:
    """Return the share of right labels by class and distance, never more at a larger distance."""
    expected = np.stack([between(RIGHT_SHARES[0], RIGHT_SHARES[1], trust), RIGHT_SHARES[2]])[
        :, None
    ]
    expected = expected / expected.sum(axis=-1, keepdims=True)
    totals = counts.sum(axis=-1, keepdims=True)
    found = (counts + PRIOR_TEXTS * expected) / (totals + PRIOR_TEXTS)
    right = np.minimum(found[..., -1:] / expected[..., -1:], 1) * expected / found
    return np.minimum.accumulate(np.minimum(right, 1)[..., ::-1], axis=-1)[..., ::-1]


def weights_at(trust: float, *, with_words: bool) -> Floats:
    """Return the weights for a crawl of whose texts the share `trust` can be believed."""
    plain, web_like = WEIGHTS[with_words]
    weights = between(plain, web_like, trust)
    weights[TEXT_TERMS] *= min(trust / WEB_LIKE_TRUST, 1)
    return weights


def between(plain: Floats, web_like: Floats, trust: float) -> Floats:
    """Return numbers between those of texts as they are and of web-like texts."""
    share = np.clip((trust - WEB_LIKE_TRUST) / (1 - WEB_LIKE_TRUST), 0, 1)
    return share * plain + (1 - share) * web_like


def _odds(probs: Floats) -> Floats:
    return np.clip(log_odds(probs), -LIMIT, LIMIT)


def _scale(inputs: Inputs, vectors: Floats, anchors: Anchors) -> Scale:
    """Find the scale of the cosines between texts and vectors of classes."""
    classes = unit_rows(vectors)
    sample = evenly_spread(len(inputs.text_embeddings), SAMPLE)
    cosines = _cosines(inputs, sample, classes)
    others = ~inputs.labels[sample].toarray().astype(bool) & ~np.isnan(cosines[:, :1])
    zero = float(cosines[others].mean()) if others.any() else 0.0
    of_anchors = _own_cosines(inputs, anchors.rows, anchors.classes, classes)
    has_text = ~np.isnan(of_anchors)
    one = float(np.median(of_anchors[has_text])) if has_text.any() else zero
    scale = Scale(zero, one, np.zeros(len(classes)))
    rows, columns = inputs.labels.tocoo().coords
    own = scale(_own_cosines(inputs, rows, columns, classes))
    return dataclasses.replace(scale, usual=_class_means(own, columns, len(classes)))


def _cosines(inputs: Inputs, rows: Indices, classes: Floats) -> Floats:
    """Return the cosines of some texts and all classes; NaN without text."""
    text = unit_rows(as_floats(np.asarray(inputs.text_embeddings[rows])))
    return np.where(filled_rows(text)[:, None], text @ classes.T, np.nan)


def _own_cosines(inputs: Inputs, rows: Indices, columns: Indices, classes: Floats) -> Floats:
    """Return the cosines of texts and one class each; NaN without text."""
    cosines = np.empty(len(rows), np.float32)
    for block in row_blocks(len(rows), row_bytes=8 * classes.shape[1]):
        text = unit_rows(as_floats(np.asarray(inputs.text_embeddings[rows[block]])))
        cosines[block] = np.einsum("ij,ij->i", text, classes[columns[block]])
        cosines[block][~filled_rows(text)] = np.nan
    return cosines


def _class_means(values: Floats, columns: Indices, n_classes: int) -> Floats:
    """Return the mean of each class, drawn a little to that of all; NaN values are left out."""
    known = ~np.isnan(values)
    middle = float(values[known].mean()) if known.any() else 0.0
    sums = np.bincount(columns[known], values[known], n_classes)
    counts = np.bincount(columns[known], minlength=n_classes)
    return (sums + PRIOR_IMAGES * middle) / (counts + PRIOR_IMAGES)


def _usual_mention(inputs: Inputs, names: csr_array) -> Floats:
    """Return how many of each class's texts have its name."""
    rows, columns = inputs.labels.tocoo().coords
    has_text = filled_rows(inputs.text_embeddings)[rows]
    mentioned = np.asarray(names[rows, columns], float).ravel()
    return _class_means(np.where(has_text, mentioned, np.nan), columns, names.shape[1])


def _named(words: Words) -> csr_array:
    """Return which images are called by a class's name, or by any word for it if few are."""
    few = np.asarray(words.names.sum(axis=0)).ravel() < FEW_MENTIONS
    others = words.words.multiply(few)
    return csr_array(words.names.multiply(~few) + others).astype(bool)


def _call_rate(called: TopScores, named: csr_array) -> Floats:
    """Return the mean score of the images that are called by the name of each class; 0 if few."""
    counts = np.asarray(named.sum(axis=0)).ravel()
    sums = np.zeros(len(counts))
    for rows in row_blocks(len(called), row_bytes=8 * len(counts)):
        sums += np.asarray(named[rows].multiply(called[rows]).sum(axis=0)).ravel()
    return np.where(counts >= FEW_MENTIONS, np.maximum(sums / np.maximum(counts, 1), 1e-3), 0)
