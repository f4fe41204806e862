"""Algorithm 1 as a table of stages: what each needs, which settings it reads, what it computes.

The one table serves :func:`vsgraph.correct`, sweeps over settings, estimates, and runs on disk. A
stage is done again only if something that it depends on has changed.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats
from vsgraph.errors import InputError
from vsgraph.method.anchors import match_labels, pick_anchors, smooth, warn_of_thin_classes
from vsgraph.method.answers import exclude_from_anchors, pin_anchors
from vsgraph.method.calibration import calibrate
from vsgraph.method.copies import share_scores
from vsgraph.method.decisions import decide_all
from vsgraph.method.doubt import Doubt, learn_doubt
from vsgraph.method.evidence import Weigher, learn_weights
from vsgraph.method.given import AnchorChoice, Graph, Job, TrainedNetwork
from vsgraph.method.graph import connect
from vsgraph.method.inputs import Inputs
from vsgraph.method.network import train_in_rounds
from vsgraph.method.open_set import TextsAround
from vsgraph.method.scoring import ImageScores, Scorer
from vsgraph.method.trust import TextTrust, trust_texts
from vsgraph.method.unchecked import PictureDoubt, has_texts, if_checked, match_pictures
from vsgraph.neighbors.search import Neighbors, find_neighbors, update_neighbors
from vsgraph.result.answered import with_answers
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Anchors, Decisions
from vsgraph.settings import Settings

MOST_SHARE = 0.5  # of the images of a class that may be anchors: the better half, if it is small


def build_graph(job: Job) -> Graph:
    """Connect every image with those that look most like it, as in Eq. 1.

    If most neighbors are known from an earlier result, only the others are searched for.
    """
    own, settings = job.inputs.graph, job.settings
    if own is not None and not isinstance(own, Neighbors):
        return Graph(own, np.nan)
    options: Any = {
        "search": settings.neighbor_search, "recall": settings.neighbor_recall,
        "progress": job.progress,
    }  # fmt: skip
    known = job.known_neighbors if own is None else None
    if known is not None:
        updated = update_neighbors(job.inputs.features, known, **options)
        if updated is not None:
            return Graph(connect(updated), updated.recall, int(known.to_search.sum()))
    neighbors = own or find_neighbors(
        job.inputs.features, n_neighbors=settings.n_neighbors, **options
    )
    return Graph(connect(neighbors), neighbors.recall)


def judge_texts(job: Job) -> TextTrust | None:
    """Find how far each text can be trusted to be its image's; None in the paper's forms."""
    return trust_texts(job.inputs) if job.settings.text_evidence else None


def smooth_texts(job: Job, graph: Graph, trust: TextTrust | None) -> Floats:
    """Mix the texts of neighbors, as far as they are trusted (Eq. 4), (n_images, n_text_dims)."""
    return smooth(
        job.inputs.text_embeddings, graph.adjacency, self_weight=job.settings.self_weight,
        form=job.settings.form, own=None if trust is None else trust.own, progress=job.progress,
    )  # fmt: skip


def choose_anchors(job: Job, graph: Graph, smoothed: Floats) -> AnchorChoice:
    """Pick the images whose text is closest to the meaning of their label, as in Eq. 5.

    Without text, those are picked whose neighbors have the same label.
    """
    inputs, per_class = job.inputs, job.settings.anchors_per_class
    if has_texts(inputs) or not job.settings.text_evidence:
        match = match_labels(smoothed, inputs.label_embeddings, inputs.labels)
    else:
        match = match_pictures(inputs, graph.adjacency)
    allowed = exclude_from_anchors(match, inputs)
    share = MOST_SHARE if job.settings.text_evidence else 1.0
    anchors = pick_anchors(allowed, per_class=per_class, sources=inputs.sources, most_share=share)
    anchors = pin_anchors(anchors, inputs.answers)
    if not len(anchors):
        raise InputError("no image has text near it, so that no anchor can be chosen")
    warn_of_thin_classes(inputs.class_names[: inputs.n_wanted], anchors, match, per_class)
    return AnchorChoice(match, anchors)


def train_network(job: Job, graph: Graph, choice: AnchorChoice) -> TrainedNetwork:
    """Train the graph network on the anchors (Eq. 6 and 7), in one round or several."""
    network, anchors = train_in_rounds(
        job.inputs.features, graph.adjacency, choice.anchors, job.inputs.labels,
        exclusive=job.inputs.single, settings=job.settings, start=job.start_weights,
        progress=job.progress,
    )  # fmt: skip
    return TrainedNetwork(network, anchors)


def weigh_witnesses(job: Job, trained: TrainedNetwork, trust: TextTrust | None) -> Weigher | None:
    """Learn how far to believe each witness and the text; None where Eq. 8 decides."""
    inputs, network = job.inputs, trained.network
    if not job.settings.text_evidence:
        return None
    learned = None if not has_texts(inputs) else learn_weights(
        {"graph": network, **inputs.witnesses},
        inputs.text_embeddings, inputs.label_embeddings, inputs.labels,
        given=network.anchored, single=inputs.single, own=None if trust is None else trust.own,
        progress=job.progress,
    )  # fmt: skip
    return if_checked(learned)


def doubt_labels(
    job: Job, smoothed: Floats, trained: TrainedNetwork, weigher: Weigher | None
) -> Doubt | PictureDoubt | None:
    """Learn how far labels can be believed; None with several labels, or if Eq. 8 decides."""
    if not (job.settings.text_evidence and job.inputs.single):
        return None
    if weigher is None:
        return PictureDoubt(job.inputs.labels)
    around = TextsAround(smoothed, trained.network.inputs.propagation)
    doubt = learn_doubt(job.inputs, trained.anchors, around, weigher.trusted, progress=job.progress)
    return calibrate(doubt, trained.network, weigher)


def score_images(
    job: Job,
    smoothed: Floats,
    trained: TrainedNetwork,
    weigher: Weigher | None,
    doubt: Doubt | PictureDoubt | None,
) -> ImageScores:
    """Weigh all evidence, or fuse graph and CNN (Eq. 8), for every image."""
    scorer = Scorer(
        job.inputs, trained.network, weigher, doubt, smoothed, trained.anchors, job.settings
    )
    scores = scorer.taught().score_all(progress=job.progress)
    return share_scores(scores, job.inputs.copies, job.inputs.answers)


def decide_images(job: Job, scores: ImageScores) -> Decisions:
    """Keep, relabel or reject every image."""
    return decide_all(scores, job.inputs.web_labels, settings=job.settings)


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage of Algorithm 1."""

    name: str  # what people call it
    reads: tuple[str, ...]  # arrays of the crawl, by their names in Inputs
    needs: tuple[str, ...]  # stages whose results it is given, in the order of its arguments
    settings: tuple[str, ...]  # settings that it reads
    work: Callable[..., Any]  # work(job, *results)


