"""What a training writes after every epoch: its figures, and their curves."""

import json
from pathlib import Path
from typing import Any

from vsgraph.common.files import write_whole
from vsgraph.common.plot import draw_lines

METRICS, CURVES = "metrics.jsonl", "curves.svg"
SHARES = ("accuracy", "top_1", "top_5", "mAP", "C-F1", "O-F1")


def write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    """Write the figures of all epochs so far, one line per epoch, and their curves."""
    write_whole(folder / METRICS, "".join(json.dumps(line) + "\n" for line in history))
    write_whole(folder / CURVES, draw_curves(history))


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return the figures of all epochs."""
    return [json.loads(line) for line in (folder / METRICS).read_text("utf-8").splitlines()]


def draw_curves(history: list[dict[str, Any]]) -> str:
    """Return loss and accuracies over epochs, as SVG.

    >>> draw_curves([{"epoch": 1, "loss": 2.0, "accuracy": 0.1}]).startswith("<svg")
    True
    """
    highest = max(line["loss"] for line in history) or 1.0
    losses = [(line["epoch"], line["loss"] / highest) for line in history]
    shares = {
        name: [(line["epoch"], line[name]) for line in history]
        for name in SHARES
        if name in history[-1]
    }
    panels = {f"loss, of {highest:.3g}": {"loss": losses}, "accuracy": shares}
    return draw_lines(panels, title="Training", x_name="epoch", y_name="share")
