"""Small pictures for the report, each written once."""

from pathlib import Path

import numpy as np

from vsgraph.common.blocks import evenly_spread, in_threads
from vsgraph.crawls.crawl import Crawl
from vsgraph.pictures.opener import quiet_pillow, small_jpeg
from vsgraph.report.tallies import Rows

STEPS = ((128, 75), (128, 65), (112, 60), (96, 55), (80, 50), (64, 45))  # side, quality
SAMPLE = 64
BLOCK = 64


def write_pictures(
    folder: Path, crawl: Crawl, rows: Rows, *, most_bytes: int, progress: bool = False
) -> frozenset[int]:
    """Write a small JPEG of each picture, named by its row; return the rows that can be read.

    A sample chooses size and quality, for all files together to stay below `most_bytes`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with quiet_pillow():
        side, quality = _choose_step(crawl, rows, most_bytes)

        def write(part: Rows) -> list[int]:
            written = []
            for row, data in zip(part.tolist(), crawl.read_images(part), strict=True):
                jpeg = small_jpeg(data, side=side, quality=quality)
                if jpeg:
                    (folder / f"{row}.jpg").write_bytes(jpeg)
                    written.append(row)
            return written

        parts = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        blocks = list(in_threads(write, parts, title="pictures of the report", progress=progress))
    return frozenset(row for block in blocks for row in block)


def _choose_step(crawl: Crawl, rows: Rows, most_bytes: int) -> tuple[int, int]:
    """Return the largest side and quality at which the pictures fit, judged by a sample."""
    sample = rows[evenly_spread(len(rows), SAMPLE)]
    for side, quality in STEPS:
        small = (small_jpeg(d, side=side, quality=quality) for d in crawl.read_images(sample))
        sizes = [len(jpeg) for jpeg in small]
        if len(rows) * float(np.mean(sizes or [0])) <= most_bytes:
            break
    return side, quality
