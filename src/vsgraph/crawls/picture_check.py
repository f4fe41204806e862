"""Whether the pictures of a crawl exist and can be read, without decoding all of them."""

import dataclasses
import os
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import Crawl, Fence
from vsgraph.pictures.decode import quiet_decoders, why_unreadable
from vsgraph.pictures.opener import MISSING

SAMPLE = 400


@dataclasses.dataclass(frozen=True)
class Pictures:
    """How many pictures exist and can be read."""

    missing: NDArray[np.intp]  # rows whose file is missing, empty, or outside the crawl's folder
    n_bytes: int  # of all files together
    sampled: int  # pictures that were decoded
    unreadable: int  # of those


def check_pictures(crawl: Crawl, *, sample: int | None = SAMPLE) -> Pictures:
    """Check that every picture exists, and decode a sample of them, or all if it is None.

    Problems are added to the crawl's own, under the same names as when its pictures are encoded.
    """
    sizes = crawl.table["size"].to_numpy() if crawl.has_shards else _file_sizes(crawl)
    present = np.flatnonzero(sizes > 0)
    rows = present if sample is None else present[evenly_spread(len(present), sample)]
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
    """Return the size of each file, (n_images,); 0, with a problem added, if it is unusable."""
    fence, root = Fence(crawl.root), crawl.root if is_stored(crawl.root) else str(crawl.root)
    names = (
        name
        for batch in crawl.table.select(["image"]).to_batches(8192)
        for name in batch.column(0).to_pylist()
    )
    return np.fromiter(
        (_file_size(crawl, fence, root, name) for name in names), np.int64, len(crawl)
    )


def _file_size(crawl: Crawl, fence: Fence, root: str | Path, name: str) -> int:
    """Return the size of a file; 0, with a problem added, if it is unusable."""
    try:
        # a million times
        status = os.stat(f"{root}/{name}") if isinstance(root, str) else (root / name).stat()  # noqa: PTH116
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
