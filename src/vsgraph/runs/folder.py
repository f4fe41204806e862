"""The folder of a run: ``run.json``, which points to the current result, and stages by their keys.

The result of a stage is in ``stages/NAME-KEY``. It appears complete and never changes. ``run.json``
holds the last request and the stages of the current result. It is replaced in one step: a reader
finds the old result or the new one, never a mixture.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.answers import Journal
from vsgraph.common.files import (
    OWN,
    lock,
    mend_leftovers,
    refuse_file,
    remove_folder,
    write_whole,
)
from vsgraph.common.regular import read_regular
from vsgraph.common.stores import is_stored, place
from vsgraph.common.version import __version__
from vsgraph.errors import InputError
from vsgraph.runs.names import ANSWERS, LOCK, PAGE, RECORD, STAGE_RECORD, STAGES, STORE, TABLE
from vsgraph.runs.stored import WorkingCopy, local_path

FORMAT = "vsgraph-run-2"
STAGE_FOLDER = re.compile(r"[a-z]+-[0-9a-f]{16}(\.parts.*)?")


def key_of(*parts: object) -> str:
    """Return a key that changes with any of the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def file_key(path: Path) -> str:
    """Return a key of a file by its size, time, start and end, since it may be very large."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(2**20)
        file.seek(max(0, size - 2**20))
        tail = file.read()
    ends = hashlib.blake2b(head + tail, digest_size=16).hexdigest()
    return key_of(size, path.stat().st_mtime_ns, ends)


@dataclasses.dataclass
class RunFolder:
    """The folder of a run and its record."""

    path: Path
    asked: dict[str, Any]  # the last request: crawl, how to read it, settings, choices; or empty
    made: dict[str, Any] | None  # the current result: its request, versions, keys and facts

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> "RunFolder":
        """Open the folder of a run, or create a new one; an address by its working folder."""
        path = local_path(path, create=create)
        refuse_file(path)
        if create:
            path.mkdir(parents=True, exist_ok=True)
        if create and not (path / RECORD).exists() and _is_unused(path):
            return cls(path, {}, None)
        try:
            record = json.loads(read_regular(path / RECORD))
            written_as = record["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a run of vsgraph: it has no {RECORD}") from error
        if written_as == "vsgraph-run-1":
            raise InputError(
                f"{path} was made by vsgraph 0.2, whose runs cannot be read; correct the crawl "
                "again into a new folder (its vectors can be reused: --features "
                f"{path / 'pictures' / 'vectors.npy'})"
            )
        if written_as != FORMAT:
            raise InputError(f"{path / RECORD} is not in the format {FORMAT}")
        try:
            made, asked = _checked(record["made"], path), _found(record["asked"], path)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path / RECORD} is damaged; correct the crawl again into a new folder"
            ) from error
        return cls(path, asked, made)

    @property
    def stages(self) -> dict[str, Any]:
        """The key and facts of each stage of the current result."""
        return self.made["stages"] if self.made else {}

    @property
    def answers(self) -> Path:
        """The folder of the journals of answers."""
        return self.path / ANSWERS

    @functools.cached_property
    def copy(self) -> WorkingCopy | None:
        """What this folder is a working copy of, if the run lies in an object store."""
        return WorkingCopy.of(self.path)

    @property
    def home(self) -> Path:
        """Where the run lies: its folder, or its address."""
        return self.copy.address if self.copy else self.path

    def journal(self, reviewer: str) -> Journal:
        """Open the journal of a reviewer; in a store, it goes up with every answer."""
        journal, copy = Journal.open(self.answers, reviewer), self.copy
        if copy is not None:
            journal.written = lambda: copy.push(f"{ANSWERS}/{journal.path.name}")
        return journal

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from working in the folder at the same time."""
        with lock(self.path / LOCK):
            mend_leftovers(self.path)
            mend_leftovers(self.path / STAGES)
            if (self.path / RECORD).exists():  # it may have changed since it was read
                now = RunFolder.open(self.path)
                self.asked, self.made = now.asked, now.made
            yield

    def stage_folder(self, name: str, key: str) -> Path:
        """Return the folder of a stage's result."""
        return self.path / STAGES / f"{name}-{key}"

    def fetched(self, name: str, key: str) -> Path:
        """Return the folder of a stage's result, fetched if it lies in a store only."""
        if self.copy is not None:
            self.copy.fetch_stage(f"{name}-{key}")
        return self.stage_folder(name, key)

    def fetch_all(self, name: str) -> None:
        """Fetch every result of a small stage that lies in a store."""
        if self.copy is not None:
            for stage in self.copy.stages():
                if stage.startswith(f"{name}-"):
                    self.copy.fetch_stage(stage)

    def stage_record(self, name: str, key: str) -> dict[str, Any] | None:
        """Return the record of a finished stage; None if it is not finished."""
        path = self.stage_folder(name, key) / STAGE_RECORD
        text: str | bytes | None
        if path.exists():
            text = path.read_bytes()
        else:
            text = self.copy.stage_record(f"{name}-{key}") if self.copy else None
        with contextlib.suppress(ValueError):  # damaged: it is made again
            return None if text is None else json.loads(text)
        return None

    def publish_stage(self, name: str, key: str) -> None:
        """Upload a finished stage, if the run lies in a store."""
        if self.copy is not None:
            self.copy.publish_stage(f"{name}-{key}")

    def former_stages(self, name: str, crawl: Path) -> list[Path]:
        """Return the folders of a stage in the current result and in the runs beside this one.

        What calls itself a run but lies in the folder of the crawl may be a stranger's.
        """
        beside = []
        for record in sorted(self.path.resolve().parent.glob(f"*/{RECORD}")):
            if not record.resolve().is_relative_to(crawl.resolve()):
                with contextlib.suppress(InputError, OSError):
                    beside.append(RunFolder.open(record.parent))
        others = [run for run in beside if run.path != self.path.resolve()]
        own = [self.fetched(name, self.stages[name]["key"])] if name in self.stages else []
        return own + [run.stage_folder(name, run.stages[name]["key"]) for run in others
                      if name in run.stages]  # fmt: skip

    def save(self) -> None:
        """Write ``run.json``."""
        record = {"format": FORMAT, "asked": self.asked, "made": self.made}
        write_whole(self.path / RECORD, json.dumps(record, indent=1, default=str) + "\n")
        self._publish()

    def _publish(self) -> None:
        """Upload what changed, if the run lies in a store."""
        if self.copy is not None:
            self.copy.publish()

    def finish(self, stages: Mapping[str, Mapping[str, Any]], **facts: object) -> None:
        """Make some stages, given by name, the current result."""
        self.made = {
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "versions": _versions(),
            "asked": self.asked,
            **facts,
            "stages": {name: dict(stage) for name, stage in stages.items()},
        }
        self.save()

    def show_report(self) -> None:
        """Write the page that leads to the current report, if there is one."""
        if "report" not in self.stages:
            (self.path / PAGE).unlink(missing_ok=True)
            self._publish()
            return
        report = self.stage_folder("report", self.stages["report"]["key"])
        target = f"{STAGES}/{report.name}/index.html"
        write_whole(
            self.path / PAGE,
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Report</title>'
            f'<meta http-equiv="refresh" content="0; url={target}">'
            f'<a href="{target}">The report of this run</a></html>\n',
        )
        self._publish()

    def sweep(self, keep: set[Path]) -> None:
        """Remove stages that are neither part of the current result nor in `keep`."""
        keep = keep | {self.stage_folder(name, stage["key"]) for name, stage in self.stages.items()}
        kept = tuple(path.name for path in keep)
        for path in (self.path / STAGES).glob("*"):
            if STAGE_FOLDER.fullmatch(path.name) and not path.name.startswith(kept):
                remove_folder(path)
        if self.copy is not None:
            self.copy.remove_stages(
                name for name in self.copy.stages()
                if STAGE_FOLDER.fullmatch(name) and not name.startswith(kept)
            )  # fmt: skip


