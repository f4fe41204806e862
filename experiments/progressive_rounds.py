"""Progressive rounds on a graph of weak and of strong features (section 4.5 of the paper).

Node features, texts and first anchors stay the same; only the graph that the network learns and
labels on changes, as in the paper. Weak: EfficientNet-Lite0. Strong: Lite0, Lite1 and Lite2 side by
side, each of length one, the strongest encoders at hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import vsgraph
from encoders import Judge
from keeping import cache_folder
from trials import CAPTIONS, Trial, spread
from vsgraph.common.checks import label_matrix
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines
from vsgraph.method.network import grow_anchors, train_in_rounds

KINDS = (CAPTIONS,)
ROUNDS = 5
STRONG = ("Lite1", "Lite2")
SETTINGS = vsgraph.Settings(anchors_per_class=10, weight_decay=1e-6)  # the paper's m and decay


def strong_features(trial: Trial) -> NDArray[np.floating]:
    """Return features of several encoders side by side."""
    cache = cache_folder() / "encoders"
    cache.mkdir(parents=True, exist_ok=True)
    judge = Judge(trial.whole, trial.whole.images[0].parents[1], cache)
    parts = [trial.features, *(judge.pictures(name)[trial.rows] for name in STRONG)]
    return np.hstack([part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts])


def run(trial: Trial) -> dict[str, Any]:
    """Label in rounds from the same first anchors on both graphs."""
    text = vsgraph.smooth_text(trial.text, trial.graph, self_weight=0, form="released")
    match = vsgraph.text_match(text, trial.meaning, trial.data.web_labels)
    anchors = vsgraph.select_anchors(match, per_class=SETTINGS.anchors_per_class)
    graphs = {
        "Lite0": trial.graph,
        "Lite0 + Lite1 + Lite2": vsgraph.visual_graph(strong_features(trial), n_neighbors=5),
    }
    return {name: rounds(trial, graph, anchors) for name, graph in graphs.items()}


def rounds(trial: Trial, graph: csr_array, anchors: vsgraph.Anchors) -> list[dict[str, Any]]:
    """Judge each round: its anchors, p_g alone, and all evidence weighed with it."""
    web, found = trial.data.web_labels, []
    labels = label_matrix(web, len(trial.meaning))
    for _ in range(ROUNDS):
        network, _ = train_in_rounds(
            trial.features, graph, anchors, labels, exclusive=True, settings=SETTINGS
        )
        probs = network[np.arange(len(web))]
        weighed = vsgraph.weigh_evidence(probs, trial.probe, trial.text, trial.meaning, web)
        right = trial.data.truth[anchors.rows, anchors.classes]
        alone, everything = (trial.data.right(p.argmax(axis=1))[0] for p in (probs, weighed.probs))
        found.append({
            "anchors": len(anchors), "anchors right": right.mean(),
            "p_g right": alone, "right": everything,
        })  # fmt: skip
        anchors = grow_anchors(network, anchors, confidence_threshold=SETTINGS.confidence_threshold)
    return found


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return a table for each kind of text."""
    head = ["graph of", "round", "anchors", "of them right, %", "p_g right, %",
            "right with all evidence, %"]  # fmt: skip
    parts = {}
    for kind, trials in found.items():
        rows = []
        for graph in trials[0]:
            for n in range(ROUNDS):
                of_round = [trial[graph][n] for trial in trials]
                count = spread([f["anchors"] for f in of_round], digits=0, scale=1)
                shares = [
                    spread([f[key] for f in of_round])
                    for key in ("anchors right", "p_g right", "right")
                ]
                rows.append([graph, n + 1, count, *shares])
        parts[f"rounds, {kind}"] = markdown_table(head, rows).splitlines()
    return parts


def figures(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Draw what p_g alone gets right over the rounds, a panel a kind of text."""
    panels = {
        kind: {
            graph: [
                (n + 1, 100 * float(np.mean([trial[graph][n]["p_g right"] for trial in trials])))
                for n in range(ROUNDS)
            ]
            for graph in trials[0]
        }
        for kind, trials in found.items()
    }
    title = "Right labels by p_g alone over progressive rounds, %"
    return {"rounds": draw_lines(panels, title=title, x_name="round", y_name="right, %")}
