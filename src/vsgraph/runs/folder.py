"""The folder of a run: which stages are done, under which key, and nothing half-written."""

import contextlib
import dataclasses
import hashlib
import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import lock, replaced_folder, write_whole
from vsgraph.common.version import __version__
from vsgraph.errors import InputError

RECORD = "run.json"
FORMAT = "vsgraph-run-1"
LOCK = ".lock"
STAGES = (
    "crawl", "pictures", "texts", "meanings", "descriptions", "probe", "graph", "labels", "report",
)  # fmt: skip


def key_of(*parts: object) -> str:
    """Return a key that changes with any of the parts.

    >>> key_of("graph", 5) == key_of("graph", 5), key_of("graph", 5) == key_of("graph", 6)
    (True, False)
    """
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclasses.dataclass
class RunFolder:
    """What a run has left so far.

    Attributes
    ----------
    path : Path
        The folder.
    record : dict
        What ``run.json`` holds: settings, versions, inputs, and the stages that are done.
    """

    path: Path
    record: dict[str, Any]

    @classmethod
    def open(cls, path: Path, *, make: bool = False) -> "RunFolder":
        """Open the folder of a run, or make a new one."""
        if make and not path.exists():
            path.mkdir(parents=True)
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; choose the name of a folder")
        try:
            record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            left = [p for p in path.iterdir() if p.name != LOCK] if path.is_dir() else []
            if not make or left:
                raise InputError(f"{path} is no run of vsgraph: it has no {RECORD}") from error
            record = {"format": FORMAT, "stages": {}}
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise InputError(f"{path / RECORD} is not in the format {FORMAT}")
        return cls(path, record)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from working in the folder at the same time."""
        with lock(self.path / LOCK):
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove what a killed process left under temporary names."""
        for path in self.path.glob(".*"):
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def keep_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write arrays as ``.npy`` files of one folder."""
        with replaced_folder(self.path / name) as fresh:
            for part, array in arrays.items():
                np.save(fresh / f"{part}.npy", array, allow_pickle=False)

    def is_done(self, stage: str, key: str) -> bool:
        """Return whether a stage was finished with the same inputs and settings."""
        return self.record["stages"].get(stage, {}).get("key") == key

    def was_done(self, stage: str) -> bool:
        """Return whether a stage was finished at all."""
        return stage in self.record["stages"]

    def finish(self, stage: str, key: str, seconds: float, **facts: object) -> None:
        """Record that a stage is done."""
        told = {"key": key, "seconds": round(seconds, 3), "finished": _now(), **facts}
        self.record["stages"][stage] = told
        self.save()

    def forget(self, stages: tuple[str, ...], *, save: bool = True) -> None:
        """Take stages as not done."""
        for stage in stages:
            self.record["stages"].pop(stage, None)
        if save:
            self.save()

    def changes(self, **facts: Mapping[str, Any]) -> list[str]:
        """Say which settings and inputs differ from the recorded ones, a name and both values."""
        told = []
        for kind, values in facts.items():
            former = self.record.get(kind, {})
            for name, now in json.loads(json.dumps(values, default=str)).items():
                was = former.get(name, now)
                if was != now:
                    told.append(f"{name} (was {_in_words(was)}, now {_in_words(now)})")
        return told

    def describe(self, **facts: object) -> None:
        """Record settings and inputs, with the versions of what computes."""
        import scipy

        versions = {
            "vsgraph": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        }
        self.record |= {"versions": versions, **facts}
        self.save()

    def save(self) -> None:
        """Write ``run.json``."""
        write_whole(self.path / RECORD, json.dumps(self.record, indent=1, default=str) + "\n")


def _in_words(value: object) -> str:
    return "not given" if value is None else str(value)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