def _checked(made: dict[str, Any] | None, run: Path) -> dict[str, Any] | None:
    """Return what a record says of the current result; TypeError or the like if it is damaged."""
    if made is None:
        return None
    for name, stage in made["stages"].items():
        if not STAGE_FOLDER.fullmatch(f"{name}-{stage['key']}"):
            raise TypeError(name)
    return {**made, "asked": _found(made["asked"], run)}


def _is_unused(path: Path) -> bool:
    """Return whether a folder is empty, except for leftovers of an interrupted start."""
    return all(p.name in {LOCK, TABLE, STORE} or OWN.fullmatch(p.name) for p in path.iterdir())


def _versions() -> dict[str, str]:
    """Return the versions of vsgraph, Python, numpy and scipy."""
    import scipy

    return {
        "vsgraph": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the settings and choices that differ, each with both values.

    >>> changes({"settings": {"k": 5}}, {"settings": {"k": 3}})
    ['k (was 5, now 3)']
    """
    lines = []
    for part in ("reading", "settings", "choices"):
        old = before.get(part, {})
        for name, value in json.loads(json.dumps(now.get(part, {}), default=str)).items():
            if old.get(name, value) != value:
                was, is_now = ("not given" if v is None else v for v in (old[name], value))
                lines.append(f"{name} (was {was}, now {is_now})")
    return lines


def remember_path(path: Path, run: Path) -> dict[str, str]:
    """Return a path to record: absolute, and relative to the run in case both move."""
    absolute = path.resolve()
    if is_stored(absolute) or WorkingCopy.of(run) is not None:  # they do not move together
        return {"absolute": str(absolute), "from_run": str(absolute)}
    return {"absolute": str(absolute), "from_run": os.path.relpath(absolute, run.resolve())}


def remember_paths(values: Iterable[object], run: Path) -> list[dict[str, str]]:
    """Return those of some values that are files or folders, to record."""
    texts = [value for value in values if isinstance(value, str) and Path(value).is_absolute()]
    return [remember_path(Path(text), run) for text in texts if Path(text).exists()]


def _found(asked: dict[str, Any], run: Path) -> dict[str, Any]:
    """Return a request with its paths as they are now, if files were moved with the run."""
    now = {path["absolute"]: str(recall_path(path, run)) for path in asked.get("paths", ())}
    parts: dict[str, Any] = {
        part: {
            name: now.get(value, value) if isinstance(value, str) else value
            for name, value in asked[part].items()
        }
        for part in ("reading", "choices")
        if part in asked
    }
    return {**asked, **parts}


def recall_path(recorded: Mapping[str, str], run: Path) -> Path:
    """Return a recorded path: the absolute one if it exists, else the one relative to the run."""
    absolute = place(recorded["absolute"])
    if is_stored(absolute):
        return absolute
    relative = run.resolve() / recorded["from_run"]
    return absolute if absolute.exists() or not relative.exists() else relative.resolve()
