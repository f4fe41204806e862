"""Beyond the paper: how far each label can be believed, whatever the other classes say.

The evidence is divided among the classes, so that some class always wins, also for an image that
shows none of them. Here every pair of an image and a class is judged by itself::

    logit P(image shows class)  =  bias  +  sum of  weight * term

The terms are on scales that do not depend on the encoders. They are the log odds of the graph and
of the evidence; how near the text comes to the meaning and to the name of the class, where 0 is a
text of another class and 1 the typical text of an anchor; whether the text has the name, or another
word for the meant sense; whether images that look like this one are called by that name; how many
labels are right at this distance of the text. So a class whose texts seldom speak of it is doubted
as a whole, and nothing says "yes" only because the other classes say "no".

The weights were learned once, from several crawls made of COCO-Web, half of them with texts that
are missing or exchanged (`experiments/doubt_weights.py` prints them). Between the two sets the
estimated share of texts that belong to their image decides. An image without text is judged by the
weights of crawls with missing texts, however good the other texts are: the weights of complete
texts would hold it against the image that none speaks for it.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from vsgraph.common.blocks import Arrays, as_floats, map_rows, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.method.inputs import Inputs
from vsgraph.method.naming import Naming, bounded_odds, learn_naming
from vsgraph.method.open_set import TextsAround, typical_match
from vsgraph.method.text_scale import Indices, Scale, find_scale
from vsgraph.result.parts import Anchors

TERMS = (
    "bias", "graph", "evidence", "web label", "no text", "meaning", "distance",
    "name", "name around", "name in text", "rare name in text", "usual name in text",
    "word in text", "called so nearby", "unnamed",
)  # fmt: skip
N_WITHOUT_WORDS = 7  # terms that need no names of classes
TEXT_TERMS = slice(5, 13)
WEB_LIKE_TRUST = 0.69  # of the crawls with missing and exchanged texts
WEIGHTS = {  # one row per set of terms: texts as they are, web-like texts
    True: np.array([
        [-0.65, 0.27, 0.17, -0.33, 0.00, 0.89, 0.40,
         1.19, 0.04, 1.27, 0.80, -0.30, 0.38, 0.11, 0.74],
        [-1.83, 0.16, 0.20, 0.55, 0.55, 0.33, 0.06,
         0.04, 1.19, 0.71, 0.61, 1.36, 0.01, 0.13, 0.33],
    ]),
    False: np.array([
        [-0.27, 0.35, 0.19, 0.78, 0.00, 1.79, 0.56],
        [0.67, 0.37, 0.26, 0.44, 0.13, 0.16, 0.50],
    ]),
}  # fmt: skip
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

    def believe(self, text: Floats, near: Floats) -> Floats:
        """Return the share of right labels at the distance of texts and all classes.

        `text` and `near`, the texts around each image, have rows of length one or zero.
        """
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
class Doubt:
    """What was learned about a crawl, to judge every pair of an image and a class."""

    inputs: Inputs
    weights: Floats  # (n_terms,)
    nearness: Scale
    distance: Distance
    naming: Naming | None
    shift: float = 0.0  # added to all log odds, see :mod:`vsgraph.method.calibration`
    bare: Floats | None = None  # (n_terms,), for images without text; None if they are the same

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
        every = unit_rows(as_floats(self.inputs.text_embeddings[rows]))
        text = every if self.naming is None else every * self.naming.own[rows, None]
        around = unit_rows(self.distance.around[rows])
        has_text = filled_rows(text)[:, None]
        cosines = text @ unit_rows(self.inputs.label_embeddings).T
        return [
            np.ones((1, 1)),
            bounded_odds(gnn),
            bounded_odds(final),
            self.inputs.labels[rows].toarray(),
            (~has_text).astype(np.float32),
            np.where(has_text, self.nearness(cosines), 0),
            np.log(np.maximum(self.distance.believe(every, around), LEAST_SHARE)),
            *(self.naming.terms(rows, text, around) if self.naming else ()),
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
        naming = learn_naming(inputs, words, anchors, around, trust=trust, progress=progress)
    weights = weights_at(trust, with_words=words is not None)
    texts, labels, meanings = inputs.text_embeddings, inputs.labels, inputs.label_embeddings
    scale = find_scale(texts, labels, meanings, anchors)
    distance = _distances(inputs, anchors, around, trust=trust)
    bare = weights_at(min(trust, WEB_LIKE_TRUST), with_words=words is not None)
    return Doubt(inputs, weights, scale, distance, naming, bare=bare)


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

    def measure(rows: slice) -> Arrays:
        text, near = (unit_rows(as_floats(t[rows])) for t in (inputs.text_embeddings, around))
        own, close = (
            np.einsum("ij,ij->i", texts, descriptions[labels[rows]]) / typical[kind][labels[rows]]
            for kind, texts in enumerate((text, near))
        )
        bins = _bins(_nearer(own, close, filled_rows(text), filled_rows(near)))
        return (~filled_rows(text)).astype(np.uint8), bins.astype(np.uint8)

    blocks = row_blocks(len(labels), row_bytes=16 * descriptions.shape[1])
    for rows, (silent, bins) in zip(blocks, map_rows(measure, blocks, title="doubt"), strict=True):
        np.add.at(counts, (silent, labels[rows], bins), 1)
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
