"""Progress, all of one kind: a bar on a terminal or in a notebook, lines anywhere else."""

import importlib.util
import sys
import time
from typing import Any, Self

from tqdm import tqdm

from vsgraph.common.formatting import say_span

PAUSE = 10.0  # seconds between two lines


class Lines:
    """Progress as a line every ten seconds, for pipes and log files."""

    def __init__(self, total: int | None, title: str) -> None:
        self.total, self.title, self.done, self.skipped = total, title, 0, 0
        self.started = self.told = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, n: int = 1) -> None:
        """Count steps; print a line if the last one is long ago."""
        self.done += n
        now = time.monotonic()
        if now - self.told >= PAUSE:
            self.told = now
            print(f"{self.title}: {self._said(now)}", file=sys.stderr, flush=True)  # noqa: T201

    def _said(self, now: float) -> str:
        """Return how far it is, and how long the rest will take."""
        took, n_new = now - self.started, self.done - self.skipped
        if not self.total:
            return f"{self.done:,} steps, {say_span(took)}"
        left = f", about {say_span(took / n_new * (self.total - self.done))} left" if n_new else ""
        return f"{self.done:,} of {self.total:,} ({self.done / self.total:.0%}){left}"

    def unpause(self) -> None:
        """Take what was counted so far as done before, and start the clock."""
        self.skipped, self.started = self.done, time.monotonic()

    def set_postfix(self, *_: object, **__: object) -> None:
        """Do nothing: only bars show more."""

    def close(self) -> None:
        """Do nothing: the lines stay."""


def bar(
    total: int | None = None, title: str = "", unit: str = "it", *, progress: bool = False
) -> "tqdm[Any] | Lines":
    """Return a progress bar, lines in a pipe; nothing shows unless `progress`.

    >>> with bar(2, "pictures", "image") as steps:
    ...     steps.update()
    """
    kind: Any = tqdm
    if progress and in_notebook():
        if importlib.util.find_spec("ipywidgets"):
            from tqdm.notebook import tqdm as kind
    elif progress and not sys.stderr.isatty():
        return Lines(total, title)
    return kind(total=total, desc=title, unit=unit, disable=not progress, leave=False)


def in_notebook() -> bool:
    """Return whether a notebook's kernel runs this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
