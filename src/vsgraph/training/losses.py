"""The loss of each image, and how much it weighs."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def image_losses(logits: Tensor, labels: Tensor, loss: str) -> Tensor:
    """Return the loss of each image, (n_images,), from logits and labels, (n_images, n_classes).

    ``softmax``: ``- sum_c labels_c log p_c``, the soft cross-entropy of Eq. 9. ``sigmoid``: binary
    cross-entropy of each class, summed, as in the released code.
    """
    if loss == "softmax":
        return -(labels * functional.log_softmax(logits, dim=1)).sum(dim=1)
    each = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    return each.sum(dim=1)


def class_weights(n_images: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the weight ``N / (C n_y)`` of each class, which gives all classes the same total.

    N and C count only classes with images; the others get 1. The mean over images is 1.

    >>> class_weights(np.array([1.0, 4.0, 0.0])).tolist()
    [2.5, 0.625, 1.0]
    """
    present = n_images > 0
    even = n_images.sum() / max(1, int(present.sum()))
    return np.where(present, even / np.where(present, n_images, 1), 1).astype(np.float32)


def image_weights(labels: Tensor, weights: Tensor) -> Tensor:
    """Return the weight of each image: the average weight of its labels."""
    return labels @ weights / labels.sum(dim=1).clamp(min=1e-12)
