"""Results of work on blocks of rows as files, one per part, named by content and rows.

A pass is one function over all blocks. The key of its folder is a digest of the function and all
that it refers to, and the parts are the same however many machines there are. So a part that is
there need never be done again, and where it was done does not matter.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from vsgraph.common.blocks import Arrays, RowWork
from vsgraph.common.files import new_array, open_array, remove_folder, replaced_folder, whole_file
from vsgraph.common.formatting import say_span
from vsgraph.common.progress import bar
from vsgraph.errors import ClusterError

MOST_PARTS = 4096  # of a pass
ARRAYS, WHOLE = "arrays", "whole"


class Workers(Protocol):
    """Processes that do packed work, each item in one of them."""

    cpu_seconds: float  # that the work took until now, in all processes

    def pack(self, work: Callable[..., Any], folder: Path) -> tuple[bytes, str]:
        """Return work as bytes, and their key; `folder` is for large arrays."""
        ...

    def each(
        self, packed: bytes, key: str, items: Iterable[Any], name: Callable[[Any], str]
    ) -> Iterator[Any]:
        """Yield the result of each item, in order; `name` says which one it is if it fails."""
        ...


@dataclasses.dataclass(frozen=True)
class Part:
    """Blocks that are done together, and the folder of their results."""

    blocks: Sequence[slice]
    folder: Path

    @property
    def path(self) -> Path:
        """The file of their results."""
        return self.folder / f"{self.blocks[0].start:012d}-{self.blocks[-1].stop:012d}.npz"

    @property
    def name(self) -> str:
        """Which rows they are."""
        return f"rows {self.blocks[0].start} to {self.blocks[-1].stop - 1}"


@dataclasses.dataclass
class Parts:
    """Does the work of blocks of rows on workers; see :class:`vsgraph.common.blocks.Machines`."""

    workers: Workers
    folder: Path
    stage: str = "run"
    cpu_seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # of workers, by stage

    @contextmanager
    def doing(self, stage: str) -> Iterator[None]:
        """Put the files of a stage into a folder of their own, and count what it costs."""
        former = self.stage
        self._turn_to(stage)
        try:
            yield
        finally:
            self._turn_to(former)

    def _turn_to(self, stage: str) -> None:
        """Count what workers did until now for the stage before."""
        more = self.workers.cpu_seconds - sum(self.cpu_seconds.values())
        self.cpu_seconds[self.stage] = self.cpu_seconds.get(self.stage, 0) + more
        self.stage = stage

    def say_cost(self) -> str:
        """Return what the work has cost all machines together, most expensive stage first."""
        spent = sorted(((s, name) for name, s in self.cpu_seconds.items() if s > 0), reverse=True)
        stages = ", ".join(f"{name} {say_span(seconds)}" for seconds, name in spent)
        total = say_span(sum(self.cpu_seconds.values()))
        told = f"{stages or 'none was needed'}; without their start"
        return f"processor time of all workers: {total} ({told})"

    def drop(self, stage: str) -> None:
        """Remove the files of a stage that is finished; some may still be open over a network."""
        if (self.folder / stage).exists():
            with contextlib.suppress(OSError):
                remove_folder(self.folder / stage)

    def each(
        self, work: Callable[[Any], Any], items: Iterable[Any], name: Callable[[Any], str]
    ) -> Iterator[Any]:
        """Yield ``work(item)`` in order; results are small."""
        packed, key = self.workers.pack(work, self.folder / self.stage / ARRAYS)
        return self.workers.each(packed, key, items, lambda item: f"{name(item)} ({self.stage})")

    def map_rows(
        self, work: RowWork, blocks: Sequence[slice], *, title: str, progress: bool
    ) -> Iterator[Arrays]:
        """Yield ``work(rows)`` of each block, in order."""
        packed, key, parts = self._pass(work, blocks, title)
        return self._results(packed, key, parts, title, progress=progress)

    def fill_rows(
        self, work: RowWork, blocks: Sequence[slice], *, title: str, progress: bool
    ) -> Arrays:
        """Return the results of all blocks joined, mapped from files."""
        packed, key, parts = self._pass(work, blocks, title)
        whole = parts[0].folder / WHOLE
        if not whole.exists():
            results = self._results(packed, key, parts, title, progress=progress)
            with replaced_folder(whole) as fresh:
                _join(results, blocks, fresh)
            for part in parts:
                part.path.unlink(missing_ok=True)
        return tuple(map(open_array, sorted(whole.glob("*.npy"))))

    def _pass(
        self, work: RowWork, blocks: Sequence[slice], title: str
    ) -> tuple[bytes, str, list[Part]]:
        """Return the packed work of a pass, its key and its parts, which depend on that alone."""
        stage = self.folder / self.stage
        packed, key = self.workers.pack(functools.partial(make_part, work), stage / ARRAYS)
        words = (title or "rows").replace(" ", "-")
        folder = stage / f"{words}-{key}-{len(blocks)}-{blocks[-1].stop}"
        folder.mkdir(parents=True, exist_ok=True)
        size = -(-len(blocks) // MOST_PARTS)
        groups = [blocks[i : i + size] for i in range(0, len(blocks), size)]
        return packed, key, [Part(group, folder) for group in groups]

    def _results(
        self, packed: bytes, key: str, parts: Sequence[Part], title: str, *, progress: bool
    ) -> Iterator[Arrays]:
        """Yield the results of all blocks, in order; parts that are missing are done first."""
        there = set(parts[0].folder.iterdir())
        missing = [part for part in parts if part.path not in there]
        say = f"{self.stage}, {title}" if title else self.stage
        done = self.workers.each(packed, key, missing, lambda part: f"{part.name} ({say})")
        with bar(sum(len(part.blocks) for part in parts), title, progress=progress) as steps:
            for part in parts:
                if part.path not in there:
                    next(done)
                yield from _read(part)
                steps.update(len(part.blocks))


def make_part(work: RowWork, part: Part) -> None:
    """Do the blocks of a part, and write their results to its file; called by workers."""
    results = [work(rows) for rows in part.blocks]
    arrays = {f"{i}-{j}": a for i, result in enumerate(results) for j, a in enumerate(result)}
    with whole_file(part.path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _read(part: Part) -> Iterator[Arrays]:
    """Yield the results of the blocks of a part."""
    try:
        with part.path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = [name.split("-")[0] for name in arrays.files]
            for i in range(len(part.blocks)):
                yield tuple(arrays[f"{i}-{j}"] for j in range(names.count(str(i))))
    except Exception as error:  # zip files raise many kinds of errors when they are damaged
        part.path.unlink(missing_ok=True)
        raise ClusterError(f"{part.path} is damaged; start again to repeat its rows") from error


def _join(results: Iterable[Arrays], blocks: Sequence[slice], folder: Path) -> None:
    """Write results one after the other into one array per kind."""
    files: list[Any] = []
    for rows, parts in zip(blocks, results, strict=True):
        if not files:
            files = [
                new_array(folder / f"{j:02d}.npy", part.dtype, (blocks[-1].stop, *part.shape[1:]))
                for j, part in enumerate(parts)
            ]
        for file, part in zip(files, parts, strict=True):
            file[rows] = part
    for file in files:
        file.flush()
