"""A run in an object store: worked on in a folder of this machine, published from there.

The working folder lies in the cache, by the address of the run. Finished stages never change, so
they are fetched when they are needed and uploaded when they are made. ``run.json`` goes up last,
in one step: readers find the old result or the new one. In ``.store`` is the address, and what was
last seen of each small file there.
"""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.answers.journal import ENDING
from vsgraph.common.files import lock, replaced_folder, wait_for_lock, write_whole
from vsgraph.common.store_files import (
    get_file,
    get_folder,
    put_file,
    put_folder,
    remove_file,
    remove_folder,
    state_of,
)
from vsgraph.common.stores import StorePath, is_stored, place
from vsgraph.encoders.runtimes.models import cache_folder
from vsgraph.errors import InputError, StoreError
from vsgraph.runs.names import ANSWERS, LOCK, PAGE, RECORD, STAGE_RECORD, STAGES, STORE, TABLE

ADDRESS = "address"
SMALL = ("meanings.csv", "meanings-before.csv", TABLE, PAGE)


def local_path(path: str | Path, *, create: bool = False) -> Path:
    """Return the folder of a run on this machine; for an address, its working folder, renewed."""
    found = place(path)
    if not isinstance(found, StorePath):
        return found
    name = hashlib.blake2b(str(found).encode(), digest_size=6).hexdigest()
    copy = WorkingCopy(cache_folder() / "runs" / f"{found.name}-{name}", found)
    copy.renew(create=create)
    return copy.path


@dataclasses.dataclass(frozen=True)
class WorkingCopy:
    """The folder on this machine of a run in a store."""

    path: Path
    address: StorePath

    @classmethod
    def of(cls, path: Path) -> "WorkingCopy | None":
        """Return the working copy in a folder, None if it is a run of its own."""
        mark = path / STORE / ADDRESS
        if is_stored(path) or not mark.exists():
            return None
        found = place(mark.read_text(encoding="utf-8").strip())
        return cls(path, found) if isinstance(found, StorePath) else None

    def renew(self, *, create: bool) -> None:
        """Take over what is new in the store: the record, the small files, the answers."""
        names = {path.name for path in self.address.iterdir()}
        if RECORD not in names:
            if not create or not names <= {TABLE}:
                raise InputError(f"{self.address} is not a run of vsgraph: it has no {RECORD}")
            self._begin()
        self._mark().mkdir(parents=True, exist_ok=True)
        write_whole(self._mark() / ADDRESS, f"{self.address}\n")
        for name in SMALL:
            if name not in names and self._seen(name):  # removed there
                (self.path / name).unlink(missing_ok=True)
                self._state(name).unlink()
        answers = self.address / ANSWERS
        journals = [p.name for p in answers.iterdir()] if ANSWERS in names else []
        found = [f"{ANSWERS}/{n}" for n in journals if n.endswith(ENDING)]
        for name in [*found, *(name for name in SMALL if name in names)]:
            self._pull(name)
        if RECORD in names:  # one that never went up does not count
            self._pull(RECORD, anyway=self._is_changed(RECORD))

    def _begin(self) -> None:
        """Empty the folder: in the store there is no run, or none any more."""
        if self.path.exists():
            with lock(self.path / LOCK):
                shutil.rmtree(self.path)
        self.path.mkdir(parents=True)

    def _mark(self) -> Path:
        return self.path / STORE

    def _state(self, name: str) -> Path:
        """Return the file that says what was last seen of a file in the store."""
        return self._mark() / f"{name.replace('/', '_')}.json"

    def _seen(self, name: str) -> dict[str, str]:
        try:
            return json.loads(self._state(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def _note(self, name: str, state: str | None) -> None:
        """Remember a file as it is here and in the store now."""
        seen = {"store": state or "", "here": _digest(self.path / name)}
        write_whole(self._state(name), json.dumps(seen))

    def _is_changed(self, name: str) -> bool:
        """Return whether a file was changed here since it was last the same in the store."""
        path = self.path / name
        return path.exists() and _digest(path) != self._seen(name).get("here")

    def _pull(self, name: str, *, anyway: bool = False) -> None:
        """Fetch a small file if it is new in the store."""
        state, target = state_of(self.address / name), self.path / name
        is_known = state == self._seen(name).get("store") and target.exists()
        if state is None or (is_known and not anyway):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(ANSWERS) and target.exists():
            _add_lines(target, (self.address / name).read_bytes())
        else:
            get_file(self.address / name, target)
        self._note(name, state)

    def push(self, name: str) -> None:
        """Upload a small file; a journal that grew in the store meanwhile is joined first."""
        if name.startswith(ANSWERS):
            self._pull(name)
        put_file(self.path / name, self.address / name)
        self._note(name, state_of(self.address / name))

    def publish(self) -> None:
        """Upload every small file that changed here, the record last."""
        journals = [f"{ANSWERS}/{p.name}" for p in (self.path / ANSWERS).glob(f"*{ENDING}")]
        for name in (*SMALL, *journals):
            if self._is_changed(name):
                self.push(name)
        if self._seen(PAGE) and not (self.path / PAGE).exists():
            remove_file(self.address / PAGE)
            self._state(PAGE).unlink()
        if self._is_changed(RECORD):
            if (state_of(self.address / RECORD) or "") != self._seen(RECORD).get("store", ""):
                raise StoreError(
                    f"{self.address / RECORD} was changed by another process meanwhile; what is "
                    "finished is kept: start again to go on from there"
                )
            self.push(RECORD)

    def stage_record(self, name: str) -> str | None:
        """Return the record of a finished stage in the store, None if there is none."""
        try:
            return (self.address / STAGES / name / STAGE_RECORD).read_text()
        except FileNotFoundError:
            return None

    def fetch_stage(self, name: str) -> None:
        """Fetch the folder of a stage, if it is not here and the store has it."""
        target = self.path / STAGES / name
        if (target / STAGE_RECORD).exists() or self.stage_record(name) is None:
            return
        with self._alone():
            if not (target / STAGE_RECORD).exists():
                with replaced_folder(target) as folder:
                    get_folder(self.address / STAGES / name, folder)

    def publish_stage(self, name: str) -> None:
        """Upload the folder of a finished stage, if the store does not have it."""
        folder = self.path / STAGES / name
        if (folder / STAGE_RECORD).exists() and self.stage_record(name) is None:
            put_folder(folder, self.address / STAGES / name, last=STAGE_RECORD)

    def stages(self) -> list[str]:
        """Return the names of the stages in the store, also of those that are not whole."""
        return [path.name for path in place(self.address / STAGES).iterdir()]

    def remove_stages(self, names: Iterable[str]) -> None:
        """Remove stages from the store."""
        for name in names:
            remove_folder(self.address / STAGES / name, first=STAGE_RECORD)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process of this machine fetches stages of this run."""
        with (self._mark() / "lock").open("w") as file:
            wait_for_lock(file)
            yield


def _add_lines(journal: Path, other: bytes) -> None:
    """Add the lines of another copy of a journal that this one lacks; entries have times."""
    with journal.open("rb+") as file:
        wait_for_lock(file)
        own = file.read()
        known = set(own.splitlines())
        new = [line for line in other.splitlines() if line not in known]
        if new:
            start = b"" if not own or own.endswith(b"\n") else b"\n"
            file.write(start + b"\n".join(new) + b"\n")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
