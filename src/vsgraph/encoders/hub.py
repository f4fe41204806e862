"""Vision models in the formats of model hubs: transformers by folder or name, and timm."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.encoders.models import Model, has, hash_files, hash_words, need
from vsgraph.encoders.pictures import Preparation
from vsgraph.errors import InputError, MissingExtraError

POOLED = {
    "resnet", "regnet", "convnext", "convnextv2", "efficientnet", "mobilenet_v1", "mobilenet_v2",
    "swin", "swinv2", "siglip", "siglip_vision_model", "siglip2", "siglip2_vision_model",
}  # fmt: skip
WEIGHTS = ("*.safetensors", "*.bin")
FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json", "*/*.safetensors"]


def find_folder(name: str, what: str) -> Path:
    """Return the folder of a model: the one that is named, or the hub's copy on this machine.

    Asks the hub only where the model is not here yet, and says what to do if that fails.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if (folder / "config.json").exists():
            return folder
        raise InputError(f"{folder} holds no config.json; give a folder in the transformers format")
    need(f"{what} from a model hub", "encoders", "huggingface_hub")
    from huggingface_hub import snapshot_download

    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise InputError(f"{name} is not there; give the folder of {what}")
    try:
        return Path(snapshot_download(name, allow_patterns=FILES, local_files_only=_offline()))
    except Exception as error:  # the hub's own tree of errors changes between releases
        raise InputError(
            f"{name} is neither a folder nor on this machine, and the model hub did not give it "
            f"({type(error).__name__}): download it elsewhere and give its folder, or use a model "
            "that installs as a package (lite0 for pictures, minilm for texts)"
        ) from error


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "") not in {"", "0"}


def read_json(path: Path) -> dict[str, Any]:
    """Read a settings file, empty where it is absent."""
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    return values if isinstance(values, dict) else {}


def weight_files(folder: Path) -> list[Path]:
    """Return the files that decide what a model computes; refuse a folder without weights."""
    found = [path for pattern in WEIGHTS for path in folder.rglob(pattern)]
    if not found:
        raise InputError(f"{folder} holds no weights (*.safetensors)")
    return [*found, *folder.rglob("config.json")]


def vision_model(name: str, size: int | None = None) -> tuple[Model, Preparation]:
    """Return a vision model of transformers and how pictures are prepared for it."""
    folder = find_folder(name, "the image encoder")
    settings = read_json(folder / "preprocessor_config.json")
    config = read_json(folder / "config.json")
    preparation = _preparation(settings, config, size)
    mean = settings.get("image_mean") or [0.485, 0.456, 0.406]
    std = settings.get("image_std") or [0.229, 0.224, 0.225]
    scale = settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1.0
    if not settings.get("do_normalize", True):
        mean, std = [0.0] * 3, [1.0] * 3

    def build() -> Any:  # noqa: ANN401
        need("a transformers model", "encoders", "torch", "transformers")
        from vsgraph.encoders.towers import ImageTower

        network, take = _load_vision(folder, config.get("model_type", ""))
        return ImageTower(network, mean, std, scale, take).eval()

    shape = (2, preparation.height, preparation.width, 3)
    fingerprint = hash_files(
        weight_files(folder), str(mean), str(std), str(scale), preparation.describe()
    )
    return _picture_model(name, fingerprint, shape, build), preparation


def _picture_model(name: str, fingerprint: str, shape: tuple[int, ...], build: Any) -> Model:  # noqa: ANN401
    return Model(
        name=Path(name).name,
        fingerprint=fingerprint,
        example=lambda: (np.zeros(shape, np.uint8),),
        input_names=("pixels",),
        output_names=("features",),
        build=build,
    )


def _preparation(settings: dict[str, Any], config: dict[str, Any], size: int | None) -> Preparation:
    """Read how a model wants its pictures."""
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


def _load_vision(folder: Path, kind: str) -> tuple[Any, str]:
    """Load the image part of a model, and say where its features are."""
    import transformers

    at = {"local_files_only": True}
    if kind in {"clip", "clip_vision_model"}:
        return transformers.CLIPVisionModelWithProjection.from_pretrained(
            folder, **at
        ), "image_embeds"
    if kind.startswith("siglip"):
        name = "Siglip2VisionModel" if kind.startswith("siglip2") else "SiglipVisionModel"
        return getattr(transformers, name).from_pretrained(folder, **at), "pooler_output"
    try:
        network = transformers.AutoModel.from_pretrained(folder, **at)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder} cannot be loaded by transformers: {error}") from error
    return network, "pooler_output" if kind in POOLED else "first token"


def timm_model(name: str, size: int | None = None) -> tuple[Model, Preparation]:
    """Return a model of timm, by name or as ``local-dir:FOLDER``."""
    if not has("timm", "torch"):
        raise MissingExtraError(f"timm:{name}", "timm")
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"timm does not import here ({error}); it needs a torchvision built for the same "
            "torch: install both from one place, or use a transformers model"
        ) from error
    try:
        network: Any = timm.create_model(name, pretrained=True, num_classes=0).eval()
    except Exception as error:  # timm and the hub raise many kinds
        raise InputError(
            f"timm cannot give {name} with weights ({type(error).__name__}: {error}); download it "
            "elsewhere and give timm:local-dir:FOLDER"
        ) from error
    data = timm.data.resolve_model_data_config(network)
    side = size or data["input_size"][1]
    preparation = Preparation(side, side, data["crop_pct"])
    mean, std = list(data["mean"]), list(data["std"])

    def build() -> Any:  # noqa: ANN401
        from vsgraph.encoders.towers import ImageTower

        return ImageTower(network, mean, std, 1 / 255, "tensor").eval()

    digest = hash_words(
        name, preparation.describe(), mean, std,
        *(f"{key} {hash_words(value.numpy().tobytes())}" for key, value in
          network.state_dict().items()),
    )  # fmt: skip
    return _picture_model(name, digest, (2, side, side, 3), build), preparation
