"""Label quality by methods that read the text: label propagation, the paper's, and the default."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import rankdata

import vsgraph
from answers import Answer, by_probs, judge, left, left_table, table
from baselines import propagate_labels, spread_labels
from trials import TEXTS, Trial, spread
from vsgraph import Settings
from vsgraph.common.formatting import markdown_table
from vsgraph.result.scores import label_quality

KINDS = TEXTS
K = 10
PAPER = Settings(
    text_evidence=False, anchors_per_class=10, weight_decay=1e-6,
    solver="adam", epochs=500, learning_rate=0.01,
)  # fmt: skip
PAPER_50 = dataclasses.replace(PAPER, anchors_per_class=50)
PRINTED = Settings.google_500(epochs=500, unit_features=True)
DEFAULT = "**vsgraph default, p_c out of fold**"


def run(trial: Trial) -> dict[str, Any]:
    """Judge each method, and what the default decides."""
    default = trial.correct(cnn=trial.probe)
    graph_alone = vsgraph.weigh_evidence(
        np.asarray(default.gnn_probs), None, trial.text, trial.meaning, trial.data.web_labels
    )
    weak = trial.correct(Settings(weight_decay=1e-6), trial.probe)
    answers = {
        **simple_answers(trial, default.anchors),
        **paper_answers(trial),
        "vsgraph default, no p_c": weighed(trial, graph_alone.probs, default),
        DEFAULT: weighed(trial, default.final_probs, default),
        "the same with the paper's weight decay, 1e-6": weighed(trial, weak.final_probs, weak),
    }
    rejected = default.final_labels < 0
    return {
        "labels": {name: judge(answer, trial.data) for name, answer in answers.items()},
        "left": {"vsgraph default": left(default.final_labels, rejected, trial.data)},
        "decisions": decisions(trial, default),
        "classes": vsgraph.evaluate(default, trial.data.truth).per_class(),
    }


def of(trial: Trial, made: vsgraph.Correction) -> Answer:
    """Return the likeliest labels of a correction, before any decision."""
    return by_probs(np.asarray(made.final_probs), trial.own)


def weighed(trial: Trial, probs: ArrayLike, made: vsgraph.Correction) -> Answer:
    """Return the likeliest labels by all evidence; web labels are as good as `label_quality`."""
    final, graph = np.asarray(probs), np.asarray(made.gnn_probs)
    quality = label_quality(final[trial.own], graph[trial.own])
    return dataclasses.replace(by_probs(final, trial.own), quality=quality)


def simple_answers(trial: Trial, anchors: vsgraph.Anchors) -> dict[str, Answer]:
    """Return what text alone gives, and scikit-learn from the same anchors as ours."""
    seeds = np.full(len(trial.rows), -1)
    seeds[anchors.rows] = anchors.classes
    cosines = trial.text @ trial.meaning.T
    propagated = propagate_labels(trial.unit, seeds, k=K)
    spread_out = spread_labels(trial.unit, seeds, k=K, neighbors_share=0.2)
    return {
        "text alone: nearest label meaning": by_probs(cosines, trial.own, probable=False),
        "label propagation from our anchors": by_probs(propagated, trial.own),
        "label spreading from our anchors": by_probs(spread_out, trial.own),
    }


def paper_answers(trial: Trial) -> dict[str, Answer]:
    """Return Eq. 8 in both forms, with p_c of its training photos, and what is simple beside it."""
    web, fitted = trial.data.web_labels, trial.fitted
    made = trial.correct(PAPER_50, fitted)
    graph, cosines = np.asarray(made.gnn_probs), trial.text @ trial.meaning.T
    sure = graph.max(axis=1) >= PAPER.confidence_threshold
    product = np.asarray(made.final_probs) * softmax(cosines / 0.05, axis=1)
    product /= product.sum(axis=1, keepdims=True)
    kept = np.where(sure, graph.argmax(axis=1), web)
    raw = dataclasses.replace(PAPER_50, unit_features=False)
    return {
        "p_f printed, m = 10": of(trial, trial.correct(PRINTED, fitted)),
        "p_f released, m = 10": of(trial, trial.correct(PAPER, fitted)),
        "p_f released, m = 50": of(trial, made),
        "the same, features not scaled to unit length": of(trial, trial.correct(raw, fitted)),
        "p_g of it where >= 0.7, else web label": Answer(
            kept, graph[np.arange(len(kept)), kept], graph[trial.own]
        ),
        "p_f of it x softmax(cos / 0.05)": by_probs(product, trial.own),
        "web labels, ranked by p_g of it and text": ranked(trial, graph, cosines),
    }


def ranked(trial: Trial, graph: NDArray[np.floating], cosines: NDArray[np.floating]) -> Answer:
    """Rank web labels by the mean of their ranks in two scores."""
    ranks = [rankdata(scores[trial.own]) / len(trial.rows) for scores in (graph, cosines)]
    quality = np.mean(ranks, axis=0)
    return Answer(trial.data.web_labels, quality, quality, probable=False)


def decisions(trial: Trial, made: vsgraph.Correction) -> dict[str, Any]:
    """Say what the default decides and how right that is."""
    rows, truth = np.arange(len(made)), trial.data.truth
    rejected = made.final_labels < 0
    moved = made.decisions == vsgraph.Decision.RELABEL
    wrong = ~truth[rows, made.final_probs.argmax(axis=1)]
    right = truth[rows, np.maximum(made.final_labels, 0)]
    shares = {name: count / len(made) for name, count in made.counts.items()}
    return {
        **shares,
        "new labels right": right[moved].mean(),
        "likeliest label of the rejected wrong": wrong[rejected].mean(),
        "rejected show none of the classes": (~trial.data.in_set)[rejected].mean(),
        "weights": made.evidence_weights,
    }


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return the tables by the mark that they stand at."""
    parts: dict[str, list[str]] = {}
    for kind, trials in found.items():
        parts[f"labels, {kind}"] = table([trial["labels"] for trial in trials])
        parts[f"what is left, {kind}"] = left_table([trial["left"] for trial in trials])
    parts["decisions"] = decision_table(found)
    parts["classes"] = class_table(found)
    return parts


