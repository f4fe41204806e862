"""What a training writes down as it goes: a line an epoch, and its curves."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from vsgraph.common.files import write_whole
from vsgraph.common.plot import draw_lines
from vsgraph.encoders.runtimes.models import need

METRICS, CURVES, BOARD = "metrics.jsonl", "curves.svg", "tensorboard"
SHARES = ("accuracy", "top_1", "top_5", "mAP", "C-F1", "O-F1")


@dataclasses.dataclass
class Book:
    """Writes ``metrics.jsonl`` and ``curves.svg``, and for TensorBoard where that is asked for."""

    tensorboard: bool = False

    def __post_init__(self) -> None:
        if self.tensorboard:
            need("TensorBoard", "tensorboard", "tensorboard")

    def write(self, folder: Path, history: list[dict[str, Any]]) -> None:
        """Write all epochs so far."""
        lines = "".join(json.dumps(line) + "\n" for line in history)
        write_whole(folder / METRICS, lines)
        write_whole(folder / CURVES, draw_curves(history))

    def show(self, folder: Path, line: dict[str, Any]) -> None:
        """Add an epoch to what TensorBoard shows, where that is asked for."""
        if not self.tensorboard:
            return
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(folder / BOARD) as writer:
            for name, value in line.items():
                if name != "epoch":
                    writer.add_scalar(name, value, line["epoch"])


def draw_curves(history: list[dict[str, Any]]) -> str:
    """Return loss and accuracies over epochs, as SVG.

    >>> draw_curves([{"epoch": 1, "loss": 2.0, "accuracy": 0.1}]).startswith("<svg")
    True
    """
    seen = [name for name in SHARES if name in history[-1]]
    epochs = [line["epoch"] for line in history]
    top = max(line["loss"] for line in history) or 1.0
    panels = {
        f"loss, of {top:.3g}": {
            "loss": [(e, line["loss"] / top) for e, line in zip(epochs, history, strict=True)]
        },
        "accuracy": {
            name: [(e, line[name]) for e, line in zip(epochs, history, strict=True)]
            for name in seen
        },
    }
    return draw_lines(panels, title="Training", x_name="epoch", y_name="share")
