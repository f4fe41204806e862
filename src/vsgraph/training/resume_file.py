"""A training on disk: one file with everything that the next step depends on."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vsgraph.encoders.sources.checkpoints import load_weights, save_weights
from vsgraph.errors import TrainingError
from vsgraph.training.learner import Learner

LAST = "last.safetensors"


def no_sums() -> dict[str, float]:
    """Return the sums at the start of an epoch: images, their losses, right answers."""
    return {"n": 0.0, "loss": 0.0, "right": 0.0}


@dataclasses.dataclass
class Progress:
    """How far a training is."""

    epoch: int = 0
    step: int = 0  # the next one of the epoch
    sums: dict[str, float] = dataclasses.field(default_factory=no_sums)  # of the epoch so far
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # one per epoch
    best: float = -math.inf  # the best validation score
    kept: int = 0  # the epoch, from 1, whose network is kept


def write_weights(path: Path, state: Mapping[str, Any], **facts: str) -> None:
    """Write tensors; a full disk leaves the previous file unchanged."""
    try:
        save_weights(path, state, **facts)
    except Exception as error:  # safetensors reports a full disk in its own way
        raise TrainingError(
            f"{path} could not be written ({error}); make room and start again: training resumes "
            "from the last checkpoint"
        ) from error


def save_progress(folder: Path, learners: Sequence[Learner], progress: Progress) -> None:
    """Write a training's state as one file."""
    state: dict[str, Any] = {}
    for number, learner in enumerate(learners):
        state |= learner.state(f"{number}.")
    write_weights(folder / LAST, state, place=json.dumps(dataclasses.asdict(progress)))


def load_progress(folder: Path, learners: Sequence[Learner]) -> Progress:
    """Restore a training's state; the start if there is none."""
    path = folder / LAST
    if not path.exists():
        return Progress()
    from safetensors import safe_open

    state = load_weights(path)
    for number, learner in enumerate(learners):
        learner.load_state(f"{number}.", state)
    with safe_open(path, "pt") as file:
        return Progress(**json.loads(file.metadata()["place"]))
