"""Small pictures for the report: each written once, however hostile the file it is made from."""

import functools
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.common.blocks import in_threads
from vsgraph.crawls.crawl import Crawl
from vsgraph.pictures.decode import MOST_PIXELS
from vsgraph.report.groups import spread
from vsgraph.report.tallies import Rows

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF")
STEPS = ((128, 75), (128, 65), (112, 60), (96, 55), (80, 50), (64, 45))
SAMPLE = 64
MOST_DECODED = 5 * 10**7
BLOCK = 64
PAPER = (255, 255, 255)


def write_pictures(
    folder: Path, crawl: Crawl, rows: Rows, *, most_bytes: int, progress: bool = False
) -> frozenset[int]:
    """Write a small JPEG of each picture, named by its row.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    crawl : Crawl
        The pictures.
    rows : int array
        Which of them.
    most_bytes : int
        Together they shall be no larger: size and quality are chosen by a sample.
    progress : bool
        Show a progress bar.

    Returns
    -------
    written : frozenset of int
        Rows that have a file; the others cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, on files that are odd
        side, quality = _choose_step(crawl, rows, most_bytes)

        def work(part: Rows) -> list[int]:
            written = []
            for row, raw in zip(part.tolist(), crawl.read_images(part), strict=True):
                made = small_jpeg(raw, side=side, quality=quality)
                if made:
                    (folder / f"{row}.jpg").write_bytes(made)
                    written.append(row)
            return written

        parts = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        done = list(in_threads(work, parts, title="pictures of the report", progress=progress))
    return frozenset(row for part in done for row in part)


def _choose_step(crawl: Crawl, rows: Rows, most_bytes: int) -> tuple[int, int]:
    """Return the largest size and quality at which the pictures fit, judged by a sample."""
    raws = list(crawl.read_images(spread(rows, SAMPLE)))
    for side, quality in STEPS:
        sizes = [len(small_jpeg(raw, side=side, quality=quality)) for raw in raws]
        if len(rows) * float(np.mean(sizes or [0])) <= most_bytes:
            break
    return side, quality


def small_jpeg(raw: bytes, *, side: int, quality: int) -> bytes:
    """Return a picture's file as a small JPEG, nothing if it cannot be read.

    The first frame of an animation; turned as its EXIF data say; what is transparent is white.

    >>> small_jpeg(b"<html>", side=128, quality=80)
    b''
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(raw), formats=_formats()) as image:
            if image.width * image.height > MOST_PIXELS:
                return b""
            image.draft("RGB", (2 * side, 2 * side))
            if image.width * image.height > MOST_DECODED:
                return b""
            image.thumbnail((side, side), reducing_gap=2.0)
            upright = ImageOps.exif_transpose(image)
            buffer = io.BytesIO()
            _on_paper(upright).save(buffer, "JPEG", quality=quality, optimize=True)
    except Exception:  # noqa: BLE001  decoders raise anything on hostile files
        return b""
    return buffer.getvalue()


@functools.cache
def _formats() -> tuple[str, ...]:
    """Return the formats that may be decoded and that this Pillow knows."""
    from PIL import Image

    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _on_paper(image: Any) -> Any:  # noqa: ANN401
    """Return a picture in red, green and blue, white where it is transparent."""
    from PIL import Image

    if "A" in image.getbands() or "transparency" in image.info:
        clear = image.convert("RGBA")
        paper = Image.new("RGBA", clear.size, (*PAPER, 255))
        return Image.alpha_composite(paper, clear).convert("RGB")
    return image.convert("RGB")
