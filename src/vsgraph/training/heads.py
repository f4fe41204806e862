"""A linear head on vectors that an encoder has made: training without decoding a picture.

Inputs are centered and scaled by one number, which is folded into the head afterwards, so that the
recipes of whole networks suit it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vsgraph.common.blocks import row_blocks
from vsgraph.common.progress import bar
from vsgraph.errors import InputError, TrainingError
from vsgraph.training.batches import cut_batches, epoch_order, label_rows
from vsgraph.training.co_teaching import kept_share, learn
from vsgraph.training.labels import Labels
from vsgraph.training.learner import Learner
from vsgraph.training.losses import class_weights, image_weights
from vsgraph.training.processes import Processes
from vsgraph.training.recipe import Recipe, learning_rate

LENGTH = 7.0  # of scaled inputs, as a root mean square: held-out web labels of COCO-Web favor it
SMALL = 2**25  # products per step
ALONE = Processes(0, 1, "cpu")
Singles = NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Head:
    """A linear classifier of vectors."""

    weights: Singles  # (n_classes, n_dims)
    bias: Singles  # (n_classes,)
    several: bool = False  # probabilities by sigmoid, or by softmax

    def probs(self, vectors: NDArray[np.floating]) -> Singles:
        """Return probabilities, (n_images, n_classes), of vectors, (n_images, n_dims)."""
        probs = np.empty((len(vectors), len(self.bias)), np.float32)
        weights, bias = torch.from_numpy(self.weights), torch.from_numpy(self.bias)
        for rows in row_blocks(len(vectors), row_bytes=8 * vectors.shape[1]):
            inputs = torch.from_numpy(np.asarray(vectors[rows], np.float32))
            logits = nn.functional.linear(inputs, weights, bias)
            probs[rows] = (logits.sigmoid() if self.several else logits.softmax(1)).numpy()
        return probs


def train_head(
    vectors: NDArray[np.floating],
    labels: Labels,
    recipe: Recipe | None = None,
    *,
    start: Head | None = None,
    shares: NDArray[np.floating] | None = None,
    after_epoch: Callable[[Head, dict[str, Any]], object] = lambda _head, _line: None,
    progress: bool = False,
) -> Head:
    """Train a linear classifier of vectors by Eq. 9, in the loop of a whole network.

    Parameters
    ----------
    vectors : array of shape (n_images, n_dims)
        Features, mapped or not; images without a picture have a row of zeros and are left out.
    labels : Labels
        What to learn, a table of shape (n_images, n_classes).
    recipe : Recipe, optional
        How to train; with a forget rate, two heads teach each other and the first is returned.
    start : Head, optional
        Go on from this one.
    shares : array of shape (n_images,), optional
        How much each image counts, besides the weight of its class.
    after_epoch : callable
        Called with the head so far and the epoch's figures.
    progress : bool
        Show a progress bar.

    Returns
    -------
    head : Head
        The trained head.
    """
    recipe = (recipe or Recipe()).settled(several=labels.several)
    rows = usable_rows(vectors, labels)
    if shares is not None:
        rows = rows[np.asarray(shares)[rows] > 0]
    if len(rows) < 2:
        raise InputError("training needs at least two images with a label and a picture")
    task = _Task(vectors, labels, shares, recipe, rows, _Scaling.of(vectors, rows))
    learners = task.learners(start)
    shown = bar(recipe.epochs * task.n_steps, "head", progress=progress)
    with shown as steps, _few_threads(task.n_cells):
        for epoch in range(recipe.epochs):
            line = task.epoch(epoch, learners, steps.update)
            head = task.scaling.fold(learners[0].network, several=recipe.loss == "sigmoid")
            after_epoch(head, line)
    return head


def usable_rows(vectors: NDArray[np.floating], labels: Labels) -> NDArray[np.intp]:
    """Return the images that have a label and a picture."""
    rows = labels.rows
    blocks = row_blocks(len(rows), row_bytes=4 * vectors.shape[1])
    kept = [rows[block][np.asarray(vectors[rows[block]]).any(axis=1)] for block in blocks]
    return np.concatenate([rows[:0], *kept])


@dataclasses.dataclass(frozen=True)
class _Scaling:
    """How inputs are centered and scaled: (vectors - center) * scale."""

    center: Singles  # (n_dims,)
    scale: float

    @classmethod
    def of(cls, vectors: NDArray[np.floating], rows: NDArray[np.intp]) -> Self:
        """Measure the vectors in one pass over blocks of rows."""
        total, square = np.zeros(vectors.shape[1]), 0.0
        for block in row_blocks(len(rows), row_bytes=8 * vectors.shape[1]):
            part = np.asarray(vectors[rows[block]], np.float32)
            total += part.sum(axis=0, dtype=np.float64)
            square += float(np.einsum("ij,ij->", part, part, dtype=np.float64))
        center = total / len(rows)
        spread = float(np.sqrt(np.maximum(square / len(rows) - center @ center, 0.0)))
        return cls(center.astype(np.float32), LENGTH / spread if spread > 0 else 1.0)

    def inputs(self, vectors: NDArray[np.floating], rows: NDArray[np.intp]) -> Tensor:
        """Return the scaled inputs of some images, (n_rows, n_dims)."""
        part = np.asarray(vectors[rows], np.float32)
        return torch.from_numpy((part - self.center) * np.float32(self.scale))

    def fold(self, network: "_Linear", *, several: bool) -> Head:
        """Return the head for vectors as they are."""
        weights = network.layer.weight.detach().numpy() * np.float32(self.scale)
        return Head(weights, network.layer.bias.detach().numpy() - weights @ self.center, several)

    def unfold(self, head: Head) -> tuple[Singles, Singles]:
        """Return weights and bias for scaled inputs."""
        return head.weights / np.float32(self.scale), head.bias + head.weights @ self.center


class _Linear(nn.Module):
    """The head in training: it returns what a whole network would, inputs and logits."""

    def __init__(
        self, shape: tuple[int, int], seed: int, scaling: _Scaling, start: Head | None
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(*shape)
        if start is not None:
            weights, bias = map(torch.from_numpy, scaling.unfold(start))
            self.layer.load_state_dict({"weight": weights, "bias": bias})

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs and the logits."""
        return inputs, self.layer(inputs)


