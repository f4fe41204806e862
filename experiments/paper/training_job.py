"""One training, told by a file: ``torchrun ... experiments/paper/training_job.py JOB.json``.

The commands of this folder write such a file for every training and do it themselves; on several
machines start this by torchrun on each, then the command, which finds the training done.
"""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import click

from vsgraph.common.files import write_whole
from vsgraph.crawls import Crawl, read_crawl
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction
from vsgraph.runs import Run
from vsgraph.runs.folder import RECORD
from vsgraph.training import Recipe, Start, corrected_labels, train


@dataclasses.dataclass(frozen=True)
class Job:
    """A training.

    Attributes
    ----------
    crawl : str
        Where the images are.
    reading : dict
        How they are read.
    out : str
        The folder of the trained model.
    start, recipe : dict
        The network and the numbers.
    correction : str, optional
        A run or a saved correction to learn from instead of the web labels.
    labels : str
        Which of its labels, see :func:`vsgraph.training.corrected_labels`.
    """

    crawl: str
    reading: dict[str, Any]
    out: str
    start: dict[str, Any]
    recipe: dict[str, Any]
    correction: str | None = None
    labels: str = "final"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def save(self) -> Path:
        """Write it beside the folder of the model."""
        path = Path(f"{self.out}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(dataclasses.asdict(self), indent=1, default=str) + "\n")
        return path

    def do(self, crawl: Crawl | None = None) -> Path:
        """Train, going on where an earlier start ended."""
        reading = dict(self.reading)
        if reading.get("classes"):
            reading["classes"] = Path(reading["classes"])
        labels = None
        if self.correction:
            labels = corrected_labels(self._open_correction(), self.labels)
        made = train(
            crawl or read_crawl(self.crawl, **reading), self.out, labels=labels,
            start=Start(**self.start), recipe=Recipe(**self.recipe), progress=True, tell=click.echo,
        )  # fmt: skip
        return made.path

    def _open_correction(self) -> Correction:
        """Open the labels of a run, or a correction that was saved alone."""
        path = Path(self.correction or "")
        return Run.open(path).correction if (path / RECORD).exists() else Correction.load(path)

    def do_in(self, n_processes: int) -> Path:
        """Train by several processes, one a GPU."""
        told = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        code = subprocess.run([*told, str(n_processes), __file__, self.save()], check=False)
        if code.returncode:
            raise InputError(f"the training of {self.out} ended with an error; it is told above")
        return Path(self.out)


if __name__ == "__main__":
    Job.load(Path(sys.argv[1])).do()
