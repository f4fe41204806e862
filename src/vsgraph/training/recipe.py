"""How a network is trained: the paper's numbers, and ours for a small machine."""

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal, Self

from vsgraph.common.checks import check_at_least, check_fraction, check_number, check_one_of
from vsgraph.encoders.sources.checkpoints import is_checkpoint
from vsgraph.errors import InputError, is_meant

_PAPER: dict[str, Any] = {"warmup_epochs": 10, "batch_size": 256, "smallest_crop": 0.08}
PRESETS: dict[str, dict[str, Any]] = {
    "small": {},
    "google-500": {**_PAPER, "epochs": 120, "learning_rate": 0.1},
    "webvision-1000": {**_PAPER, "epochs": 150, "learning_rate": 0.4, "batch_size": 1024},
    "nus-81-web": {**_PAPER, "epochs": 100, "learning_rate": 0.002, "loss": "sigmoid"},
}


@dataclasses.dataclass(frozen=True)
class Start:
    """The network that a training starts from."""

    # lite0, lite1, lite2, resnet50, a folder or hub name (transformers), timm:NAME, or the folder
    # of a model trained on the same classes, to fine-tune it
    network: str = "lite0"
    size: int | None = None  # side of the pictures in pixels; by default the network's own
    pretrained: bool = True  # start from published weights, or from random ones

    @property
    def is_trained_model(self) -> bool:
        """Whether the network is a folder that :func:`vsgraph.training.train` wrote."""
        return is_checkpoint(Path(self.network))


def network_to_finetune(image_encoder: str, *, co_teaching: bool) -> str:
    """Return the network to fine-tune on the labels of a run: its image encoder, if trained here.

    Otherwise it is ``lite0``; for Co-teaching, too, which needs two networks that differ.
    """
    own = Start(image_encoder)
    return own.network if own.is_trained_model and not co_teaching else Start().network


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numbers of a training; the defaults adapt a pretrained network in a few epochs.

    Attributes
    ----------
    epochs : int
        How often every image is seen.
    learning_rate : float
        The highest rate.
    warmup_epochs : float
        Epochs in which the rate rises linearly to the highest; then it falls as a cosine.
    batch_size : int
        Images per step, over all processes.
    momentum, weight_decay : float
        Of stochastic gradient descent; norms and biases decay like all other weights. The paper's.
    loss : {'auto', 'softmax', 'sigmoid'}
        Soft cross-entropy (Eq. 9), or binary cross-entropy summed over classes as in the released
        code; 'auto' takes the latter if images have several labels.
    smallest_crop : float
        The smallest share of a picture in a random crop; 1 takes the whole.
    forget_rate : float, optional
        Co-teaching: train two networks, each on the images that the other finds easy; in the end
        this share of a batch is left out.
    forget_epochs : int
        Epochs until that share is reached, at most all of them.
    random_state : int
        Seed of weights, order and crops.

    Examples
    --------
    >>> recipe = Recipe.preset("google-500", epochs=3)
    >>> recipe.epochs, recipe.learning_rate, recipe.for_finetuning().learning_rate
    (3, 0.1, 0.05)
    """

    epochs: int = 10
    learning_rate: float = 0.02
    warmup_epochs: float = 1
    batch_size: int = 64
    momentum: float = 0.9
    weight_decay: float = 1e-4
    loss: Literal["auto", "softmax", "sigmoid"] = "auto"
    smallest_crop: float = 0.25
    forget_rate: float | None = None
    forget_epochs: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "forget_epochs"):
            check_at_least(name, check_number(name, getattr(self, name), int), 1)
        for name in ("learning_rate", "warmup_epochs", "weight_decay", "random_state"):
            check_at_least(name, check_number(name, getattr(self, name), float), 0)
        for name in ("momentum", "smallest_crop", "forget_rate"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name))
        if self.smallest_crop == 0:
            raise InputError("smallest_crop must be above 0: a crop needs some pixels")
        check_one_of("loss", self.loss, ("auto", "softmax", "sigmoid"))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:  # noqa: ANN401
        """Return one of `PRESETS` by name, with some attributes changed.

        'small' has the defaults; the others are the paper's recipes for its data sets. Of those,
        'google-500' and 'webvision-1000' are for random weights, 'nus-81-web' for a network trained
        on ImageNet.
        """
        check_one_of("preset", name, tuple(PRESETS))
        known = [field.name for field in dataclasses.fields(cls)]
        for change in changes:
            if change not in known:
                meant = is_meant(change, known)
                hint = f"; did you mean {meant}?" if meant else f"; it has {', '.join(known)}"
                raise InputError(f"a recipe has no {change!r}{hint}")
        return cls(**(PRESETS[name] | changes))

    def settled(self, *, several: bool) -> Self:
        """Return the recipe with its loss chosen, by whether images have several labels."""
        chosen: Any = "sigmoid" if several else "softmax"
        return dataclasses.replace(self, loss=chosen if self.loss == "auto" else self.loss)

    def for_finetuning(self) -> Self:
        """Return the recipe at half the rate and without warm-up, as the paper fine-tunes."""
        return dataclasses.replace(self, learning_rate=self.learning_rate / 2, warmup_epochs=0)


def learning_rate(recipe: Recipe, step: int, n_steps: int) -> float:
    """Return the rate of a step: a linear rise, then a cosine down to zero.

    >>> recipe = Recipe(epochs=3, warmup_epochs=1, learning_rate=1.0)
    >>> [round(learning_rate(recipe, step, 2), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    warm = recipe.warmup_epochs * n_steps
    if step < warm:
        return recipe.learning_rate * (step + 1) / warm
    left = max(recipe.epochs * n_steps - warm, 1)
    return recipe.learning_rate * (1 + math.cos(math.pi * (step - warm) / left)) / 2
