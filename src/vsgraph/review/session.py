"""A review in progress: the current result of a run, and the answers of all reviewers."""

import functools
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.answers import AUDIT, TEACH, Answer, Answers, picture_keys, read_answers
from vsgraph.answers.journal import ENDING, read_journal
from vsgraph.errors import InputError
from vsgraph.report.tallies import Rows
from vsgraph.result.parts import NONE, UNANSWERED
from vsgraph.review.view import View
from vsgraph.runs import Run
from vsgraph.runs.folder import RunFolder
from vsgraph.runs.names import RECORD

MOST_BATCHES = 4096  # remembered, so that a batch that is sent twice is written once


class PictureIndex:
    """Finds the key of a row's picture, and the rows of a picture by its key."""

    def __init__(self, view: View) -> None:
        self.images = view.crawl.table["image"]
        embedding = view.run.outputs.pictures()
        self.keys = None if embedding is None else embedding.keys
        self._by_name: dict[str, list[int]] | None = None

    @functools.cached_property
    def _sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        """The first bytes of every key, in order, and the row of each."""
        heads = np.ascontiguousarray(self.keys[:, :8]).view(np.uint64).ravel()  # type: ignore[index]
        order = np.argsort(heads, kind="stable")
        return heads[order], order

    def of_rows(self, rows: Rows) -> list[str]:
        """Return the keys of the pictures of some rows."""
        names = self.images.take(rows).to_pylist()
        keys = None if self.keys is None else np.asarray(self.keys[rows])
        return list(picture_keys(names, keys))

    def rows(self, picture: str) -> list[int]:
        """Return the rows of a picture."""
        if self.keys is None or ":" in picture:
            return self._named(picture.partition(":")[2])
        try:
            head = np.frombuffer(bytes.fromhex(picture)[:8], np.uint64)
        except ValueError:
            return []
        if not len(head):
            return []
        heads, order = self._sorted
        near = order[np.searchsorted(heads, head[0]) : np.searchsorted(heads, head[0], "right")]
        return [row for row in near.tolist() if self.keys[row].tobytes().hex() == picture]

    def _named(self, name: str) -> list[int]:
        if self._by_name is None:
            self._by_name = {}
            for row, image in enumerate(self.images.to_pylist()):
                self._by_name.setdefault(image, []).append(row)
        return self._by_name.get(name, [])


class Session:
    """What one reviewer's server holds; safe to use from several threads."""

    def __init__(self, path: Path, reviewer: str) -> None:
        self.path = path
        run = RunFolder.open(path)
        self.folder, self.journal = run.answers, run.journal(reviewer)
        self.reviewer = self.journal.reviewer
        self._lock = threading.RLock()
        own = (entry.batch for entry in read_journal(self.journal.path, []))
        self._batches = deque(own, MOST_BATCHES)
        self._record: object = None
        self.n_written = 0  # changes with every answer that teaches
        self.answers: Answers = read_answers(self.folder)
        self._signature: dict[str, object] | None = None
        self.view: View
        self.refresh()

    def refresh(self, *, fully: bool = False) -> View:
        """Read the result and the answers again if they changed; return the result.

        The reviewer's own answers are known already, unless `fully`.
        """
        with self._lock:
            record = _stamp(self.path / RECORD)
            if record != self._record:
                self.view = View(Run.open(self.path))
                self.index = PictureIndex(self.view)
                self._record, self._signature = record, None
            signature = self._journals(but_own=not fully)
            if self._signature is None or not signature.items() <= self._signature.items():
                self._read()
            return self.view

    def _journals(self, *, but_own: bool = False) -> dict[str, object]:
        """Return the state of each journal's file."""
        paths = self.folder.glob(f"*{ENDING}")
        return {p.name: _stamp(p) for p in paths if not (but_own and p == self.journal.path)}

    def _read(self) -> None:
        """Read the answers of all reviewers."""
        self._signature = self._journals()
        before = {picture: answer.new for picture, answer in self.answers.given.items()}
        self.answers = read_answers(self.folder)
        self.n_written += before != {p: answer.new for p, answer in self.answers.given.items()}
        self.labels = np.full(len(self.view), UNANSWERED, np.intp)
        numbers = {name: number for number, name in enumerate(self.view.names)}
        for picture, answer in self.answers.given.items():
            self._put(self.index.rows(picture), answer, numbers)
        rows = [row for c in self.answers.conflicts for row in self.index.rows(c.picture)]
        self.conflicts = np.array(sorted(rows), np.intp)

    def _put(self, rows: Iterable[int], answer: Answer, numbers: dict[str, int]) -> None:
        """Note the answer to some rows: the first class named, or none."""
        known = [numbers[name] for name in answer.new if name in numbers]
        if known or not answer.new:
            self.labels[list(rows)] = known[0] if known else NONE

    def answer(
        self, rows: Rows, new: Sequence[tuple[str, ...]], *, batch: str, purpose: str = TEACH
    ) -> int:
        """Write what images show, one entry of `new` per row; they are on disk on return."""
        if purpose not in {TEACH, AUDIT}:
            raise InputError(f"an answer is to {TEACH} or to {AUDIT}, got {purpose!r:.40}")
        with self._lock:
            if batch in self._batches:
                return 0
            keys = self.index.of_rows(rows)
            names = self.index.images.take(rows).to_pylist()
            given: dict[str, Answer] = {}
            for row, key, name, shown in zip(rows.tolist(), keys, names, new, strict=True):
                old = self.view.final_names(row)
                given.setdefault(key, Answer(key, name, old, shown, purpose=purpose))
            self.journal.add(list(given.values()), batch=batch)
            self._batches.append(batch)
            self._note(given, batch)
            return len(given)

    def _note(self, given: dict[str, Answer], batch: str) -> None:
        """Take over answers that were just written, without reading all journals again."""
        numbers = {name: number for number, name in enumerate(self.view.names)}
        for picture, answer in given.items():
            own = Answer(
                picture, answer.image, answer.old, answer.new, self.reviewer, "", batch,
                answer.purpose,
            )  # fmt: skip
            if answer.purpose == AUDIT:
                self.answers.audit[picture] = own
            else:
                self.n_written += 1
                self.answers.given[picture] = own
                self._put(self.index.rows(picture), own, numbers)

    def undo(self, batch: str, *, again: bool = False) -> None:
        """Take back the reviewer's answers of a batch, or give them again."""
        with self._lock:
            (self.journal.redo if again else self.journal.undo)(batch)
            self._read()

    def said(self, rows: Rows) -> list[Answer | None]:
        """Return the answer that counts for each of some rows."""
        with self._lock:
            return [self.answers.given.get(key) for key in self.index.of_rows(rows)]

    def unanswered(self, rows: Rows) -> Rows:
        """Return those of some rows that have no answer; all of them if each has one."""
        with self._lock:
            still = rows[self.labels[rows] == UNANSWERED]
        return still if len(still) else rows

    def answered_labels(self) -> NDArray[np.intp]:
        """Return a copy of the answers by row."""
        with self._lock:
            return self.labels.copy()


def _stamp(path: Path) -> object:
    """Return what changes when a file does."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
