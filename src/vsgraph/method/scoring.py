"""What is known of every image before it is decided on, found one block of images at a time."""

import dataclasses
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import Arrays, as_floats, fill_rows
from vsgraph.common.checks import Floats, filled_rows
from vsgraph.method.answers import Lesson, learn_lesson
from vsgraph.method.doubt import Doubt
from vsgraph.method.evidence import Weighed, Weigher, only_graph
from vsgraph.method.fusion import fuse_rows
from vsgraph.method.inputs import Inputs
from vsgraph.method.network import Network
from vsgraph.method.open_set import TextsAround, text_nearness, typical_match
from vsgraph.method.unchecked import PictureDoubt
from vsgraph.result.parts import UNANSWERED, Anchors
from vsgraph.result.scores import PARTS, TopScores
from vsgraph.settings import Settings

NOTHING = np.empty(0, np.float32)


@dataclasses.dataclass(frozen=True, eq=False)
class ImageScores:
    """What is known of every image before it is decided on.

    Attributes
    ----------
    final, gnn, cnn, text : TopScores of shape (n_images, n_classes)
        What decisions are made on, ``p_g``, ``p_c`` (None without a CNN), and the factor by which
        the text raises or lowers each class (None in the paper's fusion).
    graph_score : float array of shape (n_images,)
        ``p_g`` of the class that `final` holds to be the likeliest. This and the next three are
        empty if labels can be doubted; `unwanted` is None if they cannot.
    own_nearness, near_nearness : float array of shape (n_images,)
        How near the image's own text, and the texts within two steps on the graph, come to the
        likeliest class; one is as near as its anchors' texts are, NaN is no text.
    sample_nearness : float array of shape (n_sampled,)
        The same for the texts that the evidence was learned from.
    unwanted : int array of shape (n_images,)
        The number of the unwanted sense that an image most likely shows; -1 if it is a class.
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
    unwanted: NDArray[np.int16] | None
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
    doubt: Doubt | PictureDoubt | None
    smoothed: Floats  # (n_images, n_text_dims)
    anchors: Anchors
    settings: Settings
    lesson: Lesson | None = None  # what answers teach; None without them

    def taught(self) -> "Scorer":
        """Return a scorer that has learned from the answers of people, if labels are doubted."""
        doubt = self.doubt
        if doubt is None or self.inputs.answers is None:
            return self

        def judge(rows: slice) -> tuple[list[Floats], Floats]:
            gnn, evidence = self._evidence(rows)
            return doubt.terms(rows, gnn, evidence), doubt.believe(rows, gnn, evidence)

        lesson = learn_lesson(self.inputs, judge, self.network.blocks())
        return dataclasses.replace(self, lesson=lesson)

    def _evidence(self, rows: slice) -> tuple[Floats, Weighed]:
        """Return ``p_g`` of a block, (n_rows, n_classes), and all evidence."""
        gnn = self.network[rows]
        if self.weigher is None:
            return gnn, only_graph(gnn)
        return gnn, self.weigher.weigh(rows, [gnn, *self.inputs.heard(rows).values()])

    @property
    def around(self) -> TextsAround:
        """The texts within two steps on the graph."""
        return TextsAround(self.smoothed, self.network.inputs.propagation)

    def score_all(self, *, progress: bool) -> ImageScores:
        """Score every image; of the classes, only the wanted ones are kept."""
        nearness = None if self.doubt else _Nearness.of(self)
        n_wanted, kinds = self.inputs.n_wanted, self._kinds
        filled = iter(
            fill_rows(
                lambda rows: self._score_block(rows, nearness),
                self.network.blocks(), title="scores", progress=progress,
            )
        )  # fmt: skip
        tops = {kind: TopScores.from_parts(islice(filled, len(PARTS)), n_wanted) for kind in kinds}
        unwanted, unreadable, silent = islice(filled, 3)
        graph_score, own, near = filled if nearness else (NOTHING, NOTHING, NOTHING)
        confusion = self.weigher.confusion[:n_wanted, :n_wanted] if self.weigher else None
        return ImageScores(
            tops["final"], tops["gnn"], tops.get("cnn"), tops.get("text"),
            graph_score=graph_score,
            own_nearness=own,
            near_nearness=near,
            sample_nearness=nearness.of_sample() if nearness else NOTHING,
            unwanted=unwanted if self.doubt else None,
            unreadable=unreadable,
            silent=silent,
            anchored=self.network.anchored[:n_wanted],
            confusion=confusion,
            weights=self.weigher.summary() if self.weigher else {},
        )  # fmt: skip

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds of scores that images get."""
        cnn = ("cnn",) if self.inputs.cnn_probs is not None else ()
        return ("final", "gnn", *cnn, *(("text",) if self.weigher is not None else ()))

    def _score_block(self, rows: slice, nearness: "_Nearness | None") -> Arrays:
        """Return what is known of a block, one row per image: scores, unwanted, what is missing."""
        scores, n_wanted = self._scores(rows), self.inputs.n_wanted
        tops = [TopScores.of(scores[kind][:, :n_wanted], n_kept=self.settings.kept_scores).parts()
                for kind in self._kinds]  # fmt: skip
        likeliest = scores["final"].argmax(axis=1)
        unwanted = np.maximum(likeliest - n_wanted, -1).astype(np.int16)
        unreadable = ~filled_rows(self.inputs.features[rows])
        silent = unreadable & ~filled_rows(self.inputs.text_embeddings[rows])
        near = nearness.measure(rows, likeliest, scores["gnn"]) if nearness else ()
        return (
            *(array for top in tops for array in top.values()),
            *(unwanted, unreadable, silent, *near),
        )

    def _scores(self, rows: slice) -> dict[str, Floats]:
        """Return the scores of a block by kind; answered images are what people say they are."""
        scores = self._judge(rows)
        if self.inputs.answers is not None:
            said = self.inputs.answers[rows]
            given = np.flatnonzero(said != UNANSWERED)
            scores["final"][given] = said[given, None] == np.arange(len(self.inputs.class_names))
        return scores

    def _judge(self, rows: slice) -> dict[str, Floats]:
        """Return the scores of a block by kind, each of shape (n_rows, n_classes)."""
        gnn = self.network[rows]
        scores = {"gnn": gnn, **self.inputs.heard(rows)}
        if self.weigher is not None:
            weighed = self.weigher.weigh(rows, list(scores.values()))
            final = weighed.probs
            if self.doubt is not None:
                final = self._believe(self.doubt, rows, gnn, weighed)
            return scores | {"final": final, "text": weighed.text_factor}
        if self.doubt is not None:
            return scores | {"final": self._believe(self.doubt, rows, gnn, only_graph(gnn))}
        if "cnn" not in scores:
            return scores | {"final": gnn.copy()}
        fused = fuse_rows(
            gnn,
            scores["cnn"],
            confidence_threshold=self.settings.confidence_threshold,
            gnn_weight=self.settings.gnn_weight,
        )
        return scores | {"final": fused}

    def _believe(
        self, doubt: Doubt | PictureDoubt, rows: slice, gnn: Floats, evidence: Weighed
    ) -> Floats:
        """Return the probability of each class for a block, after what answers teach."""
        final = doubt.believe(rows, gnn, evidence)
        if self.lesson is not None:
            final = self.lesson.teach(rows, doubt.terms(rows, gnn, evidence), final)
        return final * self.network.anchored


