"""From a crawl to a trained network, in a folder from which training can be resumed."""

import dataclasses
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import file_errors, refuse_file
from vsgraph.crawls import Crawl, crawl_digest
from vsgraph.crawls.picture_check import image_name
from vsgraph.encoders.runtimes.models import need
from vsgraph.encoders.sources.architectures import Architecture
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.training.batches import label_rows
from vsgraph.training.labels import Labels, web_labels
from vsgraph.training.recipe import Recipe, Start
from vsgraph.training.training_folder import (
    claim_folder,
    held_folder,
    replace_model,
    working_folder,
)

FORMAT = "vsgraph-training-1"


@dataclasses.dataclass(frozen=True)
class Trained:
    """A finished training."""

    path: Path  # its folder, which can be used as an image encoder
    history: list[dict[str, Any]]  # of each epoch: loss, accuracy, and the validation scores
    n_unreadable: int  # pictures that were skipped
    kept_epoch: int  # from 1, the one whose network is kept

    def __str__(self) -> str:
        kept = self.history[self.kept_epoch - 1]
        scores = [f"{name.replace('_', ' ')} {kept[name]:.1%}" for name in ("top_1", "mAP")
                  if name in kept]  # fmt: skip
        best = f"epoch {self.kept_epoch} is kept ({scores[0]}); " if scores else ""
        return f"{best}the model is {self.path.resolve()}"


