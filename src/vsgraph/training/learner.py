"""A network that learns: its optimizer, and its state as tensors."""

from typing import Any

import torch
from torch import Tensor

from vsgraph.training.losses import image_losses
from vsgraph.training.processes import Processes, share_training
from vsgraph.training.recipe import Recipe


class Learner:
    """A network in training, on the device of a process."""

    def __init__(self, network: Any, recipe: Recipe, processes: Processes) -> None:  # noqa: ANN401
        self.network = network.to(processes.device, memory_format=torch.channels_last)
        self._forward = share_training(self.network, processes)
        self._loss = recipe.loss
        self._optimizer = torch.optim.SGD(
            network.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )  # fmt: skip

    def losses(self, pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of each image, (n_images,), and its logits, (n_images, n_classes)."""
        self.network.train()
        _, logits = self._forward(pixels)
        return image_losses(logits, labels, self._loss), logits.detach()

    def step(self, rate: float) -> None:
        """Take one step along the gradients."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of the network's weights."""
        return _copied(self.network.state_dict())

    def state(self, prefix: str) -> dict[str, Tensor]:
        """Return everything that the next step depends on."""
        state = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        for number, parameter in enumerate(self.network.parameters()):
            momentum = self._optimizer.state[parameter].get("momentum_buffer")
            if momentum is not None:
                state[f"momentum.{number}"] = momentum
        return {f"{prefix}{key}": value for key, value in _copied(state).items()}

    def load_state(self, prefix: str, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`state` returned."""
        own = _below(prefix, state)
        self.network.load_state_dict(_below("network.", own))
        for number, parameter in enumerate(self.network.parameters()):
            momentum = own.get(f"momentum.{number}")
            if momentum is not None:
                self._optimizer.state[parameter]["momentum_buffer"] = momentum.to(
                    parameter.device, copy=True
                )


def _below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the entries whose name has a prefix, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return copies in main memory, which training does not change."""
    return {key: value.detach().to("cpu", copy=True) for key, value in state.items()}
