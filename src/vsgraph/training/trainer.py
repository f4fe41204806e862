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

from vsgraph.common.formatting import say_span
from vsgraph.common.progress import bar
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.encoders.sources.checkpoints import WEIGHTS, Checkpoint
from vsgraph.errors import TrainingError
from vsgraph.pictures.decode import quiet_decoders
from vsgraph.training.batches import Batch, cut_batches, epoch_order, label_rows, read_batches
from vsgraph.training.co_teaching import kept_share, learn
from vsgraph.training.crops import RandomCrop
from vsgraph.training.history import write_history
from vsgraph.training.learner import Learner
from vsgraph.training.losses import image_weights
from vsgraph.training.processes import Processes
from vsgraph.training.recipe import Recipe, learning_rate
from vsgraph.training.resume_file import LAST, Progress, no_sums, save_progress, write_weights
from vsgraph.training.validation import Validation

TIMED = 3  # steps after which the time left is announced


@dataclasses.dataclass
class Trainer:
    """The training loop: :meth:`train` runs the epochs that are left."""

    crawl: Crawl
    labels: Any  # (n_images, n_classes)
    rows: NDArray[np.intp]  # the images to learn from
    weights: NDArray[np.float32]  # (n_classes,)
    learners: list[Learner]  # one, or two for Co-teaching
    recipe: Recipe
    processes: Processes
    checkpoint: Checkpoint
    folder: Path
    validation: Validation | None
    progress: Progress
    save_seconds: float
    n_timed: int = 0  # steps since the start of this process
    unreadable: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Steps per epoch."""
        return max(1, len(self.rows) // self.recipe.batch_size)

    @property
    def n_left(self) -> int:
        """Steps that are left."""
        return (self.recipe.epochs - self.progress.epoch) * self.n_steps - self.progress.step

    def plan(self) -> str:
        """Describe what will be done."""
        at, n = self.progress, len(self.rows)
        begun = f", {at.epoch} epochs and {at.step} steps done before" if at.epoch + at.step else ""
        shared = f" by {self.processes.n} processes" if self.processes.n > 1 else ""
        two = "two networks that teach each other, " if len(self.learners) > 1 else ""
        return (
            f"{two}{self.recipe.epochs} epochs of {self.n_steps} steps{shared}, "
            f"{min(self.recipe.batch_size, n)} of {n:,} images per step{begun}"
        )

    def train(self, *, show_bar: bool, tell: Callable[[str], None]) -> None:
        """Run the epochs that are left."""
        show_bar = show_bar and self.processes.is_first
        if self.progress.history and self.processes.is_first:  # killed before it was written
            write_history(self.folder, self.progress.history)
        with quiet_decoders(), bar(self.n_left, "training", "step", progress=show_bar) as steps:
            while self.progress.epoch < self.recipe.epochs:
                self._epoch(steps, tell)
                tell(say(self.progress.history[-1]))
        self.unreadable = self.processes.merged(self.unreadable)

    def _epoch(self, steps: Any, tell: Callable[[str], None]) -> None:  # noqa: ANN401
        """Run what is left of an epoch, then judge the network and save."""
        started = saved = time.monotonic()
        before = self.progress.sums["n"]
        for batch in self._batches():
            self._step(batch)
            steps.update()
            sums, now = self.progress.sums, time.monotonic()
            speed = (sums["n"] - before) / max(now - started, 1e-9)
            steps.set_postfix(
                {"epoch": self.progress.epoch + 1, "images/s": f"{speed:.0f}", **_means(sums)}
            )
            self.progress.step += 1
            self.n_timed += 1
            if self.n_timed == TIMED and speed and self.n_left:
                n_images = self.n_left * min(self.recipe.batch_size, len(self.rows))
                tell(f"about {say_span(n_images / speed)} left")
            if self.processes.first_decides(now - saved > self.save_seconds):
                self.save()
                saved = time.monotonic()
        n_seen = self.progress.sums["n"] - before
        self._finish_epoch(n_seen / (time.monotonic() - started))

    def _batches(self) -> Iterator[Batch]:
        """Yield this process's parts of the batches of an epoch that are left."""
        epoch, recipe = self.progress.epoch, self.recipe
        side = self.checkpoint.architecture

        def crop(row: int) -> RandomCrop:
            return RandomCrop.draw(
                side.height, side.width, smallest=recipe.smallest_crop,
                seed=(recipe.random_state, epoch, row),
            )  # fmt: skip

        order = epoch_order(self.rows, epoch, recipe.random_state)
        whole = cut_batches(order, recipe.batch_size)[self.progress.step :]
        parts = [rows[self.processes.part(len(rows))] for rows in whole]
        return read_batches(self.crawl, parts, crop)

    def _step(self, batch: Batch) -> None:
        """Learn from a batch."""
        self.unreadable |= {row: (reason, detail) for row, reason, detail in batch.problems}
        at = self.progress
        number = at.epoch * self.n_steps + at.step
        seed = np.random.SeedSequence([self.recipe.random_state, number, self.processes.rank])
        torch.manual_seed(int(seed.generate_state(1)[0]))  # of dropout
        n = self.processes.total(len(batch.rows))[0]
        if not n:
            return
        loss, right = self.processes.total(*self._learn(batch, n))
        if not math.isfinite(loss):
            raise TrainingError(self._describe_failure(batch, loss))
        for learner in self.learners:
            learner.step(learning_rate(self.recipe, number, self.n_steps))
        for name, value in (("n", n), ("loss", n * loss), ("right", right)):
            at.sums[name] += value

    def _learn(self, batch: Batch, n: float) -> tuple[float, float]:
        """Compute gradients; return this process's share of the loss, and its right answers."""
        device = self.processes.device
        pixels = torch.from_numpy(batch.pixels).to(device)  # (n_part, height, width, 3)
        labels = torch.from_numpy(label_rows(self.labels, batch.rows)).to(device)
        weights = image_weights(labels, torch.from_numpy(self.weights).to(device))  # (n_part,)
        share = kept_share(self.recipe, self.progress.epoch)
        return learn(
            self.learners, pixels, labels, weights, n=n, share=share, processes=self.processes
        )

    def _describe_failure(self, batch: Batch, loss: float) -> str:
        """Say at which images a training failed."""
        at = self.progress
        names = ", ".join(image_name(self.crawl, int(row)) for row in batch.rows[:4])
        return (
            f"the loss became {loss} in epoch {at.epoch + 1}, step {at.step + 1}, at {names}"
            f"{' ...' * (len(batch.rows) > 4)}; lower learning_rate; the last checkpoint is "
            f"{self.folder / LAST}"
        )

    def _finish_epoch(self, speed: float) -> None:
        """Judge the network, record the epoch, and save what the next one needs."""
        at = self.progress
        line = {
            "epoch": at.epoch + 1, **_means(at.sums),
            "rate": learning_rate(self.recipe, (at.epoch + 1) * self.n_steps - 1, self.n_steps),
        }  # fmt: skip
        if speed:
            line["images_per_second"] = round(speed, 1)
        score = float(at.epoch)  # without validation the last epoch is the best
        if self.validation is not None:
            measures = self.validation.judge(self.learners[0].weights(), self.processes)
            line |= measures
            score = next(iter(measures.values()))
        at.history.append(line)
        at.epoch, at.step, at.sums = at.epoch + 1, 0, no_sums()
        if score >= at.best:
            at.best, at.kept = score, at.epoch
            if self.processes.is_first:
                write_weights(self.folder / WEIGHTS, self.learners[0].weights())
        self.save()
        if self.processes.is_first:
            write_history(self.folder, at.history)

    def save(self) -> None:
        """Save everything that the next step depends on."""
        self.processes.wait()
        if self.processes.is_first:
            save_progress(self.folder, self.learners, self.progress)
        self.processes.wait()


def say(line: dict[str, Any]) -> str:
    """Return the figures of an epoch, in words.

    >>> say({"epoch": 2, "loss": 0.5, "accuracy": 0.75, "rate": 0.1})
    'epoch 2: loss 0.5, accuracy 0.75, rate 0.1'
    """
    rest = [f"{name.replace('_', ' ')} {value:.4g}" for name, value in line.items()]
    return f"{rest[0]}: {', '.join(rest[1:])}"


def _means(sums: dict[str, float]) -> dict[str, float]:
    """Return loss and accuracy of an epoch so far."""
    n = max(sums["n"], 1)
    return {"loss": round(sums["loss"] / n, 4), "accuracy": round(sums["right"] / n, 4)}