def decision_table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return what is decided, a column a kind of text."""
    first = next(iter(found.values()))[0]["decisions"]
    rows = [
        [
            f"{name}, %",
            *(spread([t["decisions"][name] for t in of_kind]) for of_kind in found.values()),
        ]
        for name in first
        if name != "weights"
    ]
    rows += [
        [f"estimated: {name}", *(_weight(of_kind, name) for of_kind in found.values())]
        for name in first["weights"]
    ]
    return markdown_table(["decided", *found], rows).splitlines()


def _weight(trials: Sequence[Mapping[str, Any]], name: str) -> str:
    values = [trial["decisions"]["weights"][name] for trial in trials]
    return spread(values, digits=2, scale=1)


def class_table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return precision and recall of each class's labels before and after, worst first."""
    before, *_ = found.values()
    names = [row["class"] for row in before[0]["classes"]]
    head = ["class", "precision, web labels"]
    head += [f"after, {kind}" for kind in found]
    head += ["recall, web labels", *(f"after, {kind}" for kind in found)]

    def cell(trials: Sequence[Mapping[str, Any]], c: int, key: str) -> str:
        return spread([trial["classes"][c][key] for trial in trials])

    rows = []
    for c, name in enumerate(names):
        row = [name]
        for key in ("precision", "recall"):
            row.append(cell(before, c, f"{key}_before"))
            row += [cell(trials, c, f"{key}_after") for trials in found.values()]
        rows.append(row)
    rows.sort(key=lambda row: float(row[1].split()[0]))
    return markdown_table(head, rows).splitlines()