WITNESSES = (
    "features", "text_embeddings", "label_embeddings", "words", "cnn_probs", "prompt_embeddings"
)  # fmt: skip
STAGES = (
    Stage(
        "graph",
        reads=("features", "graph"),
        needs=(),
        settings=("n_neighbors", "neighbor_search", "neighbor_recall"),
        work=build_graph,
    ),
    Stage(
        "trust",
        reads=("features", "text_embeddings", "web_labels", "words"),
        needs=(),
        settings=("text_evidence",),
        work=judge_texts,
    ),
    Stage(
        "smoothing",
        reads=("text_embeddings",),
        needs=("graph", "trust"),
        settings=("self_weight", "form"),
        work=smooth_texts,
    ),
    Stage(
        "anchors",
        reads=("label_embeddings", "web_labels", "words", "sources", "answers"),
        needs=("graph", "smoothing"),
        settings=("anchors_per_class", "text_evidence"),
        work=choose_anchors,
    ),
    Stage(
        "network",
        reads=("features", "web_labels", "words"),
        needs=("graph", "anchors"),
        settings=(
            *("self_weight", "form", "unit_features", "gnn_layers", "weight_decay", "solver"),
            *("learning_rate", "epochs", "random_state", "rounds"),
        ),
        work=train_network,
    ),
    Stage(
        "evidence",
        reads=(*WITNESSES, "web_labels"),
        needs=("network", "trust"),
        settings=("text_evidence",),
        work=weigh_witnesses,
    ),
    Stage(
        "doubt",
        reads=(*WITNESSES, "web_labels"),
        needs=("smoothing", "network", "evidence"),
        settings=("text_evidence",),
        work=doubt_labels,
    ),
    Stage(
        "scores",
        reads=(*WITNESSES, "answers", "copies"),
        needs=("smoothing", "network", "evidence", "doubt"),
        settings=("confidence_threshold", "gnn_weight", "kept_scores"),
        work=score_images,
    ),
    Stage(
        "decisions",
        reads=("web_labels",),
        needs=("scores",),
        settings=(
            *("purity", "relabel_threshold", "drop_threshold"),
            *("reject_threshold", "reject_nearness"),
        ),
        work=decide_images,
    ),
)
STAGE = {stage.name: stage for stage in STAGES}


