"""What an experiment takes before it starts: hours, disk and memory, from a few stated speeds."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from vsgraph.estimate import available_memory, estimate, say_span
from work import Work, n_epochs

GB = 1e9
FEATURES, TEXT = 2048, 768  # of ResNet50 and XLNet
MODEL = 0.1 * GB  # ResNet50's weights


@dataclasses.dataclass(frozen=True)
class Speed:
    """Images or texts a second that one GPU, or one core, is taken to do."""

    what: str
    train: float
    encode: float
    read: float


GPU = Speed("GPU", train=350, encode=1000, read=200)  # ResNet50 and XLNet on a V100 in fp32
CORE = Speed("core", train=2, encode=8, read=4)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds by stage, bytes of disk and of memory."""

    seconds: dict[str, float]
    disk: float
    memory: float

    def lines(self, speed: Speed, n: int) -> list[str]:
        """Say it."""
        stages = ", ".join(f"{name} {say_span(took)}" for name, took in self.seconds.items())
        return [
            f"expected: about {say_span(sum(self.seconds.values()))} on {n} x {speed.what} "
            f"({stages}), {self.disk / GB:.1f} GB of disk, {self.memory / GB:.1f} GB of memory",
            f"taken for granted: {speed.train:g} images a second trained, {speed.encode:g} encoded "
            f"and {speed.read:g} texts encoded by a {speed.what}, pictures read as fast; the "
            "correction runs on this machine",
        ]


def expect(
    work: Work, models: Sequence[str], *, speed: Speed, n: int, more: dict[str, float] | None = None
) -> Cost:
    """Foretell what an experiment takes; trainings that are done count no more.

    Parameters
    ----------
    work : Work
        The data and the folder.
    models : sequence of str
        What it trains and tests.
    speed : Speed
        Of a GPU or a core.
    n : int
        How many of them.
    more : dict of str to float, optional
        Seconds of further stages.
    """
    crawl, recipe = work.crawl, work.study.recipe
    n_images, n_classes = len(crawl), len(crawl.class_names)
    epochs = {name: _epochs_left(work, name) for name in models}
    trained = {
        name: left * n_images * (2 if name == "co-teaching" else 1) / (speed.train * n)
        for name, left in epochs.items()
    }
    plan = estimate(
        work.study.settings, n_images=n_images, n_dims=FEATURES, n_classes=n_classes,
        n_text_dims=TEXT,
    )  # fmt: skip
    n_tests = len(models) * sum(len(work.test_set(name)) for name in work.study.tests)
    seconds = trained | {
        "features": n_images / speed.encode,  # one process encodes
        "texts": n_images / speed.read,
        "correction": sum(plan.seconds.values()),
        "tests": n_tests / speed.encode,
    }
    vectors = 2 * n_images * (FEATURES + TEXT + n_classes)
    tested = 2 * n_tests * (FEATURES + n_classes)
    kept = MODEL * sum(5 if name == "co-teaching" else 3 for name in models)
    batches = 3 * recipe.batch_size * 3 * 224 * 224
    return Cost(seconds | (more or {}), plan.disk + vectors + tested + kept, plan.memory + batches)


def _epochs_left(work: Work, name: str) -> int:
    return max(0, work.study.recipe.epochs - n_epochs(work.place(name)))


def this_machine() -> tuple[Speed, int]:
    """Return what there is to compute with."""
    import torch

    if torch.cuda.is_available():
        return GPU, torch.cuda.device_count()
    return CORE, os.cpu_count() or 1


def tell_cost(work: Work, models: Sequence[str], more: dict[str, float] | None = None) -> None:
    """Say what an experiment takes on the paper's GPUs, and on what there is here."""
    paper, here = (GPU, work.study.n_gpus), this_machine()
    for speed, n in dict.fromkeys((paper, here)):
        for line in expect(work, models, speed=speed, n=n, more=more).lines(speed, n):
            work.tell(line)
    memory = available_memory()
    free = _free_disk(work.out) / GB
    told = "" if memory is None else f", {memory / GB:.0f} GB of memory"
    work.tell(f"here: {here[1]} x {here[0].what}, {free:.0f} GB of disk free{told}")


def _free_disk(folder: Path) -> float:
    """Return the bytes that are free where a folder is or will be."""
    there = next(path for path in [folder, *folder.parents] if path.exists())
    found = os.statvfs(there)
    return found.f_bavail * found.f_frsize
