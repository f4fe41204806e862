"""The one training loop: pretraining, fine-tuning and Co-teaching."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from vsgraph.common.formatting import say_span
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.encoders.picture_batches import quiet_decoders
from vsgraph.encoders.sources.checkpoints import WEIGHTS, Checkpoint
from vsgraph.errors import TrainingError
from vsgraph.training.batches import (
    Batch,
    Crops,
    cut_batches,
    epoch_order,
    label_rows,
    read_batches,
)
from vsgraph.training.co_teaching import easiest, kept_share
from vsgraph.training.learner import Learner
from vsgraph.training.log import Book
from vsgraph.training.losses import image_weights
from vsgraph.training.processes import Processes
from vsgraph.training.recipe import Recipe
from vsgraph.training.resume_file import LAST, Place, keep, write_weights
from vsgraph.training.validation import Validation

SAVE_SECONDS = 600
TIMED = 3  # steps after which the time is foretold


@dataclasses.dataclass
class Trainer:
    """Everything a training needs; :meth:`train` goes from where it is to the end."""

    crawl: Crawl
    labels: Any
    rows: NDArray[np.intp]
    weights: NDArray[np.float32]
    learners: list[Learner]
    recipe: Recipe
    processes: Processes
    checkpoint: Checkpoint
    folder: Path
    validation: Validation | None = None
    save_seconds: float = SAVE_SECONDS
    book: Book = dataclasses.field(default_factory=Book)
    place: Place = dataclasses.field(default_factory=Place)
    n_timed: int = 0
    unreadable: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Steps of an epoch."""
        return max(1, len(self.rows) // self.recipe.batch_size)

    def plan(self) -> str:
        """Say what is going to be done."""
        at, n = self.place, len(self.rows)
        begun = f", {at.epoch} epochs and {at.step} steps done before" if at.epoch + at.step else ""
        shared = f" by {self.processes.n} processes" if self.processes.n > 1 else ""
        two = "two networks that teach each other, " if len(self.learners) > 1 else ""
        return (
            f"{two}{self.recipe.epochs} epochs of {self.n_steps} steps{shared}, "
            f"{min(self.recipe.batch_size, n)} of {n:,} images a step{begun}"
        )

    def train(self, *, progress: bool, tell: Callable[[str], None]) -> None:
        """Do the epochs that are left."""
        total = self.recipe.epochs * self.n_steps
        done = self.place.epoch * self.n_steps + self.place.step
        show = progress and self.processes.is_first
        if self.place.history and self.processes.is_first:  # killed before it was written
            self.book.write(self.folder, self.place.history)
        with quiet_decoders(), tqdm(
            total=total, initial=done, desc="training", unit="step",
            disable=None if show else True, leave=False,
        ) as bar:  # fmt: skip
            while self.place.epoch < self.recipe.epochs:
                self._epoch(bar, tell)
                tell(say(self.place.history[-1]))
        self.unreadable = self.processes.merged(self.unreadable)

    def _epoch(self, bar: "tqdm[Any]", tell: Callable[[str], None]) -> None:
        """Do what is left of an epoch, then judge and keep."""
        started = saved = time.monotonic()
        before = self.place.sums.get("n", 0)
        for batch in self._batches():
            self._step(batch)
            bar.update()
            sums, now = self.place.sums, time.monotonic()
            speed = (sums.get("n", 0) - before) / max(now - started, 1e-9)
            told = {"epoch": self.place.epoch + 1, "images/s": f"{speed:.0f}", **_means(sums)}
            bar.set_postfix(told)
            self.place.step += 1
            self.n_timed += 1
            if self.n_timed == TIMED and speed and self._images_left():
                tell(f"about {say_span(self._images_left() / speed)} to go")
            if self.processes.first_says(now - saved > self.save_seconds):
                self.save()
                saved = time.monotonic()
        self._finish_epoch((self.place.sums.get("n", 0) - before) / (time.monotonic() - started))

    def _images_left(self) -> int:
        """Return how many images are still to be seen."""
        steps = (self.recipe.epochs - self.place.epoch) * self.n_steps - self.place.step
        return steps * min(self.recipe.batch_size, len(self.rows))

    def _batches(self) -> Iterator[Batch]:
        """Yield this process's parts of the batches of an epoch that are left."""
        epoch, recipe = self.place.epoch, self.recipe
        side = self.checkpoint.architecture
        crops = Crops(
            side.height, side.width, recipe.smallest_crop, recipe.flip, recipe.random_state
        )
        order = epoch_order(self.rows, epoch, recipe.random_state)
        whole = cut_batches(order, recipe.batch_size)[self.place.step :]
        parts = [rows[self.processes.part(len(rows))] for rows in whole]
        return read_batches(self.crawl, parts, lambda row: crops.of(row, epoch))

    def _step(self, batch: Batch) -> None:
        """Learn from a batch."""
        self.unreadable |= {row: (reason, detail) for row, reason, detail in batch.problems}
        recipe, at = self.recipe, self.place
        number = at.epoch * self.n_steps + at.step
        torch.manual_seed(step_seed(recipe, number, self.processes.rank))  # of dropout
        n = self.processes.total(len(batch.rows))[0]
        if not n:
            return
        loss = right = 0.0
        for part in np.array_split(np.arange(len(batch.rows)), recipe.accumulate):
            found = self._learn(batch, part, n)
            loss, right = loss + found[0], right + found[1]
        loss, right = self.processes.total(loss, right)
        if not math.isfinite(loss):
            raise TrainingError(self._say_where(batch, loss))
        for learner in self.learners:
            learner.step(learning_rate(recipe, number, self.n_steps))
        for name, value in (("n", n), ("loss", n * loss), ("right", right)):
            at.sums[name] = at.sums.get(name, 0) + value

    def _learn(self, batch: Batch, part: NDArray[np.intp], n: float) -> tuple[float, float]:
        """Add up gradients; return this part's share of the loss, and how many it got right."""
        device = self.processes.device
        pixels = torch.from_numpy(batch.pixels[part]).to(device)
        labels = torch.from_numpy(label_rows(self.labels, batch.rows[part])).to(device)
        weights = image_weights(labels, torch.from_numpy(self.weights).to(device))
        found = [learner.losses(pixels, labels) for learner in self.learners]
        chosen = [(torch.ones_like(losses), int(n)) for losses, _ in found]
        if self.recipe.forget_rate is not None:
            share = kept_share(self.recipe, self.place.epoch)
            chosen = [easiest(one.detach(), share, self.processes) for one, _ in reversed(found)]
        shares = [
            (losses * weights * mask).sum() / count
            for (losses, _), (mask, count) in zip(found, chosen, strict=True)
        ]
        for share_of_loss in shares:
            (share_of_loss * self.processes.n).backward()
        logits = found[0][1]
        right = (logits.argmax(1) == labels.argmax(1)).sum().item()
        return sum(one.item() for one in shares) / len(shares), float(right)

    def _say_where(self, batch: Batch, loss: float) -> str:
        """Say at which images a training went wrong."""
        at = self.place
        names = ", ".join(image_name(self.crawl, int(row)) for row in batch.rows[:4])
        return (
            f"the loss became {loss} in epoch {at.epoch + 1}, step {at.step + 1}, at {names}"
            f"{' ...' * (len(batch.rows) > 4)}; lower learning_rate or set clip_norm; what was "
            f"kept last is in {self.folder / LAST}"
        )

    def _finish_epoch(self, speed: float) -> None:
        """Judge the network, write down the epoch, and keep what the next one needs."""
        at = self.place
        line = {
            "epoch": at.epoch + 1, **_means(at.sums),
            "rate": learning_rate(self.recipe, (at.epoch + 1) * self.n_steps - 1, self.n_steps),
        }  # fmt: skip
        if speed:
            line["images_per_second"] = round(speed, 1)
        judged = None
        if self.validation is not None:
            judged = self.validation.judge(self.learners[0].weights(), self.processes)
            line |= judged
        score = float(at.epoch) if judged is None else next(iter(judged.values()))
        at.history.append(line)
        at.epoch, at.step, at.sums = at.epoch + 1, 0, {}
        if score >= at.best:
            at.best, at.kept = score, at.epoch
            if self.processes.is_first:
                write_weights(self.folder / WEIGHTS, self.learners[0].weights())
        self.save()
        if self.processes.is_first:
            self.book.write(self.folder, at.history)
            self.book.show(self.folder, line)

    def save(self) -> None:
        """Keep everything that the next step depends on."""
        self.processes.wait()
        if self.processes.is_first:
            keep(self.folder, self.learners, self.place)
        self.processes.wait()


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


def say(line: dict[str, Any]) -> str:
    """Return what an epoch gave, in words.

    >>> say({"epoch": 2, "loss": 0.5, "accuracy": 0.75, "rate": 0.1})
    'epoch 2: loss 0.5, accuracy 0.75, rate 0.1'
    """
    rest = [f"{name.replace('_', ' ')} {value:.4g}" for name, value in line.items()]
    return f"{rest[0]}: {', '.join(rest[1:])}"


def step_seed(recipe: Recipe, step: int, rank: int) -> int:
    """Return a seed for what is random within a network, the same when a step is repeated."""
    return int(np.random.SeedSequence([recipe.random_state, step, rank]).generate_state(1)[0])


def _means(sums: dict[str, float]) -> dict[str, float]:
    """Return loss and accuracy of an epoch so far."""
    n = max(sums.get("n", 0), 1)
    return {
        "loss": round(sums.get("loss", 0) / n, 4),
        "accuracy": round(sums.get("right", 0) / n, 4),
    }