@dataclasses.dataclass(frozen=True)
class _Nearness:
    """How near texts come to the likeliest class of each image, see :mod:`.open_set`."""

    scorer: Scorer
    own_typical: Floats  # (n_classes,)
    near_typical: Floats

    @classmethod
    def of(cls, scorer: Scorer) -> "_Nearness":
        """Measure the anchors."""
        meaning, anchors = scorer.inputs.label_embeddings, scorer.anchors
        own = as_floats(scorer.inputs.text_embeddings[anchors.rows])
        near = scorer.around[anchors.rows]
        return cls(scorer, *(typical_match(texts, meaning, anchors) for texts in (own, near)))

    def measure(self, rows: slice, likeliest: NDArray[np.intp], gnn: Floats) -> Arrays:
        """Return the graph's score of a block's likeliest classes, own and near nearness."""
        meaning = self.scorer.inputs.label_embeddings
        text = as_floats(self.scorer.inputs.text_embeddings[rows])
        values = (
            np.take_along_axis(gnn, likeliest[:, None], axis=1)[:, 0],
            text_nearness(text, meaning, likeliest, self.own_typical),
            text_nearness(self.scorer.around[rows], meaning, likeliest, self.near_typical),
        )
        return tuple(value.astype(np.float32) for value in values)

    def of_sample(self) -> Floats:
        """Compare the texts that the evidence was learned from with their likeliest classes."""
        weigher, inputs = self.scorer.weigher, self.scorer.inputs
        if weigher is None:
            return NOTHING
        likeliest = weigher.given[weigher.posterior.argmax(axis=1)]
        text = as_floats(np.asarray(inputs.text_embeddings[weigher.sampled]))
        return text_nearness(text, inputs.label_embeddings, likeliest, self.own_typical)
