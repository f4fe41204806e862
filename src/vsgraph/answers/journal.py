"""The journal of a reviewer: one line of JSON per answered picture, only ever appended to.

An answer is on disk when :meth:`Journal.add` returns. A process that is killed leaves at most one
line that is cut off: readers leave it out, and the next writer removes it. Several processes may
write to one journal, each holding a lock for the moment of its write. Answers are about pictures by
their content, so that they survive a crawl that moved, grew or was read in another order.
"""

import contextlib
import datetime as dt
import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from vsgraph.common.files import file_errors, wait_for_lock
from vsgraph.common.regular import open_regular
from vsgraph.crawls.texts import plain_name
from vsgraph.errors import InputError

ENDING = ".jsonl"
TEACH, AUDIT = "teach", "audit"
MICROSECOND = dt.timedelta(microseconds=1)
YEAR = dt.timedelta(days=365)
LONGEST_NAME = 60
TAIL = 2**16  # bytes that are read at once from the end of a journal


@dataclass(frozen=True)
class Answer:
    """What a person says that a picture shows."""

    picture: str  # its key, see vsgraph.answers.merged.picture_keys
    image: str  # its name at that time, for people
    old: tuple[str, ...]  # its labels at that time, for people
    new: tuple[str, ...]  # the classes that it shows; empty for none of them
    who: str = ""
    when: str = ""  # in UTC, as 2026-11-18T03:40:12.123456Z
    batch: str = ""  # answers given at once, which are undone at once
    purpose: str = TEACH  # or AUDIT

    def to_line(self) -> dict[str, Any]:
        """Return the values of its line in a journal."""
        return {
            "who": self.who, "when": self.when, "picture": self.picture, "image": self.image,
            "old": list(self.old), "new": list(self.new), "batch": self.batch, "for": self.purpose,
        }  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A batch of answers that is taken back, or given again."""

    who: str
    when: str
    batch: str
    is_undo: bool

    def to_line(self) -> dict[str, Any]:
        """Return the values of its line in a journal."""
        kind = "undo" if self.is_undo else "redo"
        return {"who": self.who, "when": self.when, kind: self.batch}


Entry = Answer | Change


def journal_path(folder: Path, reviewer: str) -> Path:
    """Return the file of a reviewer, by a name that is safe in every file system.

    >>> journal_path(Path("answers"), "Ann / Smith").name
    'Ann_Smith.jsonl'
    """
    name = re.sub(r"[^\w.-]+", "_", reviewer).strip("._-")[:LONGEST_NAME]
    if not name:
        raise InputError(f"{reviewer!r} is no name of a reviewer; use letters or digits")
    return folder / f"{name}{ENDING}"


class Journal:
    """One reviewer's journal, to write to."""

    def __init__(self, path: Path, reviewer: str) -> None:
        self.path, self.reviewer = path, plain_name(reviewer)
        self.written: Callable[[], None] = lambda: None  # called when entries are on disk

    @classmethod
    @file_errors()
    def open(cls, folder: Path, reviewer: str) -> "Journal":
        """Open the journal of a reviewer in a folder, ``RUN/answers``, or begin it."""
        path = journal_path(folder, reviewer)
        is_new = not path.exists()
        folder.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if is_new:
            for parent in (folder, folder.parent):  # so that the name is on disk as well
                _sync_folder(parent)
        return cls(path, reviewer)

    def add(self, answers: Sequence[Answer], *, batch: str | None = None) -> str:
        """Write answers; they are on disk when the name of their batch is returned."""
        name = batch or f"b-{secrets.token_hex(4)}"
        who = self.reviewer
        self._append(lambda t: [replace(a, who=who, when=t, batch=name) for a in answers])
        return name

    def undo(self, batch: str) -> None:
        """Take back all answers of a batch."""
        self._append(lambda when: [Change(self.reviewer, when, batch, is_undo=True)])

    def redo(self, batch: str) -> None:
        """Give the answers of a batch again that were taken back."""
        self._append(lambda when: [Change(self.reviewer, when, batch, is_undo=False)])

    def copy(self, entries: Iterable[Entry]) -> None:
        """Write entries of another journal as they are, with their own names and times."""
        self._append(lambda _: list(entries))

    def close(self) -> None:
        """End writing; each write has ended by itself already."""

    def _append(self, make: Callable[[str], Sequence[Entry]]) -> None:
        """Write entries made for a time that is later than all before; all of them or none."""
        with file_errors(self.path), self.path.open("ab+", buffering=0) as file:
            wait_for_lock(file)  # closing the file ends it
            entries = make(_next_time(_mend_end(file)))
            size = file.seek(0, os.SEEK_END)
            try:
                _write_all(file.fileno(), "".join(map(_line, entries)).encode())
            except OSError:
                with contextlib.suppress(OSError):  # what the disk did not take as a whole
                    file.truncate(size)
                raise
        self.written()


