"""What the names of the classes in the texts tell of the images.

A name says the more, the fewer texts of the class have it: where every text has it, as the query
itself, it says nothing. Images of a class that are not called by its name are believed as far as
they look like those that are.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import Arrays, fill_rows, map_rows, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.method.inputs import Inputs, Words
from vsgraph.method.probe import Probes, learn_probe
from vsgraph.method.text_scale import (
    Indices,
    Scale,
    Texts,
    find_scale,
)
from vsgraph.result.parts import Anchors
from vsgraph.result.scores import TopScores, log_odds

LIMIT = 7.0  # largest log odds of a term
FEW_MENTIONS = 5
KEPT = 32  # scores of an image
FOLDS = 2  # of the probe that learns who is called so; more of them find no more
RAREST = 0.05  # a name that fewer texts of a class have says no more than at this share
USUAL_LOOK = 0.6  # how far images look like those that are called so, before any were seen
PRIOR_LOOKS = 5  # and how many images that counts for
EXTREMES = 0.05, 0.95  # of the same for a class

Mask = NDArray[np.bool_]


def bounded_odds(probs: Floats) -> Floats:
    """Return log odds within the limits of a term."""
    return np.clip(log_odds(probs), -LIMIT, LIMIT)


@dataclasses.dataclass(frozen=True)
class Naming:
    """What was learned about the names of the classes."""

    words: Words
    nearness: Scale  # of the images' own texts to the names
    nearness_around: Scale  # the same of the texts around
    usual_mention: Floats  # (n_classes,) share of each class's texts that have its name
    surprise: Floats  # (n_classes,) how much a name says, by how few texts of the class have it
    unnamed: Floats  # (n_classes,) log odds of images of a class that are not called so
    called: TopScores  # (n_images, n_classes) whether similar images are called so
    call_rate: Floats  # (n_classes,) the same of images that are called so; 0 if there are few
    probe: Probes  # that learned who is called so

    def both(self, rows: slice, text: Floats, around: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return the terms of a block that need names, with own texts heard and without.

        `text` and `around`, the texts around each image, have rows of length one or zero.
        """
        names = unit_rows(self.words.name_embeddings)
        near = np.where(filled_rows(around)[:, None], self.nearness_around(around @ names.T), 0)
        nothing = np.zeros((1, 1), np.float32)
        usual, nearby = self.usual_mention[None], self._shown_nearby(rows)
        named = self.words.names[rows].toarray()
        heard = [
            self.nearness(text @ names.T), near, named, named * self.surprise, usual,
            self.words.words[rows].toarray(), nearby, ~named * self.unnamed,
        ]  # fmt: skip
        unnamed = self.unnamed[None]
        return heard, [nothing, near, nothing, nothing, usual, nothing, nearby, unnamed]

    def _shown_nearby(self, rows: slice) -> Floats:
        """Return the log odds that images show a class, by what similar images are called.

        Not every image of a class is called by its name. The rate at which those are that are
        called so corrects for that. The term is 0 for a class that is hardly ever named.
        """
        rate = self.call_rate
        shown = np.clip(self.called[rows] / np.where(rate > 0, rate, 1), 0.01, 0.99)
        return np.where(rate > 0, bounded_odds(shown), 0)


@dataclasses.dataclass(frozen=True)
class _Mentions:
    """Which images are called by the name of their label in a text of their own."""

    columns: Indices  # (n_images,) the labels
    own: Floats  # (n_images,) probability that there is a text that is the image's own
    named: Mask
    share: Floats  # (n_classes,) of the own texts of each class that have its name

    @classmethod
    def of(cls, inputs: Inputs, names: csr_array, own: Floats) -> "_Mentions":
        rows, columns = inputs.labels.tocoo().coords
        named = np.asarray(names[rows, columns], bool).ravel()
        n_texts, n_named = (
            np.bincount(columns, own * some, minlength=names.shape[1])
            for some in (np.ones(len(named)), named)
        )
        return cls(columns, own, named, (n_named + 0.5) / (n_texts + 1))


def learn_naming(
    inputs: Inputs, words: Words, anchors: Anchors, around: Texts, own: Floats, *, progress: bool
) -> Naming:
    """Learn who is called by the name of a class; `own` says how far texts are the images'."""
    texts, labels, names = inputs.text_embeddings, inputs.labels, words.name_embeddings
    named = _named(words)
    probe = learn_probe(
        inputs.features, named, n_classes=named.shape[1], n_folds=FOLDS, progress=progress
    )
    called = probe.out_of_fold(n_kept=KEPT, progress=progress)
    mentions = _Mentions.of(inputs, words.names, own)
    share = np.clip(mentions.share, RAREST, 1)
    return Naming(
        words=words,
        nearness=find_scale(texts, labels, names, anchors),
        nearness_around=find_scale(around, labels, names, anchors),
        usual_mention=mentions.share,
        surprise=-np.log(share),
        unnamed=(1 - share) * _unnamed_odds(called, mentions),
        called=called,
        call_rate=_call_rate(called, named),
        probe=probe,
    )


def _named(words: Words) -> csr_array:
    """Return which images are called by a class's name, or by any word for it if few are."""
    few = np.asarray(words.names.sum(axis=0)).ravel() < FEW_MENTIONS
    others = words.words.multiply(few)
    return csr_array(words.names.multiply(~few) + others).astype(bool)


def _call_rate(called: TopScores, named: csr_array) -> Floats:
    """Return the mean score of the images that are called by the name of each class; 0 if few."""
    counts = np.asarray(named.sum(axis=0)).ravel()
    sums = np.zeros(len(counts))

    def add_up(rows: slice) -> Arrays:
        return (np.asarray(named[rows].multiply(called[rows]).sum(axis=0)).ravel(),)

    blocks = row_blocks(len(called), row_bytes=8 * len(counts))
    for (part,) in map_rows(add_up, blocks, title="names"):
        sums += part
    return np.where(counts >= FEW_MENTIONS, np.maximum(sums / np.maximum(counts, 1), 1e-3), 0)


def _unnamed_odds(called: TopScores, mentions: _Mentions) -> Floats:
    """Return the log odds that images of a class show it whose texts do not have its name.

    It is how far they look like those whose texts have it, (n_classes,); 0 if these are few.
    """
    n_classes = len(mentions.share)

    def look_up(rows: slice) -> Arrays:
        block = called[rows]
        return (block[np.arange(len(block)), mentions.columns[rows]].astype(np.float64),)

    (look,) = fill_rows(look_up, row_blocks(len(called), row_bytes=8 * n_classes), title="names")

    def sums(some: Mask, values: Floats | float = 1.0) -> Any:  # noqa: ANN401
        return np.bincount(mentions.columns, mentions.own * some * values, n_classes)

    n_named = sums(mentions.named)
    rate = np.maximum(sums(mentions.named, look) / np.maximum(n_named, 1), 1e-3)
    alike = np.minimum(look / rate[mentions.columns], 1)
    n_unnamed = sums(~mentions.named)
    shown = (sums(~mentions.named, alike) + PRIOR_LOOKS * USUAL_LOOK) / (n_unnamed + PRIOR_LOOKS)
    return np.where(n_named >= FEW_MENTIONS, bounded_odds(np.clip(shown, *EXTREMES)), 0)
