"""From a crawl to a trained network in a folder that can be resumed."""

import dataclasses
import importlib.metadata
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import RECORD, lock, refuse_file, write_whole
from vsgraph.crawls import Crawl, crawl_digest
from vsgraph.crawls.picture_check import image_name
from vsgraph.encoders.runtimes.models import need
from vsgraph.encoders.sources.architectures import Architecture
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError, VSGraphError, VSGraphWarning
from vsgraph.training.batches import label_rows
from vsgraph.training.labels import Labels, web_labels
from vsgraph.training.log import Book
from vsgraph.training.recipe import Recipe, Start

TRAINING = "training.json"
FORMAT = "vsgraph-training-1"
LOCK = ".lock"
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What a training left.

    Attributes
    ----------
    path : Path
        Its folder: give it as an image encoder.
    history : list of dict
        A line an epoch: loss, accuracy, and what validation said.
    n_unreadable : int
        Pictures that were skipped.
    kept_epoch : int
        The epoch, from 1, whose network is kept.
    """

    path: Path
    history: list[dict[str, Any]]
    n_unreadable: int
    kept_epoch: int


def train(  # noqa: PLR0913
    crawl: Crawl,
    out: str | Path,
    *,
    labels: Labels | None = None,
    start: Start | None = None,
    recipe: Recipe | None = None,
    validation: Crawl | None = None,
    save_seconds: float = 600,
    tensorboard: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    tell: Tell | None = None,
) -> Trained:
    """Train a network on the labels of a crawl, going on where an earlier run ended.

    The folder holds the network to use (``model.safetensors``: the best on `validation`, or the
    last), all that the next step needs (``last.safetensors``), a line an epoch
    (``metrics.jsonl``) and curves (``curves.svg``). Pictures that cannot be read are skipped and
    counted in ``crawl.problems``. Under ``torchrun`` several processes share the work.

    Parameters
    ----------
    crawl : Crawl
        Pictures, in folders or tar shards.
    out : path
        Made if it is not there.
    labels : Labels, optional
        What to learn; the crawl's own labels if not given.
    start : Start, optional
        The network to begin with; a pretrained EfficientNet-Lite0 if not given.
    recipe : Recipe, optional
        How to train.
    validation : Crawl, optional
        Images of known classes, to judge each epoch by.
    save_seconds : float
        How often all is kept within an epoch.
    tensorboard : bool
        Write for TensorBoard, too.
    overwrite : bool
        Replace another training in the folder.
    progress : bool
        Show loss, accuracy, images a second and the time left.
    tell : callable, optional
        Called with lines of text: what will be done, what an epoch gave.
    """
    need("training", "encoders", "torch", "safetensors")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: far fewer faults on CPUs
    from vsgraph.training.processes import open_processes

    job = _Job(
        crawl, labels or web_labels(crawl), Path(out), recipe or Recipe(), validation,
        start or Start(),
    )  # fmt: skip
    job.check()
    with open_processes() as processes, _held(job.folder, processes.is_first):
        said = tell if tell is not None and processes.is_first else _silent
        if processes.is_first:
            _claim(job.folder, job.key(), overwrite=overwrite)
        processes.wait()
        trainer = job.trainer(processes)
        trainer.save_seconds = save_seconds
        trainer.book = Book(tensorboard=tensorboard)
        said(f"{job.start.network}: {trainer.plan()}")
        trainer.train(progress=progress, tell=said)
    job.warn_of_lost(trainer.unreadable)
    for row, (reason, detail) in sorted(trainer.unreadable.items()):
        crawl.problems.add(reason, image_name(crawl, row), detail)
    at = trainer.place
    return Trained(job.folder, at.history, len(trainer.unreadable), at.kept)


@contextmanager
def _held(folder: Path, is_first: bool) -> Iterator[None]:  # noqa: FBT001
    """Make a folder and keep other trainings out of it; nothing is left of one that never began."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if not is_first:
        yield
        return
    try:
        with lock(folder / LOCK):
            yield
    except VSGraphError:
        if new and {one.name for one in folder.iterdir()} <= {LOCK, TRAINING, RECORD}:
            shutil.rmtree(folder)
        raise


