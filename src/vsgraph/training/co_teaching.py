"""One step: a network learns from a batch, or two teach each other (Han et al. 2018)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vsgraph.training.learner import Learner
from vsgraph.training.processes import Processes
from vsgraph.training.recipe import Recipe


def kept_share(recipe: Recipe, epoch: int) -> float:
    """Return the share of a batch to learn from in an epoch.

    ``R(T) = 1 - min(T / T_k tau, tau)``, with the epoch T counted from 1.

    >>> [round(kept_share(Recipe(forget_rate=0.2, forget_epochs=2), e), 2) for e in range(3)]
    [0.9, 0.8, 0.8]
    >>> kept_share(Recipe(), 5)
    1.0
    """
    if recipe.forget_rate is None:
        return 1.0
    rise = min(recipe.forget_epochs, recipe.epochs)
    return 1 - recipe.forget_rate * min(1.0, (epoch + 1) / rise)


def easiest(losses: Tensor, share: float, processes: Processes) -> tuple[Tensor, int]:
    """Choose the images with the smallest losses, over the batch of all processes.

    Returns a mask of this process's images, (n_images,), and how many are chosen in all.
    """
    all_losses = processes.together(losses)  # (n_batch,)
    sizes = [int(n) for n in processes.together(torch.tensor([len(losses)]))]
    n_chosen = max(1, math.ceil(share * len(all_losses) - 1e-9)) if len(all_losses) else 0
    chosen = torch.zeros_like(all_losses)
    chosen[torch.argsort(all_losses, stable=True)[:n_chosen]] = 1
    start = sum(sizes[: processes.rank])
    return chosen[start : start + len(losses)], n_chosen


def learn(
    learners: Sequence[Learner],
    inputs: Tensor,
    labels: Tensor,
    weights: Tensor,
    *,
    n: float,
    share: float,
    processes: Processes,
) -> tuple[float, float]:
    """Compute gradients; return this process's part of the loss, and its right answers.

    `labels` have shape (n_part, n_classes), `weights` (n_part,); the batch of all processes has
    `n` images. Of two networks, each learns from the `share` that the other finds easy.
    """
    outputs = [learner.losses(inputs, labels) for learner in learners]
    chosen = [(torch.ones_like(losses), int(n)) for losses, _ in outputs]
    if len(learners) > 1:
        chosen = [easiest(losses.detach(), share, processes) for losses, _ in reversed(outputs)]
    losses_to_sum = [
        (losses * weights * mask).sum() / n_chosen
        for (losses, _), (mask, n_chosen) in zip(outputs, chosen, strict=True)
    ]
    for loss in losses_to_sum:
        (loss * processes.n).backward()
    logits = outputs[0][1]
    right = (logits.argmax(1) == labels.argmax(1)).sum().item()
    return sum(loss.item() for loss in losses_to_sum) / len(losses_to_sum), float(right)
