"""How far the settings matter, by ``vsgraph.sweep``: k and w, lambda and tau_f, m."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import vsgraph
from lessons import PAPER
from trials import TEXTS, Trial, spread
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines

KINDS = TEXTS
MEASURE = "right_likeliest"
SWEEPS: dict[str, tuple[dict[str, Sequence[float]], vsgraph.Settings]] = {
    "k and w": ({"k": (3, 5, 8, 12), "w": (0.0, 1.0)}, vsgraph.Settings(anchors_per_class=20)),
    "lambda and tau_f": (
        {"tau_f": (0.5, 0.6, 0.7, 0.8, 0.9), "lambda": (0.0, 0.25, 0.5, 0.75, 1.0)},
        PAPER,
    ),
    "m": ({"m": (5, 10, 20, 50, 100)}, vsgraph.Settings()),
}


def run(trial: Trial) -> dict[str, Any]:
    """Sweep, and keep for each combination the share of right likeliest labels."""
    found = {}
    for name, (grid, settings) in SWEEPS.items():
        cnn = trial.fitted if not settings.text_evidence else trial.probe
        made = vsgraph.sweep(
            trial.features, trial.text, trial.meaning, trial.data.web_labels, cnn,
            grid=grid, settings=settings, truth=trial.data.truth,
        )  # fmt: skip
        found[name] = [[*(row[p] for p in made.parameters), row[MEASURE]] for row in made.rows]
    return found


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return a table for each sweep, a column a kind of text."""
    parts = {}
    for name, (grid, _) in SWEEPS.items():
        rows = [
            [*row[:-1], *(spread([t[name][i][-1] for t in trials]) for trials in found.values())]
            for i, row in enumerate(next(iter(found.values()))[0][name])
        ]
        parts[f"sweep of {name}"] = markdown_table([*grid, *found], rows).splitlines()
    return parts


def figures(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Draw each sweep: over the first setting, a line for each value of the second."""
    drawn = {}
    for name, (grid, _) in SWEEPS.items():
        across, *others = grid
        panels: dict[str, dict[str, list[tuple[Any, float]]]] = {}
        for kind, trials in found.items():
            for i, row in enumerate(trials[0][name]):
                line = f"{others[0]} = {row[1]:g}" if others else "vsgraph default"
                mean = 100 * float(np.mean([trial[name][i][-1] for trial in trials]))
                panels.setdefault(kind, {}).setdefault(line, []).append((row[0], mean))
        title = f"Right likeliest labels by {name}, %"
        file = f"sweep-{name.replace(' ', '-').replace('_', '-')}"
        drawn[file] = draw_lines(panels, title=title, x_name=across, y_name="right, %")
    return drawn
