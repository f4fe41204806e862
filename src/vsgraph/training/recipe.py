"""How a network is trained: the paper's numbers, and ours for a small machine."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from vsgraph.common.checks import check_at_least, check_fraction, check_number, check_one_of
from vsgraph.errors import InputError, is_meant


@dataclasses.dataclass(frozen=True)
class Start:
    """The network that a training begins with.

    Attributes
    ----------
    network : str
        ``lite0``, ``lite1``, ``lite2``, ``resnet50``, a folder or hub name (transformers),
        ``timm:NAME``, or the folder of a model trained on the same classes, to fine-tune it.
    size : int, optional
        Side of the pictures, where it should differ from the network's own.
    pretrained : bool
        Begin with published weights, or with random ones.

    Examples
    --------
    >>> Start("resnet50", pretrained=False)
    Start(network='resnet50', size=None, pretrained=False)
    """

    network: str = "lite0"
    size: int | None = None
    pretrained: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numbers of a training; the defaults adapt a pretrained network in a few epochs.

    Attributes
    ----------
    epochs : int
        Times that every image is seen.
    learning_rate : float
        The highest rate.
    warmup_epochs : float
        Epochs in which the rate rises to it, linearly; then it falls as a cosine.
    batch_size : int
        Images a step, over all processes.
    momentum, weight_decay : float
        Of stochastic gradient descent; norms and biases decay as everything else.
    loss : {'auto', 'softmax', 'sigmoid'}
        Soft cross-entropy (Eq. 9), or binary cross-entropy summed over classes, as released; auto
        takes the latter where images have several labels.
    reweight : bool
        Give images of rare classes more weight.
    smallest_crop : float
        Least share of a picture in a random crop; 1 takes the whole.
    flip : bool
        Mirror half of the pictures.
    precision : {'auto', 'fp32', 'bf16'}
        What is computed in; auto takes bf16 where the hardware has it.
    accumulate : int
        Parts in which a process takes its batch, one after the other, to save memory.
    clip_norm : float, optional
        Length to which gradients are cut.
    ema : float, optional
        Weights are averaged over steps, keeping this share of the average each step.
    compile : bool
        Compile the network first (``torch.compile``).
    forget_rate : float, optional
        Co-teaching: two networks, each learning from the images that the other finds easy; this
        share of a batch is left out in the end.
    forget_epochs : int
        Epochs until that share is reached; at most all of them.
    random_state : int
        Seed of weights, order and crops.

    Examples
    --------
    >>> Recipe.google_500().learning_rate, Recipe.google_500().for_finetuning().learning_rate
    (0.1, 0.05)
    """

    epochs: int = 10
    learning_rate: float = 0.02
    warmup_epochs: float = 1
    batch_size: int = 64
    momentum: float = 0.9
    weight_decay: float = 1e-4
    loss: Literal["auto", "softmax", "sigmoid"] = "auto"
    reweight: bool = True
    smallest_crop: float = 0.25
    flip: bool = True
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    accumulate: int = 1
    clip_norm: float | None = None
    ema: float | None = None
    compile: bool = False
    forget_rate: float | None = None
    forget_epochs: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate", "forget_epochs"):
            check_at_least(name, check_number(name, getattr(self, name), int), 1)
        for name in ("learning_rate", "warmup_epochs", "weight_decay", "random_state"):
            check_at_least(name, check_number(name, getattr(self, name), float), 0)
        self._check_choices()
        if self.clip_norm is not None:
            check_at_least("clip_norm", check_number("clip_norm", self.clip_norm, float), 0)
        if self.smallest_crop == 0:
            raise InputError("smallest_crop must be above 0: a crop needs some pixels")
        if self.forget_rate is not None and self.accumulate > 1:
            raise InputError("forget_rate needs whole batches: leave accumulate at 1")

    def _check_choices(self) -> None:
        """Check what is a share, one of a few words, or true or false."""
        for name in ("momentum", "smallest_crop", "ema", "forget_rate"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name))
        for name in ("reweight", "flip", "compile"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, got {getattr(self, name)!r}")
        check_one_of("loss", self.loss, ("auto", "softmax", "sigmoid"))
        check_one_of("precision", self.precision, ("auto", "fp32", "bf16"))

    @classmethod
    def google_500(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's recipe for Google-500, from random weights."""
        paper: dict[str, Any] = {
            "epochs": 120, "learning_rate": 0.1, "warmup_epochs": 10, "batch_size": 256,
            "smallest_crop": 0.08,
        }  # fmt: skip
        return cls(**(paper | changes))

    @classmethod
    def webvision_1000(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's recipe for WebVision-1000, from random weights."""
        paper = {"epochs": 150, "learning_rate": 0.4, "batch_size": 1024}
        return cls.google_500(**(paper | changes))

    @classmethod
    def nus_81_web(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's recipe for NUS-81-Web, from a network trained on ImageNet."""
        paper = {"epochs": 100, "learning_rate": 0.002, "loss": "sigmoid"}
        return cls.google_500(**(paper | changes))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a recipe of names and values, refusing names it does not have."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                meant = is_meant(name, known)
                hint = f"; did you mean {meant}?" if meant else f"; it has {', '.join(known)}"
                raise InputError(f"a recipe has no {name!r}{hint}")
        return cls(**values)

    def settled(self, *, several: bool) -> Self:
        """Return the recipe with its loss chosen, by whether images have several labels."""
        chosen: Any = "sigmoid" if several else "softmax"
        return dataclasses.replace(self, loss=chosen if self.loss == "auto" else self.loss)

    def for_finetuning(self) -> Self:
        """Return the recipe at half the rate, without warm-up, as the paper fine-tunes."""
        return dataclasses.replace(self, learning_rate=self.learning_rate / 2, warmup_epochs=0)


PRESETS: dict[str, Callable[[], Recipe]] = {
    "small": Recipe,
    "google-500": Recipe.google_500,
    "webvision-1000": Recipe.webvision_1000,
    "nus-81-web": Recipe.nus_81_web,
}
