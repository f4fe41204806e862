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

A text may be another image's (:mod:`vsgraph.method.trust`). So every image is judged twice, as if
its text were its own and as if it had none, each with weights of their own, and the trust in the
text says how far either counts. The weights were learned once, from several crawls made of
COCO-Web, half of them with texts that are missing or exchanged (`experiments/doubt_weights.py`
prints them).
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from vsgraph.common.blocks import Arrays, as_floats, evenly_spread, map_rows, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.method.evidence import Weighed
from vsgraph.method.evidence_fit import weighted
from vsgraph.method.inputs import Inputs
from vsgraph.method.naming import Naming, bounded_odds, learn_naming
from vsgraph.method.open_set import TextsAround, typical_match
from vsgraph.method.text_scale import SAMPLE, Indices, Scale, find_scale
from vsgraph.result.parts import Anchors

TERMS = (
    "bias", "graph", "evidence", "web label", "meaning around", "meaning", "distance",
    "name", "name around", "name in text", "rare name in text", "usual name in text",
    "word in text", "called so nearby", "unnamed",
)  # fmt: skip
N_WITHOUT_WORDS = 7  # terms that need no names of classes
WEIGHTS = {  # with names and without: of images whose own text is heard, of those without text
    True: np.array([
        [-0.20, 0.25, 0.18, -0.44, -0.21, 0.61, 0.40,
         0.91, -0.03, 0.97, 0.81, -0.18, 0.63, 0.10, 0.70],
        [-0.02, 0.08, 0.31, 0.33, 0.16, 0.00, 0.39,
         0.00, 0.21, 0.00, 0.00, 0.51, 0.00, 0.13, 0.56],
    ]),
    False: np.array([
        [0.64, 0.33, 0.20, 0.57, -0.59, 1.26, 0.71],
        [0.87, 0.15, 0.36, 0.38, 0.09, 0.00, 0.55],
    ]),
}  # fmt: skip
EDGES = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])  # of nearness, from far to near
RIGHT_SHARES = np.array(  # images with right labels of COCO-Web by nearness
    [
        [0.001, 0.002, 0.003, 0.010, 0.032, 0.067, 0.133, 0.751],  # own texts
        [0.081, 0.041, 0.054, 0.051, 0.061, 0.106, 0.143, 0.462],  # only texts around
    ]
)
MOST_CLASSES = 43  # of the crawls that the weights were learned from or checked on
PRIOR_TEXTS = 10  # what the usual distances count for in those of one class
LEAST_SHARE = 0.02
# A label that is right less often than this at its distance is believed no more than that, by
# the text of the image and by the texts around alone, which say it less reliably.
HARDLY = 0.25, 0.1

Mask = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Distance:
    """How probable labels are by how far the texts are from them.

    The nearness of a text to its class is compared with that of the class's anchors; of the image's
    own text and the texts around it, the nearer one counts. How it is distributed over images with
    right labels hardly differs between crawls (:data:`RIGHT_SHARES`). So where a class has many
    more distant texts than that, most of them are not of the class (a local false discovery rate).
    For a class that is not the web label, it is compared with the nearness of all such pairs.
    """

    around: TextsAround
    descriptions: Floats  # (n_classes, n_text_dims), of length one
    typical: tuple[Floats, Floats]  # (n_classes,) of anchors: own texts, texts around
    right: Floats  # (2, n_classes, n_bins) share of right web labels, with and without own text
    other: Floats  # the same of classes that are not the web label

    def believe(self, text: Floats, near: Floats, labels: Mask) -> list[Floats]:
        """Return the share of right labels at the distance of texts and all classes.

        First with the images' own texts, then by the texts around alone. `text` and `near`, the
        texts around each image, have rows of length one or zero; `labels` are the web labels,
        (n_rows, n_classes).
        """
        columns = np.arange(len(self.descriptions))
        return [
            np.where(labels, right[columns, found], other[columns, found])
            for right, other, found in zip(
                self.right, self.other, self.bins_of_all(text, near), strict=True
            )
        ]

    def bins_of_all(self, text: Floats, near: Floats) -> tuple[Indices, Indices]:
        """Return the bins of the distance of texts and all classes."""
        own, close = (
            texts @ self.descriptions.T / typical
            for texts, typical in zip((text, near), self.typical, strict=True)
        )
        return _bins(own, close, filled_rows(text), filled_rows(near))

    def bins_of(self, text: Floats, near: Floats, labels: Indices) -> tuple[Indices, ...]:
        """Return the bins of the distance of texts and one class each, as in `believe`.

        The third array says whether the own text is near.
        """
        own, close = (
            np.einsum("ij,ij->i", texts, self.descriptions[labels]) / typical[labels]
            for texts, typical in zip((text, near), self.typical, strict=True)
        )
        has_text = filled_rows(text)
        return *_bins(own, close, has_text, filled_rows(near)), has_text & (own >= EDGES[-1])


