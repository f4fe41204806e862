"""How far the settings matter, by ``vsgraph.sweep``, one at a time: k, m, lambda and tau_f."""

from collections.abc import Mapping, Sequence
from typing import Any

import vsgraph
from lessons import PAPER
from trials import TEXTS, Trial, spread
from vsgraph.common.formatting import markdown_table

KINDS = TEXTS
MEASURE = "right_likeliest"
SWEEPS: dict[str, tuple[Sequence[float], vsgraph.Settings]] = {
    "k": ((3, 5, 8, 12), vsgraph.Settings()),
    "m": ((5, 10, 20, 50, 100), vsgraph.Settings()),
    "lambda": ((0.0, 0.25, 0.5, 0.75, 1.0), PAPER),
    "tau_f": ((0.5, 0.7, 0.9), PAPER),
}


def run(trial: Trial) -> dict[str, Any]:
    """Sweep each setting; keep for each value the share of right likeliest labels."""
    found = {}
    for name, (values, settings) in SWEEPS.items():
        cnn = trial.fitted if not settings.text_evidence else trial.probe
        made = vsgraph.sweep(
            trial.features, trial.text, trial.meaning, trial.data.web_labels, cnn,
            grid={name: values}, settings=settings, truth=trial.data.truth,
        )  # fmt: skip
        found[name] = [row[MEASURE] for row in made.rows]
    return found


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return one table: a row for each value of each setting, a column a kind of text."""
    rows = [
        [name, f"{value:g}", *(spread([t[name][i] for t in trials]) for trials in found.values())]
        for name, (values, _) in SWEEPS.items()
        for i, value in enumerate(values)
    ]
    return {"settings": markdown_table(["setting", "value", *found], rows).splitlines()}
