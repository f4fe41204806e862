"""A training on disk: one file that holds everything the next step depends on."""

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


@dataclasses.dataclass
class Place:
    """Where a training is.

    Attributes
    ----------
    epoch, step : int
        The next step, counted within the epoch.
    sums : dict
        Of the epoch so far.
    history : list of dict
        A line an epoch.
    best : float
        The best of what is judged.
    kept : int
        The epoch whose network is kept.
    """

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = dataclasses.field(default_factory=dict)
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    best: float = -math.inf
    kept: int = 0


def write_weights(path: Path, state: Mapping[str, Any], **facts: str) -> None:
    """Write tensors; a full disk leaves the former file as it was."""
    try:
        save_weights(path, state, **facts)
    except Exception as error:  # safetensors tells of a full disk in its own way
        raise TrainingError(
            f"{path} could not be written ({error}); make room and start again: it goes on from "
            "what was kept last"
        ) from error


def keep(folder: Path, learners: Sequence[Learner], place: Place) -> None:
    """Write where a training is, as one file."""
    state: dict[str, Any] = {}
    for number, learner in enumerate(learners):
        state |= learner.state(f"{number}.")
    write_weights(folder / LAST, state, place=json.dumps(dataclasses.asdict(place)))


def take_up(folder: Path, learners: Sequence[Learner]) -> Place:
    """Bring learners to where a training was, and say where; the start if there was none."""
    path = folder / LAST
    if not path.exists():
        return Place()
    from safetensors import safe_open

    state = load_weights(path)
    for number, learner in enumerate(learners):
        learner.load_state(f"{number}.", state)
    with safe_open(path, "pt") as file:
        return Place(**json.loads(file.metadata()["place"]))
