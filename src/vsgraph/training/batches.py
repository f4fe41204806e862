"""Batches of pictures and labels, decoded in threads ahead of their use."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from vsgraph.common.blocks import n_threads
from vsgraph.crawls.crawl import Crawl
from vsgraph.pictures.decode import Fitting, Pixels, read_picture
from vsgraph.pictures.opener import PictureError

AHEAD = 3  # batches
CHUNK = 16  # pictures per task


class Batch(NamedTuple):
    """Pictures that could be read, and their rows in the crawl."""

    rows: NDArray[np.intp]
    pixels: Pixels
    problems: list[tuple[int, str, str]]


def epoch_order(rows: NDArray[np.intp], epoch: int, random_state: int) -> NDArray[np.intp]:
    """Return the images of an epoch in their random order.

    >>> rows = np.arange(4)
    >>> (epoch_order(rows, 1, 0) == epoch_order(rows, 1, 0)).all()
    np.True_
    """
    return np.random.default_rng([random_state, epoch]).permutation(rows)


def cut_batches(order: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    """Cut an epoch into batches of equal size; the last few images are left out.

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
    """Yield batches of rows in order, decoded in threads; `fittings` says how to fit each row."""
    waiting: deque[tuple[NDArray[np.intp], list[Future[list[Any]]]]] = deque()
    with ThreadPoolExecutor(n_threads()) as pool:
        try:
            for rows in batches:
                parts = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
                waiting.append((rows, [pool.submit(_read, crawl, p, fittings) for p in parts]))
                if len(waiting) > AHEAD:
                    yield _batch(*waiting.popleft())
            while waiting:
                yield _batch(*waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _read(crawl: Crawl, rows: NDArray[np.intp], fittings: Callable[[int], Fitting]) -> list[Any]:
    """Read and decode some pictures; the error takes the place of one that cannot be read."""
    pictures: list[Any] = []
    for row, data in zip(rows, crawl.read_images(rows), strict=True):
        try:
            pictures.append(read_picture(data, fittings(int(row))))
        except PictureError as error:
            pictures.append(error)
    return pictures


def _batch(rows: NDArray[np.intp], parts: list[Future[list[Any]]]) -> Batch:
    """Return the pictures that could be read, and the problems of the others."""
    pictures = [picture for part in parts for picture in part.result()]
    readable = [i for i, picture in enumerate(pictures) if not isinstance(picture, PictureError)]
    problems = [
        (int(row), picture.reason, picture.detail)
        for row, picture in zip(rows, pictures, strict=True)
        if isinstance(picture, PictureError)
    ]
    empty = np.zeros((0, 1, 1, 3), np.uint8)
    pixels = np.stack([pictures[i] for i in readable]) if readable else empty
    return Batch(rows[readable], pixels, problems)


def label_rows(labels: Any, rows: NDArray[np.intp]) -> NDArray[np.float32]:  # noqa: ANN401
    """Return the labels of some images as dense rows, from a sparse matrix or from scores."""
    part = labels[rows]
    return np.asarray(part.toarray() if issparse(part) else part, np.float32)
