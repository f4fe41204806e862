"""Crawls without text: what the pictures alone say.

Without text nothing tells which meaning of a label is meant. The pictures still tell which images
are unlike the others of their class. Anchors are the images whose neighbors have the same label,
and the graph network learns from them as ever. What most images of a class show is believed to be
its meaning. The meaning is not checked, so the share of right labels cannot be known, and only
labels that are likelier wrong than right are changed.
"""

import dataclasses
import warnings

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, filled_rows
from vsgraph.errors import VSGraphWarning
from vsgraph.method.evidence import MIN_TEXTS_PER_CLASS, Weighed, Weigher
from vsgraph.method.inputs import Inputs
from vsgraph.result.scores import log_odds

UNCHECKED = (
    "unchecked meaning: too few texts, or they say nothing of the pictures, so what most images of "
    "a class show is believed to be its meaning"
)
FEW_TEXTS = 5  # of a class, or of half of its images if it is small; half of the classes need them
SAYS_NOTHING = 0.1  # trust in the texts, below which they are left out
BIAS, GRAPH, WEB_LABEL = 0.56, 0.84, 2.40  # from experiments/doubt_weights.py
LIMIT = 7.0  # largest log odds of the graph


def has_texts(inputs: Inputs) -> bool:
    """Return whether there is enough text to tell what images show."""
    has_text = filled_rows(inputs.text_embeddings)
    n_images = np.asarray(inputs.labels.sum(axis=0)).ravel()
    n_texts = inputs.labels.T @ has_text.astype(np.float64)
    enough = (n_images > 0) & (n_texts >= np.minimum(FEW_TEXTS, np.ceil(n_images / 2)))
    is_enough = 2 * enough.sum() >= (n_images > 0).sum()
    return bool(is_enough and has_text.sum() >= MIN_TEXTS_PER_CLASS * len(inputs.class_names))


def if_checked(learned: Weigher | None) -> Weigher | None:
    """Return the weights of the evidence; None, with a warning, if texts cannot check meanings."""
    if learned is not None and learned.summary()["trust"] >= SAYS_NOTHING:
        return learned
    warnings.warn(UNCHECKED, VSGraphWarning, stacklevel=3)
    return None


def match_pictures(inputs: Inputs, adjacency: csr_array) -> csr_array:
    """Return the share of neighbors with the same web label, in place of Eq. 5.

    It has the shape (n_images, n_classes), with a number at each web label; NaN for an image
    without a picture.
    """
    labels = inputs.labels
    match = np.empty(labels.nnz, np.float32)
    for rows in row_blocks(labels.shape[0], row_bytes=8 * labels.shape[1]):
        near = csr_array(adjacency[rows])
        total = np.maximum(near.sum(axis=1), np.finfo(np.float32).tiny)
        scores = (near @ labels).toarray() / total[:, None]
        scores[~filled_rows(inputs.features[rows])] = np.nan
        starts = labels.indptr[rows.start : rows.stop + 1]
        owner = np.repeat(np.arange(len(scores)), np.diff(starts))
        match[starts[0] : starts[-1]] = scores[owner, labels.indices[starts[0] : starts[-1]]]
    return csr_array((match, labels.indices, labels.indptr), shape=labels.shape)


@dataclasses.dataclass(frozen=True)
class PictureDoubt:
    """How far labels can be believed by their pictures alone."""

    labels: csr_array  # (n_images, n_classes)

    def believe(self, rows: slice, gnn: Floats, evidence: Weighed) -> Floats:
        """Return the probability that each image of a block shows each class."""
        one, graph, web_label = self.terms(rows, gnn, evidence)
        return expit(BIAS * one + GRAPH * graph + WEB_LABEL * web_label).astype(np.float32)

    def terms(self, rows: slice, gnn: Floats, _: Weighed) -> list[Floats]:
        """Return what is added up: one, the log odds of the graph, the web label."""
        odds = np.clip(log_odds(gnn), -LIMIT, LIMIT)
        return [np.ones((1, 1)), odds, self.labels[rows].toarray()]
