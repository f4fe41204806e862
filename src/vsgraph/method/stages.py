"""Algorithm 1 in stages, so that corrections by other numbers share what they have in common."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.method.anchors import select_anchors, smooth_text, text_match
from vsgraph.method.evidence import Weigher, learn_weights
from vsgraph.method.final_labels import Given, Judge
from vsgraph.method.graph import adopt_graph, connect
from vsgraph.method.network import Network
from vsgraph.method.rounds import label_in_rounds
from vsgraph.neighbors.search import Neighbors, nearest_neighbors
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Anchors
from vsgraph.settings import Settings


class Stages:
    """A correction in stages; what one has in common with the one before is not done again."""

    def __init__(
        self,
        given: Given,
        names: tuple[str, ...],
        *,
        graph: csr_array | Neighbors | None,
        sources: NDArray[Any] | None,
        progress: bool,
    ) -> None:
        self.given, self.names, self.progress = given, names, progress
        self.graph, self.sources = graph, sources
        self.kept: dict[str, tuple[tuple[Any, ...], Any]] = {}

    def correct(self, settings: Settings) -> Correction:
        """Correct the labels, stage by stage."""
        given, names, once = self.given, self.names, functools.partial(self.once, settings)
        adjacency, recall = once("graph", lambda: _graph(given.visual, self.graph, settings,
                                                         progress=self.progress))  # fmt: skip
        smoothed = once("text", lambda: smooth_text(
            given.text, adjacency, self_weight=settings.self_weight, form=settings.form,
            progress=self.progress,
        ))  # fmt: skip
        match = once("match", lambda: text_match(smoothed, given.meaning, given.web_labels))
        chosen = once("anchors", lambda: select_anchors(
            match, per_class=settings.anchors_per_class, sources=self.sources
        ))  # fmt: skip
        _warn_of_thin_classes(names, chosen, match, settings.anchors_per_class)
        network, anchors = once("network", lambda: self.label(adjacency, chosen, settings))
        weigher = once("weights", lambda: _weigher(given, network, settings,
                                                   progress=self.progress))  # fmt: skip
        if settings.text_evidence and weigher is None:
            warnings.warn(
                "fewer than two texts a class: too few to weigh the evidence by, so Eq. 8 decides",
                VSGraphWarning,
                stacklevel=3,
            )
        judge = Judge(given, network, weigher, smoothed, anchors, settings)
        judged = judge.judge(progress=self.progress)
        return Correction(
            class_names=names,
            web_labels=given.web_labels,
            final_labels=judged.decisions.final_labels,
            decisions=judged.decisions.decisions,
            rules=judged.decisions.rules,
            final_probs=judged.scores["final"],
            gnn_probs=judged.scores["gnn"],
            cnn_probs=judged.scores.get("cnn"),
            text_factor=judged.scores.get("text"),
            confusion=weigher.confusion if weigher else None,
            evidence_weights=weigher.model.summary() if weigher else {},
            text_match=match,
            anchors=anchors,
            adjacency=adjacency,
            graph_recall=recall,
            settings=settings,
        )

    def label(
        self, adjacency: csr_array, anchors: Anchors, settings: Settings
    ) -> tuple[Network, Anchors]:
        """Train the graph network."""
        return label_in_rounds(
            self.given.visual, adjacency, anchors, self.given.web_labels,
            n_classes=len(self.names), settings=settings, progress=self.progress,
        )  # fmt: skip

    def once(self, settings: Settings, stage: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return what a stage made last if nothing that it depends on has changed since."""
        numbers = stage_numbers(settings, stage)
        if stage not in self.kept or self.kept[stage][0] != numbers:
            self.kept.pop(stage, None)
            self.kept[stage] = (numbers, make())
        return self.kept[stage][1]


# The settings that a stage reads, beside those of the stages before it.
STAGE_SETTINGS: dict[str, tuple[str, ...]] = {
    "graph": ("n_neighbors", "neighbor_search", "neighbor_recall"),
    "text": ("self_weight", "form"),
    "match": (),
    "anchors": ("anchors_per_class",),
    "network": (
        *("unit_features", "gnn_layers", "weight_decay", "solver"),
        *("learning_rate", "epochs", "random_state", "rounds"),
    ),
    "weights": ("text_evidence",),
}


def stage_numbers(settings: Settings, stage: str) -> tuple[Any, ...]:
    """Return the values of all settings that a stage depends on.

    >>> stage_numbers(Settings(), "graph")
    (5, 'auto', 0.99)
    """
    order = list(STAGE_SETTINGS)
    names = [n for name in order[: order.index(stage) + 1] for n in STAGE_SETTINGS[name]]
    numbers = tuple(getattr(settings, name) for name in names)
    if "rounds" in names and settings.rounds > 1:  # later rounds choose their anchors by it
        numbers += (settings.confidence_threshold,)
    return numbers


def _graph(
    visual: Floats, graph: csr_array | Neighbors | None, settings: Settings, *, progress: bool
) -> tuple[csr_array, float]:
    """Return the graph, the user's or our own, and the share of true neighbors in it."""
    if graph is not None and not isinstance(graph, Neighbors):
        return adopt_graph(graph, n_images=len(visual)), np.nan
    if isinstance(graph, Neighbors) and len(graph.rows) != len(visual):
        raise InputError(f"graph must have {len(visual)} rows, one an image, got {len(graph.rows)}")
    neighbors = graph or nearest_neighbors(
        visual, n_neighbors=settings.n_neighbors, search=settings.neighbor_search,
        recall=settings.neighbor_recall, progress=progress,
    )  # fmt: skip
    return connect(neighbors), neighbors.recall


def _weigher(
    given: Given, network: Network, settings: Settings, *, progress: bool
) -> Weigher | None:
    """Learn how to weigh the evidence; None where that is switched off or there is too little."""
    if not settings.text_evidence:
        return None
    witnesses = [network] if given.cnn is None else [network, given.cnn]
    return learn_weights(
        witnesses, given.text, given.meaning, given.labels,
        given=network.anchored, single=given.web_labels.ndim == 1, progress=progress,
    )  # fmt: skip


def _warn_of_thin_classes(
    names: tuple[str, ...], anchors: Anchors, match: csr_array, per_class: int
) -> None:
    """Say in one line which classes have no anchors, or fewer than asked for, and what to do."""
    n_anchors = np.bincount(anchors.classes, minlength=len(names))
    n_images = np.bincount(match.indices, minlength=len(names))
    troubles = (
        ("have no images", "check their names", n_images == 0),
        ("have no text near any image, so no anchors", "they stay as they are until they have text",
         (n_images > 0) & (n_anchors == 0)),
        (f"have fewer than {per_class} anchors",
         "every image of theirs with text is one, right or wrong, so set anchors_per_class lower "
         "or find more images", (n_anchors > 0) & (n_anchors < per_class)),
    )  # fmt: skip
    said = [
        f"{rows.sum()} of {len(names)} classes {what} ({_some(names, rows)}): {advice}"
        for what, advice, rows in troubles
        if rows.any()
    ]
    if said:
        warnings.warn("; ".join(said), VSGraphWarning, stacklevel=4)


def _some(names: tuple[str, ...], rows: NDArray[np.bool_]) -> str:
    """Name the first few classes."""
    few = [names[c] for c in np.flatnonzero(rows)[:3]]
    return ", ".join(few) + (", ..." if rows.sum() > len(few) else "")
