"""How many anchors are right, by how they are chosen and how many they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import vsgraph
from trials import TEXTS, Trial, spread
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines

KINDS = TEXTS
PER_CLASS = (5, 10, 20, 50, 100)


def run(trial: Trial) -> dict[str, Any]:
    """Judge the anchors of three ways to choose them."""
    web = trial.data.web_labels
    smoothed = vsgraph.smooth_text(trial.text, trial.graph, self_weight=0, form="released")
    by_text = vsgraph.text_match(trial.text, trial.meaning, web)
    by_confidence = by_text.copy()
    by_confidence.data = trial.fitted[trial.own]
    ways = {
        "p_c confidence": by_confidence,
        "own text": by_text,
        "graph-smoothed text": vsgraph.text_match(smoothed, trial.meaning, web),
    }
    return {
        way: [_right(trial, vsgraph.select_anchors(match, per_class=m)) for m in PER_CLASS]
        for way, match in ways.items()
    }


def _right(trial: Trial, anchors: vsgraph.Anchors) -> dict[str, float]:
    """Return the share of right anchors: all classes, ambiguous ones."""
    right = trial.data.truth[anchors.rows, anchors.classes]
    return {
        "right": right.mean(),
        "ambiguous": right[trial.data.ambiguous[anchors.rows]].mean(),
    }


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return a table for each kind of text."""
    parts = {}
    for kind, trials in found.items():
        rows = [
            [way, *(_cell([trial[way][i] for trial in trials]) for i in range(len(PER_CLASS)))]
            for way in trials[0]
        ]
        head = ["anchors by", *(f"m = {m}" for m in PER_CLASS)]
        parts[f"anchors, {kind}"] = markdown_table(head, rows).splitlines()
    return parts


def _cell(found: Sequence[Mapping[str, float]]) -> str:
    return " / ".join(spread([f[key] for f in found]) for key in ("right", "ambiguous"))


def figures(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Draw right anchors of ambiguous queries over m, a panel a kind of text."""
    panels = {
        kind: {
            way: [(m, _mean(trials, way, i)) for i, m in enumerate(PER_CLASS)] for way in trials[0]
        }
        for kind, trials in found.items()
    }
    title = "Right anchors of ambiguous queries, %"
    return {"anchors": draw_lines(panels, title=title, x_name="m", y_name="right, %")}


def _mean(trials: Sequence[Mapping[str, Any]], way: str, place: int) -> float:
    return 100 * sum(trial[way][place]["ambiguous"] for trial in trials) / len(trials)
