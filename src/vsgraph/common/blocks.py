"""Work on large arrays one block of rows at a time, on all cores, or on the machines at work."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from vsgraph.common.progress import bar

Item = TypeVar("Item")
Result = TypeVar("Result")
Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # as the builtin map
Arrays = tuple[NDArray[Any], ...]
RowWork = Callable[[slice], Arrays]

BLOCK_BYTES = 16 * 2**20
_limit: list[int] = []  # of threads, if this process is one of several on its machine


class Machines(Protocol):
    """Machines that do the work of :func:`map_rows` and :func:`fill_rows` in their own processes.

    What they are given is copied to them, so `work` must return its results and change nothing.
    """

    def map_rows(
        self, work: RowWork, blocks: Sequence[slice], *, title: str, progress: bool
    ) -> Iterator[Arrays]:
        """Yield ``work(rows)`` of each block, in order."""
        ...

    def fill_rows(
        self, work: RowWork, blocks: Sequence[slice], *, title: str, progress: bool
    ) -> Arrays:
        """Return the results of all blocks joined, mapped from files."""
        ...

    def each(
        self, work: Callable[[Any], Any], items: Iterable[Any], name: Callable[[Any], str]
    ) -> Iterator[Any]:
        """Yield ``work(item)`` in order; `name` says which item it is if it fails."""
        ...


_at_work: ContextVar[Machines | None] = ContextVar("machines at work", default=None)


@contextmanager
def machines_at_work(machines: Machines | None) -> Iterator[None]:
    """Let some machines do the work on blocks of rows; threads of this block stay local."""
    former = _at_work.set(machines)
    try:
        yield
    finally:
        _at_work.reset(former)


def current_machines() -> Machines | None:
    """Return the machines that are at work, if not this one alone."""
    return _at_work.get()


def limit_threads(most: int) -> None:
    """Let this process use fewer threads than there are cores."""
    _limit[:] = [most]


def n_threads() -> int:
    """Return the number of cores this process may use."""
    if _limit:
        return _limit[0]
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def row_blocks(n_rows: int, *, row_bytes: int = 0, most: int = 2**14) -> list[slice]:
    """Cut rows into slices of at most `most` rows and about 16 MB.

    >>> row_blocks(5, most=2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, min(most, BLOCK_BYTES // max(row_bytes, 1)))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def evenly_spread(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` row numbers, evenly spread from the first row to the last.

    >>> evenly_spread(9, 3).tolist(), evenly_spread(2, 3).tolist(), evenly_spread(0, 3).tolist()
    ([0, 4, 8], [0, 1], [])
    """
    return np.linspace(0, n_rows - 1, min(most, n_rows)).astype(np.intp)


def in_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    title: str = "",
    progress: bool = False,
) -> Iterator[Result]:
    """Yield ``work(item)`` in order, one item per core at a time, each with one thread of BLAS.

    Few results wait at any time, so `work` may return large ones.

    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    with open_threads() as mapped, bar(len(items), title, progress=progress) as steps:
        for result in mapped(work, items):
            yield result
            steps.update()


def do_in_threads(
    work: Callable[[Item], None], items: Sequence[Item], *, title: str = "", progress: bool = False
) -> None:
    """Call ``work(item)`` for every item, one item per core at a time."""
    for _ in in_threads(work, items, title=title, progress=progress):
        pass


def map_rows(
    work: RowWork, blocks: Sequence[slice], *, title: str = "", progress: bool = False
) -> Iterator[Arrays]:
    """Yield ``work(rows)``, a tuple of arrays, of each block in order: in threads or on machines.

    >>> [double for double, in map_rows(lambda rows: (2 * np.arange(9)[rows],), [slice(2)])]
    [array([0, 2])]
    """
    machines = current_machines()
    if machines is None or len(blocks) < 2:
        return in_threads(work, blocks, title=title, progress=progress)
    return machines.map_rows(work, blocks, title=title, progress=progress)


def fill_rows(
    work: RowWork,
    blocks: Sequence[slice],
    *,
    into: Arrays | None = None,
    title: str = "",
    progress: bool = False,
) -> Arrays:
    """Return arrays whose rows are what ``work(rows)`` returns for each block.

    In threads, the rows of `into` are replaced if it is given. On machines, the result is mapped
    from files.

    >>> fill_rows(lambda rows: (2 * np.arange(4)[rows],), row_blocks(4, most=2))
    (array([0, 2, 4, 6]),)
    """
    machines = current_machines()
    if machines is not None and len(blocks) > 1:
        return machines.fill_rows(work, blocks, title=title, progress=progress)
    results = in_threads(work, blocks, title=title, progress=progress)
    for rows, parts in zip(blocks, results, strict=True):
        if into is None:
            shapes = ((blocks[-1].stop, *part.shape[1:]) for part in parts)
            into = tuple(map(np.empty, shapes, (part.dtype for part in parts)))
        for whole, part in zip(into, parts, strict=True):
            whole[rows] = part
    return into or ()


@contextmanager
def open_threads() -> Iterator[Mapped]:
    """Give a ``map`` that does the same as :func:`in_threads`, for repeated calls."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads()) as pool:

        def mapped(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
            rest = iter(items)
            waiting = [pool.submit(work, item) for item in islice(rest, 2 * n_threads())]
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(work, item) for item in islice(rest, 1)]

        yield mapped


def as_floats(block: NDArray[Any]) -> NDArray[Any]:
    """Return fp16 as float32 and other types unchanged."""
    return block.astype(np.float32) if block.dtype.itemsize < 4 else block


def row_lengths(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Euclidean length of every row, one block at a time.

    >>> row_lengths(np.array([[3.0, 4.0], [0.0, 0.0]], np.float16)).tolist()
    [5.0, 0.0]
    """

    def lengths(rows: slice) -> Arrays:
        block = array[rows].astype(np.float64)
        if array.dtype.itemsize <= 4:  # squares of single precision fit into double precision
            return (np.sqrt(np.einsum("ij,ij->i", block, block)),)
        largest = np.abs(block).max(axis=1)
        block /= np.where(largest > 0, largest, 1)[:, None]
        return (largest * np.sqrt(np.einsum("ij,ij->i", block, block)),)

    (result,) = fill_rows(lengths, row_blocks(len(array), row_bytes=8 * array.shape[1]))
    return result
