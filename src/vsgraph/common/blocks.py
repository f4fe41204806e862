"""Work on large arrays one block of rows at a time, on all cores."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from vsgraph.common.progress import bar

Item = TypeVar("Item")
Result = TypeVar("Result")
Mapped = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # as the builtin map

BLOCK_BYTES = 16 * 2**20


def n_threads() -> int:
    """Return the number of cores this process may use."""
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

    def lengths(rows: slice) -> NDArray[np.float64]:
        block = array[rows].astype(np.float64)
        if array.dtype.itemsize <= 4:  # squares of single precision fit into double precision
            return np.sqrt(np.einsum("ij,ij->i", block, block))
        largest = np.abs(block).max(axis=1)
        block /= np.where(largest > 0, largest, 1)[:, None]
        return largest * np.sqrt(np.einsum("ij,ij->i", block, block))

    blocks = row_blocks(len(array), row_bytes=8 * array.shape[1])
    return np.concatenate(list(in_threads(lengths, blocks)))
