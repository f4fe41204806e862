"""Vision models of model hubs: transformers by folder or name, and timm."""

import json
import os
from pathlib import Path
from typing import Any

from vsgraph.encoders.runtimes.conversion import quietly
from vsgraph.encoders.runtimes.models import Model, has, hash_files, hash_words, need
from vsgraph.encoders.sources.architectures import (
    MEAN,
    STD,
    Architecture,
    feature_place,
    picture_model,
    vision_class,
)
from vsgraph.errors import InputError, MissingExtraError
from vsgraph.pictures.decode import Preparation

WEIGHTS = ("*.safetensors", "*.bin")
FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json", "*/*.safetensors"]


def find_folder(name: str, what: str) -> Path:
    """Return the folder of a model; the hub is asked only if the model is not on this machine."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        if (folder / "config.json").exists():
            return folder
        raise InputError(f"{folder} holds no config.json; give a folder in the transformers format")
    need(f"{what} from a model hub", "encoders", "huggingface_hub")
    from huggingface_hub import snapshot_download

    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise InputError(f"{name} does not exist; give the folder of {what}")
    is_offline = os.environ.get("HF_HUB_OFFLINE", "") not in {"", "0"}
    try:
        return Path(snapshot_download(name, allow_patterns=FILES, local_files_only=is_offline))
    except Exception as error:  # the hub's own tree of errors changes between releases
        raise InputError(
            f"{name} is neither a folder nor a model on this machine, and the model hub did not "
            f"provide it ({type(error).__name__}): download it elsewhere and give its folder, or "
            "use a model that installs as a package (lite0 for pictures, minilm for texts)"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a settings file, empty if it does not exist."""
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    return values if isinstance(values, dict) else {}


def weight_files(folder: Path) -> list[Path]:
    """Return the files that decide what a model computes; refuse a folder without weights."""
    weights = [path for pattern in WEIGHTS for path in folder.rglob(pattern)]
    if not weights:
        raise InputError(f"{folder} holds no weights (*.safetensors)")
    return [*weights, *folder.rglob("config.json")]


def vision_model(name: str, size: int | None = None) -> tuple[Model, Architecture]:
    """Return a vision model of transformers and its architecture."""
    folder = find_folder(name, "the image encoder")
    architecture = vision_architecture(folder, size)
    fingerprint = hash_files(
        weight_files(folder), str(list(architecture.mean)), str(list(architecture.std)),
        str(architecture.scale), architecture.preparation.describe(),
    )  # fmt: skip
    model = picture_model(
        name, fingerprint, architecture, lambda: vision_network(folder, architecture)
    )
    return model, architecture


def vision_architecture(folder: Path, size: int | None = None) -> Architecture:
    """Return the architecture of a vision model of transformers."""
    settings = read_json(folder / "preprocessor_config.json")
    config = read_json(folder / "config.json")
    preparation = _preparation(settings, config, size)
    mean, std = settings.get("image_mean") or MEAN, settings.get("image_std") or STD
    if not settings.get("do_normalize", True):
        mean, std = [0.0] * 3, [1.0] * 3
    return Architecture(
        network="transformers", height=preparation.height, width=preparation.width,
        crop=preparation.crop, mean=tuple(mean), std=tuple(std),
        scale=settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1.0,
        take=feature_place(config.get("model_type", "")), config=config,
    )  # fmt: skip


def vision_network(folder: Path, architecture: Architecture) -> Any:  # noqa: ANN401
    """Load the image part of a transformers model with its weights, as a torch module."""
    need("a transformers model", "encoders", "torch", "transformers")
    from vsgraph.encoders.sources.towers import tower

    with quietly():
        kind = (architecture.config or {}).get("model_type", "")
        return tower(architecture, load_pretrained(folder, vision_class(kind)))


def load_pretrained(folder: Path, loader: Any = None) -> Any:  # noqa: ANN401
    """Load a folder by a class of transformers, by AutoModel if it is None."""
    import transformers

    try:
        return (loader or transformers.AutoModel).from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(f"{folder} cannot be loaded by transformers: {error}") from error


def _preparation(settings: dict[str, Any], config: dict[str, Any], size: int | None) -> Preparation:
    """Return how a model wants its pictures prepared."""
    own = settings.get("size") or config.get("image_size") or 224
    own = own if isinstance(own, dict) else {"shortest_edge": own}
    edge = own.get("shortest_edge") or own.get("height") or 224
    if settings.get("do_center_crop"):
        cut = settings.get("crop_size") or edge
        cut = cut if isinstance(cut, dict) else {"height": cut, "width": cut}
        crop = min(1.0, cut["height"] / edge)
        return Preparation(size or cut["height"], size or cut["width"], crop)
    if "shortest_edge" in own and "size" in settings:
        return Preparation(size or edge, size or edge, settings.get("crop_pct") or 1.0)
    return Preparation(size or edge, size or own.get("width") or edge)


def timm_network(name: str, *, pretrained: bool = True) -> Any:  # noqa: ANN401
    """Return a network of timm without its classifier, as a torch module."""
    if not has("timm", "torch"):
        raise MissingExtraError(f"timm:{name}", "timm")
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"timm cannot be imported ({error}); it needs a torchvision built for the same torch: "
            "install both from one place, or use a transformers model"
        ) from error
    try:
        return timm.create_model(name, pretrained=pretrained, num_classes=0)
    except Exception as error:  # timm and the hub raise many kinds
        raise InputError(
            f"timm cannot load {name} with weights ({type(error).__name__}: {error}); download it "
            "elsewhere and give timm:local-dir:FOLDER"
        ) from error


def timm_architecture(name: str, network: Any, size: int | None = None) -> Architecture:  # noqa: ANN401
    """Return the architecture of a network of timm."""
    import timm

    data = timm.data.resolve_model_data_config(network)
    side = size or data["input_size"][1]
    return Architecture(
        network=f"timm:{name}", height=side, width=side, crop=data["crop_pct"],
        mean=tuple(data["mean"]), std=tuple(data["std"]),
    )  # fmt: skip


def timm_model(name: str, size: int | None = None) -> tuple[Model, Architecture]:
    """Return a model of timm, by name or as ``local-dir:FOLDER``."""
    network = timm_network(name).eval()
    architecture = timm_architecture(name, network, size)

    def build() -> Any:  # noqa: ANN401
        from vsgraph.encoders.sources.towers import tower

        return tower(architecture, network).eval()

    digest = hash_words(
        name, architecture.preparation.describe(), list(architecture.mean), list(architecture.std),
        *(f"{key} {hash_words(value.numpy().tobytes())}" for key, value in
          network.state_dict().items()),
    )  # fmt: skip
    return picture_model(name, digest, architecture, build), architecture
