"""Beyond the paper: labels for new images from what was learned of a crawl, which stays as it is.

A new image is connected with the images of the crawl that it looks most like, as if it had been
among them, but they do not look at it, and new images do not look at each other: the label of an
image does not depend on what else is asked about. What is not known of it (its web label, its text)
says nothing. All that was learned (network, weights of the witnesses, scales of the doubt) is used
as it is.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, vstack

from vsgraph.common.blocks import row_lengths
from vsgraph.common.checks import Floats, filled_rows
from vsgraph.method.answers import Lesson
from vsgraph.method.doubt import Doubt
from vsgraph.method.evidence import Weigher
from vsgraph.method.given import TrainedNetwork
from vsgraph.method.graph import counting, gather, propagation_matrix
from vsgraph.method.inputs import Inputs
from vsgraph.method.network import Network, NetworkInputs
from vsgraph.method.open_set import TextsAround
from vsgraph.method.scoring import ImageScores, Scorer
from vsgraph.method.trust import TextTrust
from vsgraph.method.unchecked import PictureDoubt
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True)
class Learned:
    """What was learned of a crawl."""

    inputs: Inputs  # as the stages read them, with words
    adjacency: csr_array  # (n_images, n_images)
    smoothed: Floats  # (n_images, n_text_dims)
    trust: TextTrust | None
    trained: TrainedNetwork
    weigher: Weigher | None
    doubt: Doubt | PictureDoubt
    settings: Settings
    lesson: Lesson | None = None  # what answers taught

    def taught(self) -> "Learned":
        """Return the same with what the answers of people teach, if there are any."""
        network, anchors = self.trained
        scorer = Scorer(
            self.inputs, network, self.weigher, self.doubt, self.smoothed, anchors, self.settings
        )
        return dataclasses.replace(self, lesson=scorer.taught().lesson)


@dataclasses.dataclass(frozen=True)
class Stacked:
    """New rows, with those of the crawl after them, read by row numbers; as long as the new."""

    new: Floats
    old: Floats

    def __len__(self) -> int:
        return len(self.new)

    @property
    def shape(self) -> tuple[int, int]:
        """New rows and columns."""
        return len(self.new), self.new.shape[1]

    def __getitem__(self, rows: slice | NDArray[np.integer[Any]]) -> Floats:
        if isinstance(rows, slice):
            return np.asarray(self.new[rows])
        values = np.empty((len(rows), self.shape[1]), np.float32)
        is_new = rows < len(self.new)
        values[is_new] = self.new[rows[is_new]]
        values[~is_new] = self.old[rows[~is_new] - len(self.new)]
        return values


def score_newcomers(learned: Learned, new: Inputs, edges: csr_array) -> ImageScores:
    """Score new images; `new` are their arrays with words, web labels of -1 are unknown.

    `edges` are to the images of the crawl, (n_new, n_images), cosines.
    """
    step = _propagation(learned, edges)
    texts: Any = Stacked(new.text_embeddings, learned.inputs.text_embeddings)
    near = csr_array(step[: len(new.features)])
    own = filled_rows(new.text_embeddings).astype(np.float32)
    if learned.trust is not None:
        own = learned.trust.of_others(new)
        near = counting(near, np.concatenate([own, learned.trust.own]))
    smoothed: Any = Stacked(gather(near, texts), learned.smoothed)
    network = _network(learned, new, step)
    share = csr_array(diags_array(1 / np.maximum(np.diff(new.labels.indptr), 1)) @ new.labels)
    weigher = learned.weigher and dataclasses.replace(
        learned.weigher, text=new.text_embeddings, own=own, share=share,
        sampled=np.empty(0, np.intp), posterior=learned.weigher.posterior[:0],
    )  # fmt: skip
    doubt = _doubt(learned, new, TextsAround(smoothed, step))
    scorer = Scorer(
        new, network, weigher, doubt, smoothed, learned.trained.anchors, learned.settings,
        learned.lesson and learned.lesson.for_others(new),
    )  # fmt: skip
    return scorer.score_all(progress=False)


def _propagation(learned: Learned, edges: csr_array) -> csr_array:
    """Return the operator of the graph with new images before the others, who do not see them."""
    n_new, n_old = edges.shape
    settings = learned.settings
    above = csr_array((edges.data, edges.indices + n_new, edges.indptr), (n_new, n_new + n_old))
    old = learned.adjacency
    below = csr_array((old.data, old.indices + n_new, old.indptr), (n_old, n_new + n_old))
    both = csr_array(vstack([above, below], format="csr"))
    return propagation_matrix(both, self_weight=settings.self_weight, form=settings.form)


def _network(learned: Learned, new: Inputs, step: csr_array) -> Network:
    """Return the network, which sees new images and their neighbors."""
    before = learned.trained.network
    unit = learned.settings.unit_features
    length = row_lengths(new.features) if unit else np.ones(len(new.features))
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    features: Any = Stacked(new.features, learned.inputs.features)
    inputs = NetworkInputs(
        features, np.concatenate([scale, before.inputs.scale]), step, before.inputs.n_layers,
        before.inputs.form,
    )  # fmt: skip
    return dataclasses.replace(before, inputs=inputs)


def _doubt(learned: Learned, new: Inputs, around: TextsAround) -> Doubt | PictureDoubt:
    """Return the doubt about new images, by what was learned of the others."""
    doubt = learned.doubt
    if isinstance(doubt, PictureDoubt):
        return PictureDoubt(new.labels)
    naming = doubt.naming
    if naming is not None and new.words is not None:
        n_kept = naming.called.values.shape[1]
        called: TopScores = naming.probe.judge(np.asarray(new.features), n_kept=n_kept)
        naming = dataclasses.replace(naming, words=new.words, called=called)
    distance = dataclasses.replace(doubt.distance, around=around)
    return dataclasses.replace(doubt, inputs=new, distance=distance, naming=naming)
