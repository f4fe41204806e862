"""Beyond the paper: how far each text is trusted to be its image's own.

A text of the web may belong to another image. Its picture tells (:mod:`vsgraph.method.belonging`),
and so does the name of the label: an image was found by its text, so its own text has that name
more often than the text of another image has.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats, filled_rows
from vsgraph.method.belonging import Belonging, learn_belonging
from vsgraph.method.inputs import Inputs
from vsgraph.neighbors.sketch import Singles

Indices = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]
ROUNDS = 3  # of counting which own texts have the name of their label


@dataclasses.dataclass(frozen=True)
class NameShares:
    """How many texts have the name of each class."""

    own: Floats  # (n_classes,) of the own texts of its images
    elsewhere: Floats  # (n_classes,) of the texts of other classes

    def ask(self, own: Floats, names: csr_array, labels: csr_array) -> Singles:
        """Return how far texts are the images' own, given which have the name of their label."""
        rows, columns, named = _named_labels(names, labels)
        yes, no = self.own / self.elsewhere, (1 - self.own) / (1 - self.elsewhere)
        times = own[rows] * np.where(named, yes[columns], no[columns])
        asked = own.astype(np.float32)
        asked[rows] = times / np.maximum(times + 1 - own[rows], np.finfo(np.float32).tiny)
        return asked


def count_names(own: Floats, names: csr_array, labels: csr_array) -> NameShares:
    """Count the texts with the name of a class; `own` is how far each is the image's."""
    rows, columns, named = _named_labels(names, labels)
    has_text, n_classes = own > 0, names.shape[1]
    among, of_class = (
        np.bincount(columns, some & has_text[rows], n_classes) for some in (named, True)
    )
    n_named = names.T @ has_text.astype(np.float64)
    elsewhere = (n_named - among + 0.5) / (has_text.sum() - of_class + 1)
    shares, asked = NameShares(elsewhere, elsewhere), own
    for _ in range(ROUNDS):
        found, all_own = (np.bincount(columns, asked[rows] * s, n_classes) for s in (named, 1.0))
        shares = NameShares((found + 0.5) / (all_own + 1), elsewhere)
        asked = shares.ask(own, names, labels)
    return shares


def _named_labels(names: csr_array, labels: csr_array) -> tuple[Indices, Indices, Mask]:
    """Return images, their labels, and whether their texts have the names of these."""
    rows, columns = labels.tocoo().coords
    if not len(rows):  # scipy refuses to look up nothing
        return rows, columns, np.zeros(0, bool)
    return rows, columns, np.asarray(names[rows, columns], bool).ravel()


@dataclasses.dataclass(frozen=True)
class TextTrust:
    """How far each text is trusted to be its image's."""

    own: Singles  # (n_images,), a probability; 0 without text
    belonging: Belonging | None = None  # None if pictures cannot tell
    names: NameShares | None = None

    def of_others(self, new: Inputs) -> Singles:
        """Return the same for images that nothing was learned from."""
        if self.belonging is None:
            return filled_rows(new.text_embeddings).astype(np.float32)
        own = self.belonging.of_others(new.features, new.text_embeddings)
        if self.names is None or new.words is None:
            return own
        return self.names.ask(own, new.words.names, new.labels)


def trust_texts(inputs: Inputs) -> TextTrust:
    """Find how far each text is trusted; all of them in full if pictures cannot tell."""
    belonging = learn_belonging(inputs.features, inputs.text_embeddings)
    if belonging is None:
        return TextTrust(filled_rows(inputs.text_embeddings).astype(np.float32))
    own, words = belonging.of_crawl(inputs.text_embeddings), inputs.words
    if words is None:
        return TextTrust(own, belonging)
    names = count_names(own, words.names, inputs.labels)
    return TextTrust(names.ask(own, words.names, inputs.labels), belonging, names)
