"""Networks in torch, built from their architecture; imported only where torch is needed."""

import torch
from torch import Tensor, nn

from vsgraph.encoders.sources.architectures import SIZES, Architecture, vision_class
from vsgraph.encoders.sources.lite_network import Lite
from vsgraph.encoders.sources.towers import tower


class Classifier(nn.Module):
    """A network and a linear classifier on it: pixels in, features and logits out."""

    def __init__(self, body: nn.Module, n_dims: int, n_classes: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(n_dims, n_classes)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Return features and logits."""
        features = self.body(pixels)
        return features, self.head(features)


class Scored(nn.Module):
    """A classifier that gives probabilities: features and probabilities out."""

    def __init__(self, network: nn.Module, *, several: bool) -> None:
        super().__init__()
        self.network = network
        self.several = several

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Return features, and probabilities: each class by itself, or all together."""
        features, logits = self.network(pixels)
        return features, logits.sigmoid() if self.several else logits.softmax(1)


def build_body(architecture: Architecture) -> nn.Module:
    """Return a network with random weights."""
    name = architecture.network
    if name in SIZES:
        return Lite(*SIZES[name][:2])
    if name.startswith("timm:"):
        from vsgraph.encoders.sources.hub import timm_network

        return tower(architecture, timm_network(name.removeprefix("timm:"), pretrained=False))
    import transformers

    config = dict(architecture.config or {})
    kind = config.pop("model_type")
    whole = transformers.AutoConfig.for_model(kind, **config)
    image_part = vision_class(kind)
    if image_part is None:
        return tower(architecture, transformers.AutoModel.from_config(whole))
    return tower(architecture, image_part(getattr(whole, "vision_config", whole)))


def n_features(body: nn.Module, architecture: Architecture) -> int:
    """Return the number of features of a network."""
    blank = torch.zeros((1, architecture.height, architecture.width, 3), dtype=torch.uint8)
    before = body.training
    body.eval()
    with torch.inference_mode():
        features = body(blank)
    body.train(before)
    return int(features.shape[1])
