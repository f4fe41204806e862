"""What is known of every image before it is decided on, found one block of images at a time."""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats, do_in_threads
from vsgraph.common.checks import Floats, filled_rows
from vsgraph.method.evidence import Weigher
from vsgraph.method.fusion import fuse_rows
from vsgraph.method.graph import gather
from vsgraph.method.inputs import Inputs
from vsgraph.method.network import Network
from vsgraph.method.open_set import text_nearness, typical_match
from vsgraph.result.parts import Anchors
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True, eq=False)
class ImageScores:
    """What is known of every image before it is decided on.

    Attributes
    ----------
    final, gnn, cnn, text : TopScores of shape (n_images, n_classes)
        What decisions are made on, ``p_g``, ``p_c`` (None without a CNN), and the factor by which
        the text raises or lowers each class (None in the paper's fusion).
    graph_score : float array of shape (n_images,)
        ``p_g`` of the class that `final` holds to be the likeliest.
    own_nearness, near_nearness : float array of shape (n_images,)
        How near the image's own text, and the texts within two steps on the graph, come to the
        likeliest class; one is as near as its anchors' texts are, NaN is no text.
    sample_nearness : float array of shape (n_sampled,)
        The same for the texts that the evidence was learned from.
    unreadable, silent : bool array of shape (n_images,)
        Images without a picture; those without a text as well.
    anchored : bool array of shape (n_classes,)
        Classes that have anchors.
    confusion : float array of shape (n_classes, n_classes) or None
        Estimated share of each web label among the images of each class.
    weights : dict of str to float
        How far each witness was believed; empty in the paper's fusion.
    """

    final: TopScores
    gnn: TopScores
    cnn: TopScores | None
    text: TopScores | None
    graph_score: Floats
    own_nearness: Floats
    near_nearness: Floats
    sample_nearness: Floats
    unreadable: NDArray[np.bool_]
    silent: NDArray[np.bool_]
    anchored: NDArray[np.bool_]
    confusion: Floats | None
    weights: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Scorer:
    """Scores a block of images at a time, given what the stages before have learned."""

    inputs: Inputs
    network: Network
    weigher: Weigher | None
    smoothed: Floats  # (n_images, n_text_dims)
    anchors: Anchors
    settings: Settings

    def texts_around(self, rows: slice | NDArray[np.intp]) -> Floats:
        """Return the texts within two steps on the graph, (n_rows, n_text_dims)."""
        step = csr_array(self.network.inputs.propagation[rows])
        return as_floats(self.smoothed[rows]) + gather(step, self.smoothed)

    def score_all(self, *, progress: bool) -> ImageScores:
        """Score every image."""
        n_images, n_classes = self.network.shape
        meaning = self.inputs.label_embeddings
        own_typical = typical_match(
            as_floats(self.inputs.text_embeddings[self.anchors.rows]), meaning, self.anchors
        )
        near_typical = typical_match(self.texts_around(self.anchors.rows), meaning, self.anchors)
        kinds = {"gnn", "final"}
        kinds |= {"cnn"} if self.inputs.cnn_probs is not None else set()
        kinds |= {"text"} if self.weigher is not None else set()
        n_kept = self.settings.kept_scores
        tops = {kind: TopScores.empty(n_images, n_classes, n_kept=n_kept) for kind in kinds}
        graph_score, own_nearness, near_nearness = np.empty((3, n_images), np.float32)
        unreadable, silent = np.empty((2, n_images), bool)

        def score_block(rows: slice) -> None:
            scores = self._scores(rows)
            for kind, block in scores.items():
                tops[kind].put(rows, block)
            likeliest = scores["final"].argmax(axis=1)
            graph_score[rows] = np.take_along_axis(scores["gnn"], likeliest[:, None], axis=1)[:, 0]
            own_text = as_floats(self.inputs.text_embeddings[rows])
            own_nearness[rows] = text_nearness(own_text, meaning, likeliest, own_typical)
            around = self.texts_around(rows)
            near_nearness[rows] = text_nearness(around, meaning, likeliest, near_typical)
            unreadable[rows] = ~filled_rows(self.inputs.features[rows])
            silent[rows] = unreadable[rows] & ~filled_rows(own_text)

        do_in_threads(score_block, self.network.blocks(), title="scores", progress=progress)
        return ImageScores(
            tops["final"], tops["gnn"], tops.get("cnn"), tops.get("text"),
            graph_score=graph_score,
            own_nearness=own_nearness,
            near_nearness=near_nearness,
            sample_nearness=self._sample_nearness(own_typical),
            unreadable=unreadable,
            silent=silent,
            anchored=self.network.anchored,
            confusion=self.weigher.confusion if self.weigher else None,
            weights=self.weigher.model.summary() if self.weigher else {},
        )  # fmt: skip

    def _scores(self, rows: slice) -> dict[str, Floats]:
        """Return the scores of a block by kind, each of shape (n_rows, n_classes)."""
        gnn = self.network[rows]
        if self.inputs.cnn_probs is None:
            scores = {"gnn": gnn}
        else:
            scores = {"gnn": gnn, "cnn": as_floats(np.asarray(self.inputs.cnn_probs[rows]))}
        if self.weigher is not None:
            final, factor = self.weigher.weigh(rows, list(scores.values()))
            return scores | {"final": final, "text": factor}
        if "cnn" not in scores:
            return scores | {"final": gnn}
        fused = fuse_rows(
            gnn,
            scores["cnn"],
            confidence_threshold=self.settings.confidence_threshold,
            gnn_weight=self.settings.gnn_weight,
        )
        return scores | {"final": fused}

    def _sample_nearness(self, typical: Floats) -> Floats:
        """Compare the texts that the evidence was learned from with their likeliest classes."""
        if self.weigher is None:
            return np.empty(0, np.float32)
        likeliest = self.weigher.given[self.weigher.posterior.argmax(axis=1)]
        text = as_floats(np.asarray(self.inputs.text_embeddings[self.weigher.sampled]))
        return text_nearness(text, self.inputs.label_embeddings, likeliest, typical)