@contextmanager
def _few_threads(n_cells: int) -> Iterator[None]:
    """Use one thread for small steps: threads would wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if n_cells > SMALL else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class _Task:
    """What a head learns, and from which images."""

    vectors: NDArray[np.floating]
    labels: Labels
    shares: NDArray[np.floating] | None
    recipe: Recipe
    rows: NDArray[np.intp]
    scaling: _Scaling

    @property
    def n_steps(self) -> int:
        """Steps per epoch."""
        return max(1, len(self.rows) // self.recipe.batch_size)

    @property
    def n_cells(self) -> int:
        """Products to sum up in one step."""
        n_images = min(self.recipe.batch_size, len(self.rows))
        return n_images * self.vectors.shape[1] * self.labels.table.shape[1]

    def learners(self, start: Head | None) -> list[Learner]:
        """Return the head to train, or two that differ, for Co-teaching."""
        shape = (self.vectors.shape[1], self.labels.table.shape[1])
        seeds = range(1 if self.recipe.forget_rate is None else 2)
        heads = [_Linear(shape, self.recipe.random_state + s, self.scaling, start) for s in seeds]
        return [Learner(head, self.recipe, ALONE) for head in heads]

    def epoch(
        self, epoch: int, learners: list[Learner], after_step: Callable[[], object]
    ) -> dict[str, Any]:
        """Learn from every image once; return the figures of the epoch."""
        recipe, sums = self.recipe, np.zeros(3)  # images, losses, right answers
        classes = torch.from_numpy(class_weights(self.labels.counts()))
        order = epoch_order(self.rows, epoch, recipe.random_state)
        for step, batch in enumerate(map(np.sort, cut_batches(order, recipe.batch_size))):
            target = torch.from_numpy(label_rows(self.labels.table, batch))
            weights = image_weights(target, classes)
            if self.shares is not None:
                weights *= torch.from_numpy(np.asarray(self.shares[batch], np.float32))
            loss, right = learn(
                learners, self.scaling.inputs(self.vectors, batch), target, weights,
                n=len(batch), share=kept_share(recipe, epoch), processes=ALONE,
            )  # fmt: skip
            for learner in learners:
                learner.step(learning_rate(recipe, epoch * self.n_steps + step, self.n_steps))
            sums += len(batch), len(batch) * loss, right
            after_step()
        loss, accuracy = (round(float(value / sums[0]), 4) for value in sums[1:])
        if not np.isfinite(loss):
            raise TrainingError(f"the loss became {loss} in epoch {epoch + 1}; lower learning_rate")
        return {"epoch": epoch + 1, "loss": loss, "accuracy": accuracy}
