"""A network that learns: its optimizer, its average, and all of it as tensors to keep."""

from typing import Any

import torch
from torch import Tensor

from vsgraph.training.losses import image_losses
from vsgraph.training.processes import Processes, share_training
from vsgraph.training.recipe import Recipe


def has_bf16(device: str) -> bool:
    """Return whether a device computes in bf16 faster than in fp32."""
    if device.startswith("cuda"):
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())  # noqa: SLF001


class Learner:
    """A network in training.

    Parameters
    ----------
    network : Classifier
        What learns.
    recipe : Recipe
        How.
    processes : Processes
        Where.
    """

    def __init__(self, network: Any, recipe: Recipe, processes: Processes) -> None:  # noqa: ANN401
        device = processes.device
        self.network = network.to(device, memory_format=torch.channels_last)
        shared = share_training(self.network, processes)
        self._forward = torch.compile(shared) if recipe.compile else shared
        self._recipe = recipe
        self._device = device
        wanted = recipe.precision
        self._mixed = wanted == "bf16" or (wanted == "auto" and has_bf16(device))
        self._optimizer = torch.optim.SGD(
            network.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )  # fmt: skip
        self._average = _copied(self.network.state_dict()) if recipe.ema else None

    def losses(self, pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and the logits of each image."""
        self.network.train()
        kind = self._device.partition(":")[0]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self._mixed):
            _, logits = self._forward(pixels)
        found = logits.float()
        return image_losses(found, labels, self._recipe.loss), found.detach()

    def step(self, rate: float) -> None:
        """Go a step along the gradients that were added up."""
        if self._recipe.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._recipe.clip_norm)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if self._average is not None and self._recipe.ema is not None:
            for name, value in self.network.state_dict().items():
                if value.is_floating_point():
                    self._average[name].lerp_(value, 1 - self._recipe.ema)
                else:
                    self._average[name].copy_(value)

    def weights(self) -> dict[str, Tensor]:
        """Return the weights to use: the average where there is one."""
        return _copied(self._average or self.network.state_dict(), "cpu")

    def state(self, prefix: str) -> dict[str, Tensor]:
        """Return everything that the next step depends on."""
        found = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        found |= {f"average.{k}": v for k, v in (self._average or {}).items()}
        for number, parameter in enumerate(self.network.parameters()):
            speed = self._optimizer.state[parameter].get("momentum_buffer")
            if speed is not None:
                found[f"momentum.{number}"] = speed
        return {f"{prefix}{key}": value for key, value in _copied(found, "cpu").items()}

    def load_state(self, prefix: str, state: dict[str, Tensor]) -> None:
        """Take up where :meth:`state` was."""
        own = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        self.network.load_state_dict(_below("network.", own))
        if self._average is not None:
            for name, value in _below("average.", own).items():
                self._average[name].copy_(value)
        for number, parameter in enumerate(self.network.parameters()):
            speed = own.get(f"momentum.{number}")
            if speed is not None:
                self._optimizer.state[parameter]["momentum_buffer"] = speed.to(
                    parameter.device, copy=True
                )


def _below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what lies below a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _copied(state: dict[str, Tensor], device: str | None = None) -> dict[str, Tensor]:
    """Return copies that training does not change."""
    return {key: value.detach().to(device, copy=True) for key, value in state.items()}
