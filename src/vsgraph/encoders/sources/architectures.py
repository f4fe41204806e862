"""The architecture of a network: enough to build it again, without its weights."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.encoders.runtimes.models import Model
from vsgraph.pictures.decode import Preparation

SIZES = {"lite0": (1.0, 1.0, 224), "lite1": (1.0, 1.1, 240), "lite2": (1.1, 1.2, 260)}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, in 0..1
POOLED = {
    "resnet", "regnet", "convnext", "convnextv2", "efficientnet", "mobilenet_v1", "mobilenet_v2",
    "swin", "swinv2", "siglip", "siglip_vision_model", "siglip2", "siglip2_vision_model",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Architecture:
    """A network before its classifier, and how pictures are prepared for it."""

    network: str  # "lite0", "lite1", "lite2", "timm:NAME" or "transformers"
    height: int  # of its pictures
    width: int
    crop: float | None = None  # as in Preparation
    mean: tuple[float, ...] = MEAN  # subtracted from the scaled pixels
    std: tuple[float, ...] = STD  # they are then divided by it
    scale: float = 1 / 255  # the bytes of pixels are multiplied by it
    take: str = "tensor"  # where the features are in the network's output
    config: dict[str, Any] | None = None  # of a transformers model

    @property
    def preparation(self) -> Preparation:
        """How a picture becomes pixels."""
        return Preparation(self.height, self.width, self.crop)


def lite_architecture(name: str, size: int | None = None) -> Architecture:
    """Return EfficientNet-Lite0, 1 or 2."""
    side = size or SIZES[name][2]
    return Architecture(network=name, height=side, width=side)


def resnet50_architecture(size: int | None = None) -> Architecture:
    """Return the paper's network: ResNet50, with strides in the 3 x 3 convolutions."""
    side = size or 224
    return Architecture(
        network="transformers", height=side, width=side, crop=0.875, take="pooler_output",
        config={"model_type": "resnet"},
    )  # fmt: skip


def feature_place(kind: str) -> str:
    """Return where the features are in the output of a kind of transformers model."""
    if kind in {"clip", "clip_vision_model"}:
        return "image_embeds"
    return "pooler_output" if kind in POOLED else "first token"


def vision_class(kind: str) -> Any:  # noqa: ANN401
    """Return the class of transformers that is the image part of CLIP or SigLIP, else None."""
    import transformers

    if kind in {"clip", "clip_vision_model"}:
        return transformers.CLIPVisionModelWithProjection
    if kind.startswith("siglip"):
        name = "Siglip2VisionModel" if kind.startswith("siglip2") else "SiglipVisionModel"
        return getattr(transformers, name)
    return None


def picture_model(
    name: str,
    fingerprint: str,
    architecture: Architecture,
    build: Callable[[], Any],
    output_names: tuple[str, ...] = ("features",),
) -> Model:
    """Return a network on pixels as the runtimes see it."""
    shape = (2, architecture.height, architecture.width, 3)
    return Model(
        name=Path(name).name,
        fingerprint=fingerprint,
        example=lambda: (np.zeros(shape, np.uint8),),
        output_names=output_names,
        build=build,
    )
