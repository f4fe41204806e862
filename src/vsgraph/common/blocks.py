"""Work on large arrays a block of rows at a time, on all cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

Item = TypeVar("Item")
Result = TypeVar("Result")

BLOCK_BYTES = 16 * 2**20


def n_threads() -> int:
    """Return the number of cores this process may use.

    >>> n_threads() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def row_blocks(n_rows: int, *, row_bytes: int = 0, most: int = 2**14) -> list[slice]:
    """Cut rows into slices of at most so many rows and some 16 MB.

    >>> row_blocks(5, most=2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, min(most, BLOCK_BYTES // max(row_bytes, 1)))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def evenly_spread(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return at most so many row numbers, evenly spread from the first row to the last.

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
    """Yield ``work(item)`` in order, one item a core at a time, each with one thread of BLAS.

    Few results wait at any time, so what `work` returns may be large. A bar is shown on a terminal.

    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    bar = tqdm(total=len(items), desc=title, disable=None if progress else True, leave=False)
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads()) as pool, bar:
        rest = iter(items)
        waiting = [pool.submit(work, item) for item in islice(rest, 2 * n_threads())]
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(work, item) for item in islice(rest, 1)]
            bar.update()


def do_in_threads(
    work: Callable[[Item], None],
    items: Sequence[Item],
    *,
    title: str = "",
    progress: bool = False,
) -> None:
    """Call ``work(item)`` for every item, one item a core at a time.

    >>> seen = []
    >>> do_in_threads(seen.append, [1, 2])
    >>> sorted(seen)
    [1, 2]
    """
    for _ in in_threads(work, items, title=title, progress=progress):
        pass


@contextmanager
def open_threads() -> Iterator[Callable[..., Iterator[Any]]]:
    """Give a ``map`` that works on all cores, for work that comes again and again.

    >>> with open_threads() as mapped:
    ...     list(mapped(abs, [-1, 2]))
    [1, 2]
    """
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads()) as pool:
        yield pool.map


def as_floats(block: NDArray[Any]) -> NDArray[Any]:
    """Return a block that can be calculated with: fp16 becomes float32, the rest stays.

    >>> as_floats(np.ones((1, 1), np.float16)).dtype
    dtype('float32')
    """
    return block.astype(np.float32) if block.dtype.itemsize < 4 else block


def row_lengths(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Euclidean length of every row, a block at a time.

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