def _silent(_: str) -> None:
    """Say nothing."""


@dataclasses.dataclass(frozen=True)
class _Job:
    """What is to be trained, on what, how, and where it is kept."""

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
                f"labels must have shape {shape}, a row an image and a column a class, got "
                f"{self.labels.table.shape}"
            )
        if len(self.labels.rows) < 2:
            raise InputError("there are no two images with a label to learn from")
        if len(names) < 2 and not self.labels.several:
            raise InputError(f"there is one class only, {names[0]!r}: nothing to tell apart")
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

    def warn_of_lost(self, unreadable: dict[int, Any]) -> None:
        """Name the classes that have no picture that can be read."""
        lost = np.array(sorted(unreadable), np.intp)
        gone = label_rows(self.labels.table, lost).sum(axis=0) if len(lost) else 0
        counts, left = self.labels.counts(), self.labels.counts() - gone
        if ((left <= 0) & (counts > 0)).any():
            self._warn_of_absent(left.clip(0))

    def key(self) -> dict[str, Any]:
        """Return what a training is; another one never goes on from its files."""
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

    def trainer(self, processes: Any) -> Any:  # noqa: ANN401
        """Build the networks and bring them to where the folder's training was."""
        from vsgraph.training.learner import Learner
        from vsgraph.training.losses import class_weights
        from vsgraph.training.resume_file import take_up
        from vsgraph.training.start_network import start_networks
        from vsgraph.training.trainer import Trainer
        from vsgraph.training.validation import Validation

        recipe = self.recipe.settled(several=self.labels.several)
        names = self.crawl.class_names
        networks, made = start_networks(self.start, names, recipe)
        checkpoint = Checkpoint(made, names, several=recipe.loss == "sigmoid")
        if processes.is_first:
            checkpoint.save(self.folder)
        judge = None
        if self.validation is not None:
            judge = Validation(self.validation, networks[0], checkpoint, self.labels.several)
        counts = self.labels.counts()
        weights = class_weights(counts) if recipe.reweight else np.ones(len(counts), np.float32)
        learners = [Learner(one, recipe, processes) for one in networks]
        return Trainer(
            self.crawl, self.labels.table, self.labels.rows, weights, learners, recipe, processes,
            checkpoint, self.folder, validation=judge, place=take_up(self.folder, learners),
        )  # fmt: skip


def _claim(folder: Path, key: dict[str, Any], *, overwrite: bool) -> None:
    """Take a folder for a training: a new one, the same one begun before, or one to replace."""
    path = folder / TRAINING
    left = [one for one in folder.iterdir() if one.name != LOCK]
    if not path.exists() and left:
        raise InputError(f"{folder} holds something else than a training of vsgraph; left alone")
    if path.exists():
        former = json.loads(path.read_text(encoding="utf-8"))
        differ = [name for name in key if former.get(name) != key[name]]
        if differ and not overwrite:
            raise InputError(
                f"{folder} holds another training: {_told(differ, former, key)}; choose another "
                "folder, or say overwrite (--overwrite)"
            )
        if overwrite:
            for one in left:
                if one.is_file():
                    one.unlink()
    versions = {name: importlib.metadata.version(name) for name in ("vsgraph", "numpy", "torch")}
    write_whole(path, json.dumps({**key, "versions": versions}, indent=1) + "\n")


def _told(differ: list[str], former: dict[str, Any], key: dict[str, Any]) -> str:
    """Say in what two trainings differ."""
    words = []
    for name in differ:
        if name == "recipe":
            old, new = former.get(name, {}), key[name]
            words += [
                f"{n} was {_plain(old.get(n))}, now {_plain(new[n])}"
                for n in new
                if old.get(n) != new[n]
            ]
        elif name in {"crawl", "labels", "validation"}:
            words.append(f"its {name} {'were' if name == 'labels' else 'was'} another")
        else:
            words.append(f"{name} was {_plain(former.get(name))}, now {_plain(key[name])}")
    return ", ".join(words)


def _plain(value: object) -> str:
    """Return a value as a user writes it.

    >>> _plain(None), _plain(True), _plain(0.1)
    ('not set', 'true', '0.1')
    """
    return "not set" if value is None else json.dumps(value)