def _bins(own: Floats, near: Floats, has_own: Mask, has_near: Mask) -> tuple[Indices, Indices]:
    """Return the bins of the nearer of own texts and texts around, and of these alone.

    What is not known counts as near.
    """
    shape = (-1, *[1] * (own.ndim - 1))
    own = np.where(has_own.reshape(shape), own, np.nan)
    near = np.where(has_near.reshape(shape), near, np.nan)
    both, alone = (
        np.digitize(np.nan_to_num(known, nan=1.0), EDGES) for known in (np.fmax(own, near), near)
    )
    return both, alone


@dataclasses.dataclass(frozen=True)
class Doubt:
    """What was learned about a crawl, to judge every pair of an image and a class."""

    inputs: Inputs
    weights: Floats  # (2, n_terms), where the own text is heard and where it is not
    nearness: Scale  # of the images' own texts to the meanings
    nearness_around: Scale  # the same of the texts around
    distance: Distance
    naming: Naming | None
    shift: float = 0.0  # added to all log odds, see :mod:`vsgraph.method.calibration`

    def believe(self, rows: slice, gnn: Floats, weighed: Weighed) -> Floats:
        """Return the probability that each image of a block shows each class."""
        own, both = weighed.own[:, None], self.both(rows, gnn, weighed)
        heard, bare = (
            at_most(expit(self.shift + weighted(weights, terms)), terms, hardly)
            for weights, terms, hardly in zip(self.weights, both, HARDLY, strict=True)
        )
        return (own * heard + (1 - own) * bare).astype(np.float32)

    def terms(self, rows: slice, gnn: Floats, weighed: Weighed) -> list[Floats]:
        """Return the terms of a block, each to be broadcast to (n_rows, n_classes)."""
        own = weighed.own[:, None]
        return [
            own * heard + (1 - own) * bare
            for heard, bare in zip(*self.both(rows, gnn, weighed), strict=True)
        ]

    def both(self, rows: slice, gnn: Floats, weighed: Weighed) -> tuple[list[Floats], list[Floats]]:
        """Return the terms of a block where own texts are heard, and where they are not."""
        text = unit_rows(as_floats(self.inputs.text_embeddings[rows]))
        around = unit_rows(self.distance.around[rows])
        meanings = unit_rows(self.inputs.label_embeddings)
        nearness, silence = self.nearness(text @ meanings.T), np.zeros((1, 1), np.float32)
        close = np.where(filled_rows(around)[:, None], self.nearness_around(around @ meanings.T), 0)
        odds = bounded_odds(gnn) + _rarer(gnn.shape[1]), bounded_odds(weighed.probs)
        labels = self.inputs.labels[rows].toarray()
        shared = [np.ones((1, 1)), *odds, labels, close]
        shares = self.distance.believe(text, around, labels.astype(bool))
        heard, bare = (
            [*shared, near, np.log(np.maximum(right, LEAST_SHARE))]
            for near, right in zip((nearness, silence), shares, strict=True)
        )
        if self.naming is not None:
            named, unnamed = self.naming.both(rows, text, around)
            heard, bare = heard + named, bare + unnamed
        return heard, bare


def _rarer(n_classes: int) -> float:
    """Return what to add to the log odds of the graph in a crawl of more classes than usual.

    An untaught graph gives every class the same share, so its log odds fall with the number of
    classes, though it says no more against any of them.
    """
    return float(np.log(max(n_classes, MOST_CLASSES) - 1) - np.log(MOST_CLASSES - 1))


def at_most(probs: Floats, terms: Sequence[Floats], hardly: float) -> Floats:
    """Return probabilities of labels, where texts are far from them no more than is usual there."""
    right = np.exp(terms[TERMS.index("distance")])
    return np.where(right < hardly, np.minimum(probs, right), probs)


