"""Co-teaching (Han et al. 2018): which images of a batch a network learns from."""

import math

import torch
from torch import Tensor

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
