"""Beyond the paper: how far each label can be believed, whatever the other classes say.

The evidence is divided among the classes, so that some class always wins, also for an image that
shows none of them. Here every pair of an image and a class is judged by itself::

    logit P(image shows class)  =  bias  +  sum of  weight * term

The terms are on scales that do not depend on the encoders. They are the log odds of the graph and
of the evidence; how near the text comes to the meaning and to the name of the class, where 0 is a
text of another class and 1 the typical text of an anchor; whether the text has the name, or another
word for the meant sense; whether images that look like this one are called by that name; and what
is usual among the images of the class. So a class whose texts seldom speak of it is doubted as a
whole, and nothing says "yes" only because the other classes say "no".

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
from vsgraph.method.probe import linear_probe
from vsgraph.result.parts import Anchors
from vsgraph.result.scores import TopScores, log_odds

TERMS = (
    "bias", "graph", "evidence", "web label", "no text", "meaning", "usual meaning",
    "name", "usual name", "name in text", "usual name in text", "word in text", "called so nearby",
)  # fmt: skip
N_WITHOUT_WORDS = 7  # terms that need no names of classes
TEXT_TERMS = slice(5, 12)
WEB_LIKE_TRUST = 0.69  # of the crawls with missing and exchanged texts
WEIGHTS = {  # one row per set of terms: texts as they are, web-like texts
    True: np.array(
        [
            [-0.96, 0.29, 0.18, -0.41, 0.00, 0.96, 0.08, 0.99, 0.05, 0.94, 0.01, 0.57, 0.13],
            [-1.07, 0.29, 0.23, 0.35, 0.13, 0.10, 0.48, 0.04, 0.43, 0.45, 0.99, 0.13, 0.16],
        ]
    ),
    False: np.array(
        [
            [0.23, 0.41, 0.22, 0.38, 0.00, 1.65, -0.36],
            [0.44, 0.41, 0.28, 0.22, 0.07, 0.26, 0.24],
        ]
    ),
}
LIMIT = 7.0  # largest log odds of a term
FEW_MENTIONS = 5
PRIOR_IMAGES = 5  # what the mean of all classes counts for in the mean of one
SAMPLE = 4096
KEPT = 32  # scores of an image

Indices = NDArray[np.integer[Any]]


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
    naming: Naming | None

    def believe(self, rows: slice, gnn: Floats, final: Floats) -> Floats:
        """Return the probability that each image of a block shows each class."""
        total = np.zeros(gnn.shape)
        for weight, term in zip(self.weights, self.terms(rows, gnn, final), strict=True):
            total += weight * term
        return expit(total).astype(np.float32)

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
            *(self.naming.terms(rows, text) if self.naming else ()),
        ]


def learn_doubt(inputs: Inputs, anchors: Anchors, *, trust: float, progress: bool = False) -> Doubt:
    """Learn the scales of a crawl; `trust` is the share of texts that belong to their image."""
    words, naming = inputs.words, None
    if words is not None:
        named = _named(words)
        n_classes = named.shape[1]
        called = linear_probe(
            inputs.features, named, n_classes=n_classes, n_kept=KEPT, progress=progress
        )
        scale = _scale(inputs, words.name_embeddings, anchors)
        mention = _usual_mention(inputs, words.names)
        naming = Naming(words, scale, mention, called, _call_rate(called, named))
    weights = weights_at(trust, with_words=words is not None)
    return Doubt(inputs, weights, _scale(inputs, inputs.label_embeddings, anchors), naming)


def weights_at(trust: float, *, with_words: bool) -> Floats:
    """Return the weights for a crawl of whose texts the share `trust` can be believed."""
    plain, web_like = WEIGHTS[with_words]
    share = np.clip((trust - WEB_LIKE_TRUST) / (1 - WEB_LIKE_TRUST), 0, 1)
    weights = share * plain + (1 - share) * web_like
    weights[TEXT_TERMS] *= min(trust / WEB_LIKE_TRUST, 1)
    return weights


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
