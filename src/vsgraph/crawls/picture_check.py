"""Whether the pictures of a crawl are there and can be read, without decoding them all."""

import dataclasses
import os
import stat

import numpy as np
from numpy.typing import NDArray

from vsgraph.crawls.crawl import Crawl, Fence
from vsgraph.pictures.decode import quiet_decoders, why_unreadable
from vsgraph.pictures.opener import MISSING

SAMPLE = 400


@dataclasses.dataclass(frozen=True)
class Pictures:
    """How many pictures are there and can be read.

    Attributes
    ----------
    missing : int array
        Rows whose file is missing, is empty, or lies outside the crawl's folder.
    n_bytes : int
        Size of all files together.
    sampled, unreadable : int
        How many pictures were decoded, and how many of them could not be.
    """

    missing: NDArray[np.intp]
    n_bytes: int
    sampled: int
    unreadable: int


def check_pictures(crawl: Crawl, *, sample: int | None = SAMPLE) -> Pictures:
    """Check that every picture is there, and decode a sample of them.

    Parameters
    ----------
    crawl : Crawl
        Problems are added to its own, by the same reasons as when its pictures are encoded.
    sample : int, optional
        How many pictures to decode, spread over the crawl; None for all of them.

    Returns
    -------
    pictures : Pictures
        How many are missing or unreadable.
    """
    sizes = crawl.table["size"].to_numpy() if crawl.has_shards else _file_sizes(crawl)
    present = np.flatnonzero(sizes > 0)
    step = 1 if sample is None else max(1, len(present) // max(1, sample))
    rows = present[::step] if sample is None else present[::step][:sample]
    unreadable = 0
    with quiet_decoders():
        for row, data in zip(rows, crawl.read_images(rows), strict=True):
            error = why_unreadable(data)
            if error is not None:
                unreadable += 1
                crawl.problems.add(error.reason, image_name(crawl, int(row)), error.detail)
    return Pictures(np.flatnonzero(sizes <= 0), int(sizes.sum()), len(rows), unreadable)


def image_name(crawl: Crawl, row: int) -> str:
    """Return the name of a picture, for messages."""
    return str(crawl.table["image"][row].as_py())


def _file_sizes(crawl: Crawl) -> NDArray[np.int64]:
    """Return the size of each file, 0 and a problem where there is none."""
    fence = Fence(crawl.root)
    sizes = np.zeros(len(crawl), np.int64)
    row = 0
    for batch in crawl.table.select(["image"]).to_batches(8192):
        for name in batch.column(0).to_pylist():
            sizes[row] = _file_size(crawl, fence, name)
            row += 1
    return sizes


def _file_size(crawl: Crawl, fence: Fence, name: str) -> int:
    """Return the size of a file, 0 and a problem where there is none."""
    try:
        status = os.stat(os.path.join(crawl.root, name))  # noqa: PTH116, PTH118  a million times
    except (OSError, ValueError):
        crawl.problems.add(MISSING, name, "no such file")
        return 0
    if not fence.holds(name):
        crawl.problems.add("image path leads out of the folder", name)
        return 0
    if not stat.S_ISREG(status.st_mode):
        crawl.problems.add(MISSING, name, "not a file")
        return 0
    if status.st_size == 0:
        crawl.problems.add(MISSING, name, "an empty file")
    return status.st_size