def _line(entry: Entry) -> str:
    """Return the line of an entry."""
    return json.dumps(entry.to_line(), ensure_ascii=False) + "\n"


def _write_all(handle: int, data: bytes) -> None:
    """Write bytes and wait until they are on disk; OSError if there is no room for all."""
    if os.write(handle, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mend_end(file: IO[bytes]) -> Entry | None:
    """Return the last entry of a journal; remove a line after it that was cut off."""
    size = file.seek(0, os.SEEK_END)
    start, tail = size, b""
    while start > 0 and tail.count(b"\n") < 2:
        step = min(start, TAIL)
        start -= step
        file.seek(start)
        tail = file.read(step) + tail
    whole, _, rest = tail.rpartition(b"\n")
    entry = _parsed(rest)
    if rest and entry:  # complete, but for its end: someone edited the file
        file.write(b"\n")
        return entry
    if rest:
        file.truncate(size - len(rest))
    return _parsed(whole.rpartition(b"\n")[2])


def _next_time(last: Entry | None) -> str:
    """Return the time now, or just after the last entry if that is later."""
    now = dt.datetime.now(dt.UTC)
    if last is not None:
        now = max(now, time_of(last) + MICROSECOND)
    return f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"


def time_of(entry: Entry) -> dt.datetime:
    """Return when an entry was written."""
    when = dt.datetime.fromisoformat(entry.when)
    return when.astimezone(dt.UTC) if when.tzinfo else when.replace(tzinfo=dt.UTC)


def read_journal(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the entries of a journal; lines that are none are added to the problems."""
    with file_errors(path), open_regular(path) as file:
        for number, line in enumerate(file, 1):
            entry = _parsed(line)
            if entry is not None:
                yield entry
            elif not line.endswith(b"\n"):
                problems.append(f"{path}: its last line is cut off and is left out")
            elif line.strip():
                problems.append(f"{path}, line {number}: not a line of a journal, left out")


def _parsed(line: bytes) -> Entry | None:
    """Return the entry of a line, None if it is none."""
    try:
        values = json.loads(line)
        entry = _entry(values)
        time_of(entry) + YEAR  # a time, and not among the last ones there are
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return entry


def _entry(values: dict[str, Any]) -> Entry:
    """Return the entry with some values; ValueError, KeyError or TypeError if it is none."""
    who, when = _text(values["who"]), _text(values["when"])
    for kind in ("undo", "redo"):
        if kind in values:
            return Change(who, when, _text(values[kind]), is_undo=kind == "undo")
    purpose = values.get("for", TEACH)
    if purpose not in {TEACH, AUDIT}:
        raise ValueError(purpose)
    return Answer(
        _text(values["picture"]), _text(values["image"]), _texts(values.get("old", [])),
        _texts(values["new"]), who, when, _text(values["batch"]), purpose,
    )  # fmt: skip


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()  # half of a pair of surrogates is no text
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(values)
    return tuple(map(_text, values))
