"""Whether the pictures of a crawl are there and can be read, without decoding them all."""

import dataclasses
import io
import os
import stat
import warnings

import numpy as np
from numpy.typing import NDArray

from vsgraph.crawls.crawl import Crawl, Fence
from vsgraph.pictures.decode import MOST_PIXELS

SAMPLE = 400


@dataclasses.dataclass(frozen=True)
class Pictures:
    """What was found.

    Attributes
    ----------
    missing : int array
        Rows whose file is not there, is empty, or lies outside the crawl's folder.
    n_bytes : int
        Size of the files together.
    sampled, unreadable : int
        How many pictures were decoded, and how many of them could not be.
    """

    missing: NDArray[np.intp]
    n_bytes: int
    sampled: int
    unreadable: int


def check_pictures(crawl: Crawl, *, sample: int | None = SAMPLE) -> Pictures:
    """Look whether every picture is there, and decode a sample of them.

    Parameters
    ----------
    crawl : Crawl
        Problems that are found are added to its own.
    sample : int, optional
        How many pictures to decode, spread over the crawl; None for all of them.

    Returns
    -------
    pictures : Pictures
        What was found.
    """
    sizes = crawl.table["size"].to_numpy() if crawl.has_shards else _file_sizes(crawl)
    there = np.flatnonzero(sizes > 0)
    step = 1 if sample is None else max(1, len(there) // max(1, sample))
    rows = there[::step] if sample is None else there[::step][:sample]
    unreadable = 0
    for row, raw in zip(rows, crawl.read_images(rows), strict=True):
        fault = fault_of(raw)
        if fault:
            unreadable += 1
            crawl.problems.add("picture that cannot be read", image_name(crawl, int(row)), fault)
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
        found = os.stat(os.path.join(crawl.root, name))  # noqa: PTH116, PTH118  a million times
    except (OSError, ValueError):
        crawl.problems.add("missing image", name)
        return 0
    if not fence.holds(name):
        crawl.problems.add("image path leads out of the folder", name)
        return 0
    if not stat.S_ISREG(found.st_mode):
        crawl.problems.add("missing image", name, "it is no file")
        return 0
    if found.st_size == 0:
        crawl.problems.add("empty file", name)
    return found.st_size


def fault_of(raw: bytes) -> str:
    """Return why a picture cannot be read, nothing if it can.

    >>> fault_of(b"<html>")
    'no picture format that is known'
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(raw)) as image:
                if image.width * image.height > MOST_PIXELS:
                    return f"{image.width} x {image.height} pixels are too many"
                image.draft("RGB", (64, 64))
                image.load()
    except UnidentifiedImageError:
        return "no picture format that is known"
    except Image.DecompressionBombError:
        return "too many pixels"
    except Exception as error:  # noqa: BLE001  decoders raise anything on hostile files
        return f"broken: {error}"
    return ""