@file_errors()
def train(
    crawl: Crawl,
    out: str | Path,
    *,
    labels: Labels | None = None,
    start: Start | None = None,
    recipe: Recipe | None = None,
    validation: Crawl | None = None,
    save_seconds: float = 600,
    overwrite: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Trained:
    """Train a network on the labels of a crawl; resume if the folder holds the same training.

    ``docs/training.md`` lists the files of the folder. Pictures that cannot be read are skipped and
    counted in ``crawl.problems``. Under ``torchrun`` several processes share the work.

    Parameters
    ----------
    crawl : Crawl
        Pictures in folders or tar shards.
    out : path
        The folder, made if it does not exist.
    labels : Labels, optional
        What to learn, a table of shape (n_images, n_classes); by default the crawl's own labels.
    start : Start, optional
        The network to start from; by default a pretrained EfficientNet-Lite0.
    recipe : Recipe, optional
        How to train.
    validation : Crawl, optional
        Images of known classes, on which the network is judged after each epoch.
    save_seconds : float
        How often the state is saved within an epoch.
    overwrite : bool
        Replace another training in the folder; its model stays until the new one is finished.
    progress : bool
        Show loss, accuracy, images per second and the time left.
    tell : callable, optional
        Called with lines of text: the plan, and the figures of each epoch.

    Returns
    -------
    trained : Trained
        The folder, and the figures of each epoch.
    """
    need("training", "encoders", "torch", "safetensors")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: far fewer faults on CPUs
    from vsgraph.training.processes import open_processes

    job = Job(
        crawl, labels or web_labels(crawl), Path(out), recipe or Recipe(), validation,
        start or Start(),
    )  # fmt: skip
    job.check()
    with open_processes() as processes, held_folder(job.folder, is_first=processes.is_first):
        say = tell if tell is not None and processes.is_first else (lambda _: None)
        if processes.is_first:
            claim_folder(job.folder, job.key(), overwrite=overwrite)
        processes.wait()
        working = dataclasses.replace(job, folder=working_folder(job.folder))
        trainer = working.trainer(processes, save_seconds)
        say(f"{job.start.network}: {trainer.plan()}")
        trainer.train(show_bar=progress, tell=say)
        if processes.is_first:
            replace_model(job.folder)
    job.warn_of_unreadable(trainer.unreadable)
    for row, (reason, detail) in sorted(trainer.unreadable.items()):
        crawl.problems.add(reason, image_name(crawl, row), detail)
    reached = trainer.progress
    return Trained(job.folder, reached.history, len(trainer.unreadable), reached.kept)


@dataclasses.dataclass(frozen=True)
class Job:
    """What to train, on what, how, and where to keep it."""

    crawl: Crawl
    labels: Labels
    folder: Path
    recipe: Recipe
    validation: Crawl | None
    start: Start

    def check(self) -> None:
        """Refuse what cannot be trained on; warn of classes that cannot be learned."""
        refuse_file(self.folder)
        names, shape = self.crawl.class_names, (len(self.crawl), len(self.crawl.class_names))
        if self.labels.table.shape != shape:
            raise InputError(
                f"labels must have shape {shape}, one row per image and one column per class, got "
                f"{self.labels.table.shape}"
            )
        if len(self.labels.rows) < 2:
            raise InputError("training needs at least two images with a label")
        if len(names) < 2 and not self.labels.several:
            raise InputError(f"there is only one class, {names[0]!r}: nothing to tell apart")
        self._warn_of_absent(self.labels.counts())
        if self.labels.several and self.recipe.loss == "softmax":
            raise InputError("images have several labels: train with loss sigmoid")
        if self.validation is not None:
            Checkpoint(Architecture(network="", height=0, width=0), names).refuse_other_classes(
                self.validation.class_names, "validation"
            )

    def _warn_of_absent(self, counts: NDArray[np.float64]) -> None:
        """Name the classes that cannot be learned."""
        names = self.crawl.class_names
        absent = [name for name, count in zip(names, counts, strict=True) if not count]
        if absent:
            warnings.warn(
                f"{len(absent)} of {len(names)} classes have no image to learn from: "
                f"{', '.join(absent[:5])}{' ...' * (len(absent) > 5)}; the network will not know "
                "them",
                VSGraphWarning,
                stacklevel=4,
            )

    def warn_of_unreadable(self, unreadable: dict[int, Any]) -> None:
        """Name the classes none of whose pictures could be read."""
        rows = np.array(sorted(unreadable), np.intp)
        lost = label_rows(self.labels.table, rows).sum(axis=0) if len(rows) else 0
        counts, left = self.labels.counts(), self.labels.counts() - lost
        if ((left <= 0) & (counts > 0)).any():
            self._warn_of_absent(left.clip(0))

    def key(self) -> dict[str, Any]:
        """Return what identifies a training; another one never resumes from its files."""
        name = self.start.network
        return {
            "format": FORMAT,
            **dataclasses.asdict(self.start),
            "network": str(Path(name).resolve()) if Path(name).exists() else name,
            "recipe": dataclasses.asdict(self.recipe),
            "crawl": crawl_digest(self.crawl),
            "labels": self.labels.digest(),
            "validation": self.validation and crawl_digest(self.validation),
        }

    def trainer(self, processes: Any, save_seconds: float) -> Any:  # noqa: ANN401
        """Build the networks and restore the state that the folder holds."""
        from vsgraph.training.learner import Learner
        from vsgraph.training.losses import class_weights
        from vsgraph.training.resume_file import load_progress
        from vsgraph.training.start_network import start_networks
        from vsgraph.training.trainer import Trainer
        from vsgraph.training.validation import Validation

        recipe = self.recipe.settled(several=self.labels.several)
        names = self.crawl.class_names
        networks, architecture = start_networks(self.start, names, recipe)
        checkpoint = Checkpoint(architecture, names, several=recipe.loss == "sigmoid")
        if processes.is_first:
            checkpoint.save(self.folder)
        validation = None
        if self.validation is not None:
            validation = Validation(self.validation, networks[0], checkpoint, self.labels.several)
        weights = class_weights(self.labels.counts())
        learners = [Learner(network, recipe, processes) for network in networks]
        return Trainer(
            self.crawl, self.labels.table, self.labels.rows, weights, learners, recipe, processes,
            checkpoint, self.folder, validation, load_progress(self.folder, learners), save_seconds,
        )  # fmt: skip
