"""Batches of pictures and labels, decoded in threads a few batches ahead."""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from vsgraph.common.blocks import n_threads
from vsgraph.crawls.crawl import Crawl
from vsgraph.pictures.decode import Fitting, PictureError, Pixels, read_picture
from vsgraph.training.crops import RandomCrop

AHEAD = 3  # batches
CHUNK = 16  # pictures a task


class Batch(NamedTuple):
    """Pictures that could be read, and their rows in the crawl."""

    rows: NDArray[np.intp]
    pixels: Pixels
    problems: list[tuple[int, str, str]]


@dataclasses.dataclass(frozen=True)
class Crops:
    """Which crop an image gets in an epoch."""

    height: int
    width: int
    smallest: float
    flip: bool
    random_state: int

    def of(self, row: int, epoch: int) -> Fitting:
        """Draw the crop of an image."""
        return RandomCrop.draw(
            self.height, self.width, smallest=self.smallest, flip=self.flip,
            seed=(self.random_state, epoch, row),
        )  # fmt: skip


def epoch_order(rows: NDArray[np.intp], epoch: int, random_state: int) -> NDArray[np.intp]:
    """Return the images of an epoch in the order in which they are seen.

    >>> rows = np.arange(4)
    >>> (epoch_order(rows, 1, 0) == epoch_order(rows, 1, 0)).all()
    np.True_
    """
    return np.random.default_rng([random_state, epoch]).permutation(rows)


def cut_batches(order: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    """Cut an epoch into batches of one size; the few images left over wait for another epoch.

    >>> [len(batch) for batch in cut_batches(np.arange(10), 4)]
    [4, 4]
    >>> [len(batch) for batch in cut_batches(np.arange(3), 4)]
    [3]
    """
    n = max(1, len(order) // size)
    return np.split(order[: n * size], n) if len(order) >= size else [order]


def read_batches(
    crawl: Crawl,
    batches: list[NDArray[np.intp]],
    fittings: Callable[[int], Fitting],
) -> Iterator[Batch]:
    """Yield batches in order, read and decoded in threads.

    Parameters
    ----------
    crawl : Crawl
        Pictures in folders or tar shards.
    batches : list of int arrays
        Rows of each.
    fittings : callable
        Takes a row and returns how its picture is prepared.
    """
    waiting: deque[tuple[NDArray[np.intp], list[Future[list[Any]]]]] = deque()
    rest = iter(batches)
    with ThreadPoolExecutor(n_threads()) as pool:

        def fill() -> None:
            while len(waiting) < AHEAD:
                rows = next(rest, None)
                if rows is None:
                    return
                parts = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
                waiting.append((rows, [pool.submit(_read, crawl, p, fittings) for p in parts]))

        try:
            fill()
            while waiting:
                rows, parts = waiting.popleft()
                found = [one for part in parts for one in part.result()]
                fill()
                yield _batch(rows, found)
        finally:
            pool.shutdown(cancel_futures=True)


def _read(crawl: Crawl, rows: NDArray[np.intp], fittings: Callable[[int], Fitting]) -> list[Any]:
    """Read and decode some pictures; what cannot be is an error in its place."""
    found: list[Any] = []
    for row, data in zip(rows, crawl.read_images(rows), strict=True):
        try:
            found.append(read_picture(data, fittings(int(row))))
        except PictureError as error:
            found.append(error)
    return found


def _batch(rows: NDArray[np.intp], found: list[Any]) -> Batch:
    """Put together what could be read."""
    fine = [i for i, one in enumerate(found) if not isinstance(one, PictureError)]
    problems = [
        (int(row), one.reason, one.detail)
        for row, one in zip(rows, found, strict=True)
        if isinstance(one, PictureError)
    ]
    pixels = np.stack([found[i] for i in fine]) if fine else np.zeros((0, 1, 1, 3), np.uint8)
    return Batch(rows[fine], pixels, problems)


def label_rows(labels: Any, rows: NDArray[np.intp]) -> NDArray[np.float32]:  # noqa: ANN401
    """Return labels of some images as dense rows, from a sparse matrix or from scores."""
    found = labels[rows]
    return np.asarray(found.toarray() if issparse(found) else found, np.float32)
