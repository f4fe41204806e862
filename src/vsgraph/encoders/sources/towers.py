"""Networks of model hubs with one interface, in torch; imported only where torch is needed."""

from typing import Any

import torch
from torch import Tensor, nn

from vsgraph.encoders.sources.architectures import Architecture


class ImageTower(nn.Module):
    """Pixels (n, height, width, 3) in, features (n, n_dims) out."""

    mean: Tensor
    std: Tensor

    def __init__(self, architecture: Architecture, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.scale = architecture.scale
        self.take = architecture.take
        self.register_buffer("mean", torch.tensor(architecture.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(architecture.std).view(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Normalize, run, and take the features."""
        values = pixels.permute(0, 3, 1, 2).float() * self.scale
        values = (values - self.mean) / self.std
        if self.take == "tensor":
            return self.network(values)
        output: Any = self.network(pixel_values=values)
        if self.take == "first token":
            return output.last_hidden_state[:, 0]
        return output[self.take].flatten(1)


def tower(architecture: Architecture, network: nn.Module) -> ImageTower:
    """Wrap a hub's network."""
    return ImageTower(architecture, network)


class TextTower(nn.Module):
    """Token ids and mask (n, length) in, one vector per text out, not yet of unit length."""

    def __init__(self, network: nn.Module, pooling: str, dense: list[nn.Module]) -> None:
        super().__init__()
        self.network = network
        self.pooling = pooling
        self.dense = nn.Sequential(*dense)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Run and pool."""
        output: Any = self.network(input_ids=ids, attention_mask=mask)
        if self.pooling in {"text_embeds", "pooler_output"}:
            return self.dense(output[self.pooling])
        return self.dense(self._pool(output.last_hidden_state, mask))

    def _pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        if self.pooling == "cls":
            return hidden[:, 0]
        is_token = mask[..., None].to(hidden.dtype)  # (n, length, 1)
        if self.pooling == "max":
            return (hidden * is_token + (is_token - 1) * 1e9).amax(1)
        if self.pooling == "lasttoken":
            last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, hidden.shape[2])
            return hidden.gather(1, last)[:, 0]
        return (hidden * is_token).sum(1) / is_token.sum(1)


def dense_layer(weight: Tensor, bias: Tensor | None, activation: str) -> nn.Module:
    """Return a layer that sentence-transformers puts after pooling."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.weight.data = weight
    if bias is not None:
        linear.bias.data = bias
    kinds = {"Tanh": nn.Tanh, "Identity": nn.Identity, "ReLU": nn.ReLU, "GELU": nn.GELU}
    return nn.Sequential(linear, kinds[activation.rsplit(".", 1)[-1]]())
