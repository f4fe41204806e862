"""What an experiment takes before it starts: hours, disk and memory, from a few stated speeds.

``python experiments/paper/cost.py`` prints the table of docs/paper.md, from the paper's counts.
"""

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import click

from study import GOOGLE_500, NUS_81_WEB, WEBVISION_1000, Study
from vsgraph.common.formatting import markdown_table, say_span
from vsgraph.method.estimate import REFERENCE_FLOPS, available_memory, estimate

GB = 1e9
FEATURES, TEXT = 2048, 768  # of ResNet50 and XLNet
MODEL = 0.1 * GB  # ResNet50's weights
HEAD_EPOCHS = 10
TWICE = "co-teaching"  # two networks
ALL = ("pretrained", TWICE, "p_g", "p_c", "p_f")


@dataclasses.dataclass(frozen=True)
class Speed:
    """Images or texts per second that one GPU, or one core, is taken to do."""

    what: str
    train: float
    encode: float
    read: float

    def __str__(self) -> str:
        return (
            f"a {self.what} trains on {self.train:g} images per second, encodes {self.encode:g} "
            f"images or {self.read:g} texts"
        )


# ResNet50 at 224 pixels and XLNet in fp32: a guess for the GPUs of the paper's time; of a core
# measured, on torch, one thread, texts of 40 tokens
GPU = Speed("GPU", train=350, encode=1000, read=200)
CORE = Speed("core", train=2, encode=7, read=6)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an experiment does.

    Attributes
    ----------
    images, classes, tested : int
        Sizes of the training set, and of the test sets together.
    epochs : mapping of str to int
        What is trained and tested, and the epochs that are left of each.
    points, tuned : int, str
        How often labels are made anew, and whether a ``head`` or the ``network`` is tuned on them.
    """

    images: int
    classes: int
    tested: int
    epochs: Mapping[str, int]
    points: int = 0
    tuned: str = "head"


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds by stage, bytes of disk and of memory."""

    seconds: dict[str, float]
    disk: float
    memory: float

    def __str__(self) -> str:
        stages = ", ".join(f"{name} {say_span(took)}" for name, took in self.seconds.items())
        return (
            f"about {say_span(sum(self.seconds.values()))} ({stages}), {self.disk / GB:.0f} GB of "
            f"disk beside the data, {self.memory / GB:.0f} GB of memory"
        )


def expect(
    study: Study, plan: Plan, speed: Speed, n: int, *, machine_flops: float | None = None
) -> Cost:
    """Foretell what an experiment takes on so many GPUs or cores.

    Trainings use all of them, encoding one GPU (or all cores); the correction runs on this
    machine's cores.
    """
    images, many = plan.images, n if speed == CORE else 1
    core = estimate(
        study.settings, n_images=images, n_dims=FEATURES, n_classes=plan.classes, n_text_dims=TEXT,
        machine_flops=machine_flops,
    )  # fmt: skip
    seconds = {
        name: left * images * (2 if name == TWICE else 1) / (speed.train * n)
        for name, left in plan.epochs.items()
    }
    n_tested = len(plan.epochs) * plan.tested
    seconds |= {
        "features": images / (speed.encode * many),
        "texts": images / (speed.read * many),
        "correction": sum(core.seconds.values()),
        "tests": n_tested / (speed.encode * many),
    }
    disk = core.disk + 2 * images * (FEATURES + TEXT + plan.classes)
    disk += 2 * n_tested * (FEATURES + plan.classes)
    disk += MODEL * sum(5 if name == TWICE else 3 for name in plan.epochs)
    if plan.points:
        head = HEAD_EPOCHS * images * 6 * FEATURES * plan.classes / REFERENCE_FLOPS
        network = study.recipe.epochs * images / (speed.train * n)
        anew = sum(core.seconds[name] for name in ("graph", "network", "scores"))
        tuned = head if plan.tuned == "head" else network
        seconds[f"{plan.points} points"] = plan.points * (anew + tuned)
        disk += plan.points * (3 * MODEL + core.disk) * (plan.tuned == "network")
    return Cost(seconds, disk, core.memory)


def tell_cost(study: Study, plan: Plan, out: Path) -> list[str]:
    """Say what an experiment takes on the paper's GPUs, and on what there is here."""
    here, many = _this_machine()
    told = [f"on the paper's {study.n_gpus} GPUs: {expect(study, plan, GPU, study.n_gpus)}"]
    if (here, many) != (GPU, study.n_gpus):
        told.append(f"on {many} x {here.what} here: {expect(study, plan, here, many)}")
    there = next(path for path in [out, *out.parents] if path.exists())
    free = f"free here: {shutil.disk_usage(there).free / GB:.0f} GB of disk"
    memory = available_memory()
    free += "" if memory is None else f", {memory / GB:.0f} GB of memory"
    return [*told, f"assumed: {GPU}{'' if here == GPU else f'; {here}'}; reading keeps up", free]


def _this_machine() -> tuple[Speed, int]:
    """Return what there is to compute with."""
    import torch

    if torch.cuda.is_available():
        return GPU, torch.cuda.device_count()
    return CORE, os.cpu_count() or 1


def of_the_paper(study: Study, models: tuple[str, ...], points: int = 0, tuned: str = "") -> Plan:
    """Return what an experiment does from nothing on the paper's own data."""
    counts = {name: low for name, (low, _) in study.counts.items()}
    images = counts.get("training images", counts.get("photos listed for training", 0))
    tested = sum(many for name, many in counts.items() if "test" in name)
    epochs = dict.fromkeys(models, study.recipe.epochs)
    return Plan(images, counts["classes"], tested, epochs, points, tuned)


@click.command()
def main() -> None:
    """Print the costs of all experiments on the paper's data, as Markdown."""
    three = ("pretrained", "p_c", "p_f")
    plans = {
        "table 1": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL)),
        "table 2": (WEBVISION_1000, of_the_paper(WEBVISION_1000, three)),
        "table 3": (NUS_81_WEB, of_the_paper(NUS_81_WEB, three)),
        "table 4": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL)),
        "figure 1": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:2])),
        "figure 4": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:1])),
        "figure 5": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:1], 27, "head")),
        "figure 5, `--tune network`": (
            GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:1], 27, "network")),
        "figure 6": (GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:1], 10, "head")),
        "figure 6, `--tune network`": (
            GOOGLE_500, of_the_paper(GOOGLE_500, ALL[:1], 10, "network")),
    }  # fmt: skip
    rows = []
    for name, (study, plan) in plans.items():
        cost = expect(study, plan, GPU, study.n_gpus, machine_flops=REFERENCE_FLOPS)
        trained = sum(cost.seconds[model] for model in plan.epochs)
        rest = sum(cost.seconds.values()) - trained
        rows.append([name, study.n_gpus, f"{trained / 3600:.1f}", f"{rest / 3600:.1f}",
                     f"{cost.disk / GB:.0f}", f"{cost.memory / GB:.0f}"])  # fmt: skip
    head = ["", "GPUs", "h of training", "h of the rest", "GB of disk", "GB of memory"]
    click.echo(markdown_table(head, rows))
    click.echo(f"\nAssumed: {GPU}; the correction on two cores.")


if __name__ == "__main__":
    main()
