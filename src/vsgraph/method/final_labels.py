"""Final labels and decisions, a block of images at a time."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats, do_in_threads
from vsgraph.common.checks import Floats, filled_rows
from vsgraph.method.decisions import decide
from vsgraph.method.evidence import Weigher
from vsgraph.method.fusion import fuse
from vsgraph.method.graph import gather
from vsgraph.method.network import Network
from vsgraph.method.open_set import (
    LIKELY,
    far_from_all,
    own_texts_count,
    text_nearness,
    typical_match,
)
from vsgraph.result.parts import Anchors, Decisions
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True)
class Given:
    """The arguments of a correction, checked; large arrays are read in blocks."""

    visual: Floats
    text: Floats
    meaning: Floats
    web_labels: NDArray[Any]
    labels: csr_array
    cnn: Floats | TopScores | None


@dataclasses.dataclass(frozen=True)
class Judged:
    """What was found out about all images: top scores by kind, and what to do with each."""

    scores: dict[str, TopScores]
    decisions: Decisions


class Judge:
    """Gives final labels to a block of images at a time."""

    def __init__(
        self,
        given: Given,
        network: Network,
        weigher: Weigher | None,
        smoothed: Floats,
        anchors: Anchors,
        settings: Settings,
    ) -> None:
        self.given, self.network, self.weigher = given, network, weigher
        self.smoothed, self.settings = smoothed, settings
        self.anchored = np.bincount(anchors.classes, minlength=len(given.meaning)) > 0
        self.typical = [
            typical_match(text, given.meaning, anchors)
            for text in (as_floats(given.text[anchors.rows]), self.around(anchors.rows))
        ]
        self.own_counts = weigher is None or self.far_texts_are_own(weigher)

    def around(self, rows: slice | NDArray[np.intp]) -> Floats:
        """Return the text within two steps on the graph."""
        step = csr_array(self.network.inputs.propagation[rows])
        return as_floats(self.smoothed[rows]) + gather(step, self.smoothed)

    def far_texts_are_own(self, weigher: Weigher) -> bool:
        """Tell, by the sample that was weighed, whether texts far from their labels mean much."""
        likeliest = weigher.given[weigher.posterior.argmax(axis=1)]
        text = as_floats(np.asarray(self.given.text[weigher.sampled]))
        near = text_nearness(text, self.given.meaning, likeliest, self.typical[0])
        return own_texts_count(near, weigher.model.trust, settings=self.settings)

    def judge(self, *, progress: bool) -> Judged:
        """Label all images, block by block."""
        n_images, n_classes = self.network.shape
        kinds = ["gnn", "final"]
        kinds += ["cnn"] if self.given.cnn is not None else []
        kinds += ["text"] if self.weigher is not None else []
        n_kept = self.settings.kept_scores
        scores = {kind: TopScores.empty(n_images, n_classes, n_kept=n_kept) for kind in kinds}
        codes = np.empty((2, n_images), np.uint8)
        labels = np.empty_like(self.given.web_labels)

        def fill(rows: slice) -> None:
            found, chosen = self.block(rows)
            for kind, block in found.items():
                scores[kind].put(rows, block)
            labels[rows] = chosen.final_labels
            codes[:, rows] = chosen.decisions, chosen.rules

        do_in_threads(fill, self.network.blocks(), title="labels", progress=progress)
        return Judged(scores, Decisions(labels, *codes))

    def block(self, rows: slice) -> tuple[dict[str, Floats], Decisions]:
        """Label the images of a block."""
        gnn = self.network[rows]
        cnn = None if self.given.cnn is None else as_floats(np.asarray(self.given.cnn[rows]))
        scores = {"gnn": gnn} if cnn is None else {"gnn": gnn, "cnn": cnn}
        scores |= self.final(rows, gnn, cnn)
        return scores, self.decide(rows, gnn, scores["final"])

    def final(self, rows: slice, gnn: Floats, cnn: Floats | None) -> dict[str, Floats]:
        """Weigh all evidence, or fuse by Eq. 8."""
        if self.weigher is not None:
            probs, factor = self.weigher.weigh(rows, [gnn] if cnn is None else [gnn, cnn])
            return {"final": probs, "text": factor}
        if cnn is None:
            return {"final": gnn}
        threshold, weight = self.settings.confidence_threshold, self.settings.gnn_weight
        return {"final": fuse(gnn, cnn, confidence_threshold=threshold, gnn_weight=weight)}

    def decide(self, rows: slice, gnn: Floats, final: Floats) -> Decisions:
        """Keep, relabel or reject."""
        own, around = as_floats(self.given.text[rows]), self.around(rows)
        likeliest = final.argmax(axis=1)
        near = [
            text_nearness(text, self.given.meaning, likeliest, typical)
            for text, typical in zip((own, around), self.typical, strict=True)
        ]
        if not self.own_counts:
            near[0] = np.full_like(near[0], np.nan)
        several = self.given.web_labels.ndim == 2
        likely = self.settings.drop_threshold if several else LIKELY
        far = far_from_all(gnn, final, *near, settings=self.settings, likely=likely)
        return decide(
            final,
            self.given.web_labels[rows],
            far=far,
            has_anchors=self.anchored,
            silent=~filled_rows(self.given.visual[rows]) & ~filled_rows(own),
            settings=self.settings,
        )
