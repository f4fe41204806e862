"""The same photos with several labels each: every query that hits is a web label."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vsgraph
from trials import TEXTS, Trial, spread
from vsgraph.common.formatting import markdown_table
from vsgraph.judge.metrics import count_classes, f1_at_top, macro_map

KINDS = TEXTS
HEAD = {
    "C-F1, K = 3": "c_f1_top",
    "O-F1, K = 3": "o_f1_top",
    "mAP": "map",
    "O-F1 of the labels given": "o_f1",
    "C-F1 of the labels given": "c_f1",
    "whole sets right": "sets",
}
PAPER = vsgraph.Settings.nus_81_web(
    epochs=500, learning_rate=0.01, unit_features=True, n_neighbors=5
)


def run(trial: Trial) -> dict[str, Any]:
    """Judge scores by the paper's measures, and labels that are given as they are."""
    rows = np.flatnonzero(trial.data.query_hits.any(axis=1))
    web, truth = trial.data.query_hits[rows], trial.data.truth[rows]
    features, text = trial.features[rows], trial.text[rows]
    graph = vsgraph.visual_graph(features, n_neighbors=5)
    probe = np.asarray(
        vsgraph.linear_probe(
            features, web, n_classes=len(trial.meaning), n_kept=len(trial.meaning),
            random_state=trial.seed,
        )
    )  # fmt: skip

    def correct(settings: vsgraph.Settings, cnn: NDArray[Any] | None) -> vsgraph.Correction:
        return vsgraph.correct(
            features, text, trial.meaning, web, cnn, graph=graph, settings=settings
        )

    paper = correct(PAPER, probe)
    alone, default = (correct(vsgraph.Settings(), cnn) for cnn in (None, probe))
    given = {
        "web labels": (web.astype(float), web),
        "p_c, cross-validated": (probe, probe >= 0.5),
        "p_g, paper's numbers": (np.asarray(paper.gnn_probs), np.asarray(paper.gnn_probs) >= 0.5),
        "p_f, paper's numbers": (np.asarray(paper.final_probs), paper.final_labels),
        "vsgraph default, no p_c": (np.asarray(alone.final_probs), alone.final_labels),
        "**vsgraph default, p_c out of fold**": (
            np.asarray(default.final_probs),
            default.final_labels,
        ),
    }
    return {name: measure(scores, labels, truth) for name, (scores, labels) in given.items()}


def measure(
    scores: NDArray[np.floating], labels: NDArray[np.bool_], truth: NDArray[np.bool_]
) -> dict[str, float]:
    """Return the paper's measures of scores, and F1 of labels."""
    top, counts = f1_at_top(scores, truth), count_classes(labels, truth)
    return {
        "c_f1_top": top.c_f1,
        "o_f1_top": top.o_f1,
        "map": macro_map(scores, truth),
        "o_f1": counts.o_f1,
        "c_f1": counts.c_f1,
        "sets": float((labels == truth).all(axis=1).mean()),
    }


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return a table for each kind of text."""
    return {
        f"several labels, {kind}": markdown_table(
            ["labels", *HEAD],
            [
                [name, *(spread([t[name][key] for t in trials]) for key in HEAD.values())]
                for name in trials[0]
            ],
        ).splitlines()
        for kind, trials in found.items()
    }
