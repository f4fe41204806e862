"""Trained classifiers on disk: weights as safetensors, everything else as JSON."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from vsgraph.common.files import RECORD, whole_file, write_whole
from vsgraph.encoders.runtimes.models import Model, hash_files, need
from vsgraph.encoders.sources.architectures import Architecture, picture_model
from vsgraph.errors import InputError

KIND = "vsgraph-model-1"
WEIGHTS = "model.safetensors"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A trained classifier, without its weights."""

    architecture: Architecture
    class_names: tuple[str, ...]  # of each output
    several: bool = False  # probabilities by sigmoid, for several labels per image, or by softmax

    def save(self, folder: Path) -> None:
        """Write it as JSON; the weights are written by :func:`save_weights`."""
        folder.mkdir(parents=True, exist_ok=True)
        values = {"format": KIND, **dataclasses.asdict(self)}
        write_whole(folder / RECORD, json.dumps(values, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            values = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            fields = values["architecture"] if values["format"] == KIND else {}
            fields |= {name: tuple(fields[name]) for name in ("mean", "std")}
            return cls(Architecture(**fields), tuple(values["class_names"]), values["several"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{folder} holds no trained model: its {RECORD} is missing or not in the format "
                f"{KIND}"
            ) from error

    def build(self, folder: Path) -> Any:  # noqa: ANN401
        """Return the classifier with its weights, as a torch module."""
        need("a trained model", "encoders", "safetensors", "torch")
        from vsgraph.encoders.sources.networks import Classifier, build_body

        weights = load_weights(folder / WEIGHTS)
        try:
            n_classes, n_dims = weights["head.weight"].shape
        except (KeyError, ValueError) as error:
            raise InputError(f"{folder / WEIGHTS} holds no weights of a trained model") from error
        if n_classes != len(self.class_names):
            raise InputError(
                f"{folder} names {len(self.class_names)} classes, its network has {n_classes}"
            )
        network = Classifier(build_body(self.architecture), n_dims, n_classes)
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise InputError(f"{folder / WEIGHTS} does not fit {RECORD}: {error}") from error
        return network

    def refuse_other_classes(self, class_names: Sequence[str], where: str) -> None:
        """Refuse other classes, naming those that differ."""
        if tuple(class_names) == self.class_names:
            return
        missing = [name for name in class_names if name not in self.class_names]
        extra = [name for name in self.class_names if name not in class_names]
        differences = [
            f"{what} {', '.join(map(repr, names[:3]))}{' ...' * (len(names) > 3)}"
            for what, names in (("it lacks", missing), ("it has in addition", extra))
            if names
        ]
        raise InputError(
            f"the model was trained on other classes than {where}: "
            f"{'; '.join(differences) or 'the same ones in another order'}"
        )


def save_weights(path: Path, state: Mapping[str, Any], **facts: str) -> None:
    """Write tensors to a file that appears whole or not at all."""
    from safetensors.torch import save_file

    with whole_file(path) as unfinished:
        save_file({key: value.contiguous() for key, value in state.items()}, unfinished, facts)


def load_weights(path: Path) -> dict[str, Any]:
    """Read tensors from a file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds a trained model."""
    return (folder / RECORD).exists() and (folder / WEIGHTS).exists()


def checkpoint_model(folder: Path) -> tuple[Model, Checkpoint]:
    """Return a trained model as the runtimes see it, and its checkpoint."""
    checkpoint = Checkpoint.load(folder)

    def build() -> Any:  # noqa: ANN401
        from vsgraph.encoders.sources.networks import Scored

        return Scored(checkpoint.build(folder), several=checkpoint.several)

    fingerprint = hash_files([folder / WEIGHTS, folder / RECORD], "checkpoint")
    model = picture_model(
        folder.resolve().name, fingerprint, checkpoint.architecture, build, ("features", "probs")
    )
    return model, checkpoint
