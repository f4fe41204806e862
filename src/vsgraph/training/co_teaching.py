"""Co-teaching (Han et al. 2018): which images of a batch a network learns from."""

import math

import torch
from torch import Tensor

from vsgraph.training.processes import Processes
from vsgraph.training.recipe import Recipe


def kept_share(recipe: Recipe, epoch: int) -> float:
    """Return the share of a batch that is learned from in an epoch.

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

    Parameters
    ----------
    losses : Tensor of shape (n_images,)
        Of this process's part.
    share : float
        Of the whole batch to choose.
    processes : Processes
        The others.

    Returns
    -------
    chosen : Tensor of shape (n_images,)
        1 for those of this process that are chosen, 0 for the others.
    n_chosen : int
        Over all processes.
    """
    everywhere = processes.together(losses)
    before = [int(n) for n in processes.together(torch.tensor([len(losses)]))][: processes.rank]
    n_chosen = max(1, math.ceil(share * len(everywhere) - 1e-9)) if len(everywhere) else 0
    chosen = torch.zeros_like(everywhere)
    chosen[torch.argsort(everywhere, stable=True)[:n_chosen]] = 1
    start = sum(before)
    return chosen[start : start + len(losses)], n_chosen
