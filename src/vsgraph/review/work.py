"""Work in the background: solving again, and trying out another meaning."""

import dataclasses
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from vsgraph.errors import InputError, VSGraphError
from vsgraph.meanings.senses import Meaning
from vsgraph.review.changes import Changes, find_changes
from vsgraph.review.senses import copy_run, write_choice
from vsgraph.review.session import Session
from vsgraph.review.view import View
from vsgraph.runs import Run
from vsgraph.runs.outputs import TABLE

MOST_LINES = 40
LEARN, TRY, APPLY = "learn", "try", "apply"


@dataclasses.dataclass
class Work:
    """What is being done, or was done last."""

    kind: str
    title: str
    number: int  # counts the works of this server
    lines: deque[str] = dataclasses.field(default_factory=lambda: deque(maxlen=MOST_LINES))
    is_done: bool = False
    error: str = ""
    changes: Changes | None = None


class Worker:
    """Does one work at a time, each in a process of its own, so that its memory is given back."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.work: Work | None = None
        self._lock = threading.Lock()

    def learn(self) -> Work:
        """Solve the run again with all answers."""
        return self._start(LEARN, "Learning from the answers", self._solve)

    def try_meaning(self, chosen: Meaning) -> Work:
        """Find out what another meaning would change; the run stays as it is."""

        def attempt(work: Work, before: View) -> None:
            with tempfile.TemporaryDirectory(prefix="vsgraph-try-") as name:
                folder = Path(name)
                copy_run(before, folder)
                write_choice(before, chosen, folder / TABLE)
                _correct(work, folder, "--no-report")
                after = Run.open(folder).found
                work.changes = find_changes(before.correction, after)

        return self._start(TRY, f"Trying out: {chosen.description:.80}", attempt)

    def apply_meaning(self, chosen: Meaning) -> Work:
        """Write another meaning into the run's table and solve the run again."""

        def apply(work: Work, before: View) -> None:
            write_choice(before, chosen, self.session.path / TABLE)
            self._solve(work, before)

        return self._start(APPLY, f"Applying: {chosen.description:.80}", apply)

    def _solve(self, work: Work, before: View) -> None:
        """Correct the run again, and compare."""
        _correct(work, self.session.path)
        after = self.session.refresh(fully=True)
        answered = self.session.answered_labels() >= -1
        work.changes = find_changes(before.correction, after.correction, but=answered)

    def _start(self, kind: str, title: str, do: Callable[[Work, View], None]) -> Work:
        """Begin a work in a thread; refuse it while another one is under way."""
        with self._lock:
            if self.work is not None and not self.work.is_done:
                raise InputError(f"wait until this is done: {self.work.title}")
            number = self.work.number + 1 if self.work else 1
            work = self.work = Work(kind, title, number)
        before = self.session.refresh()

        def run() -> None:
            try:
                do(work, before)
            except (VSGraphError, OSError) as error:
                work.error = str(error)
            finally:
                work.is_done = True

        threading.Thread(target=run, name=f"work-{number}", daemon=True).start()
        return work


def _correct(work: Work, folder: Path, *options: str) -> None:
    """Run ``vsgraph correct`` on a run, and note the lines that it prints."""
    command = [sys.executable, "-m", "vsgraph", "correct", "-o", str(folder), *options]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(  # noqa: S603  our own command, without a shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            text=True, encoding="utf-8", errors="replace",
        ) as process,
    ):  # fmt: skip
        for line in process.stdout or ():
            work.lines.append(line.rstrip()[:300])
        if process.wait() != 0:
            errors.seek(0)
            last = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise InputError(last[-1].removeprefix("Error: ") if last else "vsgraph correct failed")