def learn_doubt(
    inputs: Inputs, anchors: Anchors, around: TextsAround, own: Floats, *, progress: bool = False
) -> Doubt:
    """Learn the scales of a crawl; `own` says how far each text is the image's, (n_images,)."""
    words, naming = inputs.words, None
    if words is not None:
        naming = learn_naming(inputs, words, anchors, around, own, progress=progress)
    texts, labels, meanings = inputs.text_embeddings, inputs.labels, inputs.label_embeddings
    own_scale, around_scale = (
        find_scale(some, labels, meanings, anchors) for some in (texts, around)
    )
    distance = _distances(inputs, anchors, around, own)
    weights = WEIGHTS[words is not None]
    return Doubt(inputs, weights, own_scale, around_scale, distance, naming)


def _distances(inputs: Inputs, anchors: Anchors, around: TextsAround, own: Floats) -> Distance:
    """Count the texts of each class by their distance, and compare with those of right labels."""
    given = inputs.label_embeddings if inputs.descriptions is None else inputs.descriptions
    descriptions = unit_rows(given)
    own_text = as_floats(np.asarray(inputs.text_embeddings[anchors.rows]))
    typical = (
        typical_match(own_text, descriptions, anchors),
        typical_match(around[anchors.rows], descriptions, anchors),
    )
    nothing = np.empty(0)
    distance = Distance(around, descriptions, typical, nothing, nothing)
    counts = np.zeros((3, len(descriptions), len(EDGES) + 1))
    labels = inputs.labels.indices

    def measure(rows: slice) -> Arrays:
        text, near = (unit_rows(as_floats(t[rows])) for t in (inputs.text_embeddings, around))
        bins = distance.bins_of(text, near, labels[rows])
        return tuple(part.astype(np.uint8) for part in bins)

    blocks = row_blocks(len(labels), row_bytes=16 * descriptions.shape[1])
    for rows, bins in zip(blocks, map_rows(measure, blocks, title="doubt"), strict=True):
        heard, alone, fits = bins
        np.add.at(counts[0], (labels[rows], heard), own[rows])
        np.add.at(counts[1], (labels[rows], alone), 1)
        np.add.at(counts[2], (labels[rows], alone), own[rows] * fits)
    right, expected = _right_shares(*counts)
    other = expected / (expected + _foreign(inputs, distance)[:, None])
    return dataclasses.replace(distance, right=right, other=_falling(other))


def _foreign(inputs: Inputs, distance: Distance) -> Floats:
    """Return how near texts are to classes that are not the web label, (2, n_bins), by a sample."""
    rows = evenly_spread(len(inputs.labels.indices), SAMPLE)
    text, near = (
        unit_rows(as_floats(np.asarray(t[rows]))) for t in (inputs.text_embeddings, distance.around)
    )
    others = ~inputs.labels[rows].toarray().astype(bool)
    known = filled_rows(text), filled_rows(near)
    counts = [
        np.bincount(found[others & has[:, None]], minlength=len(EDGES) + 1) + 1.0
        for found, has in zip(distance.bins_of_all(text, near), known, strict=True)
    ]
    return np.stack([count / count.sum() for count in counts])


def _right_shares(heard: Floats, alone: Floats, fitting: Floats) -> tuple[Floats, Floats]:
    """Return the share of right web labels by class and distance, and the expected distances.

    Counted are texts by distance, (n_classes, n_bins) each: own ones, those around, and those
    around images whose own text fits. These show how far texts around right labels are in a class.
    """
    own, around = (RIGHT_SHARES / RIGHT_SHARES.sum(axis=1, keepdims=True))[:, None]
    expected = np.stack([np.broadcast_to(own, heard.shape), _mixed(fitting, around)])
    found = np.stack([_mixed(heard, own), _mixed(alone, expected[1])])
    right = np.minimum(found[..., -1:] / expected[..., -1:], 1) * expected / found
    return _falling(np.minimum(right, 1)), expected


def _falling(shares: Floats) -> Floats:
    """Return shares by nearness, never more at a larger distance."""
    return np.minimum.accumulate(shares[..., ::-1], axis=-1)[..., ::-1]


def _mixed(counts: Floats, usual: Floats) -> Floats:
    """Return the shares of bins, (n_classes, n_bins), with what is usual as some texts more."""
    return (counts + PRIOR_TEXTS * usual) / (counts.sum(axis=1, keepdims=True) + PRIOR_TEXTS)