def own_settings(name: str, settings: Settings) -> dict[str, Any]:
    """Return the settings that a stage itself reads, with their values.

    >>> own_settings("graph", Settings())
    {'n_neighbors': 5, 'neighbor_search': 'auto', 'neighbor_recall': 0.99}
    """
    names = STAGE[name].settings
    if name == "network" and settings.rounds > 1:  # later rounds choose their anchors by it
        names += ("confidence_threshold",)
    return {name: getattr(settings, name) for name in names}


def all_settings(name: str, settings: Settings) -> dict[str, Any]:
    """Return the settings that a stage depends on, its own and those of the stages it needs."""
    values = own_settings(name, settings)
    for needed in STAGE[name].needs:
        values |= all_settings(needed, settings)
    return values


@dataclasses.dataclass
class Solver:
    """Corrections of one crawl by several settings, which share the stages they have in common.

    Attributes
    ----------
    given : Inputs
        The arrays of the crawl.
    progress : bool
        Show progress bars.
    settings : Settings
        The numbers of the correction at work.
    """

    given: Inputs
    progress: bool = False
    settings: Settings = dataclasses.field(default_factory=Settings)
    known_neighbors: None = None  # nothing is known before
    start_weights: None = None
    _results: dict[str, tuple[dict[str, Any], Any]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def _with_words(self) -> Inputs:
        return self.given.with_words()

    @property
    def inputs(self) -> Inputs:
        """The arrays of the crawl; the paper's forms know no words."""
        return self._with_words if self.settings.text_evidence else self.given

    def correct(self, settings: Settings) -> Correction:
        """Correct the labels."""
        self.settings = settings
        for stage in STAGES:
            self.result(stage.name)
        names = ("graph", "anchors", "network", "scores", "decisions")
        graph, choice, trained, scores, decisions = map(self.result, names)
        made = assemble(
            self.given.class_names, self.given.web_labels, settings,
            graph, choice, trained.anchors, scores, decisions,
            self.given.words.unwanted_names if self.given.words else (),
        )  # fmt: skip
        return made if self.given.answers is None else with_answers(made, self.given.answers)

    def result(self, name: str) -> Any:  # noqa: ANN401
        """Return what a stage makes, computed only if its settings have changed since."""
        values = all_settings(name, self.settings)
        if name not in self._results or self._results[name][0] != values:
            self._results.pop(name, None)  # makes room before the next one is computed
            stage = STAGE[name]
            result = stage.work(self, *map(self.result, stage.needs))
            self._results[name] = (values, result)
        return self._results[name][1]


def assemble(  # noqa: PLR0917
    class_names: tuple[str, ...],
    web_labels: NDArray[Any],
    settings: Settings,
    graph: Graph,
    choice: AnchorChoice,
    anchors: Anchors,
    scores: ImageScores,
    decisions: Decisions,
    unwanted_names: tuple[str, ...] = (),
) -> Correction:
    """Put the results of the stages together, without the classes that are not wanted."""
    wanted = anchors.classes < len(class_names)
    return Correction(
        class_names=class_names,
        web_labels=web_labels,
        final_labels=decisions.final_labels,
        decisions=decisions.decisions,
        rules=decisions.rules,
        final_probs=scores.final,
        gnn_probs=scores.gnn,
        cnn_probs=scores.cnn,
        text_factor=scores.text,
        confusion=scores.confusion,
        evidence_weights=scores.weights,
        text_match=choice.match[:, : len(class_names)],
        anchors=Anchors(anchors.rows[wanted], anchors.classes[wanted], anchors.match[wanted]),
        unwanted=scores.unwanted,
        unwanted_names=unwanted_names,
        adjacency=graph.adjacency,
        graph_recall=graph.recall,
        settings=settings,
    )
