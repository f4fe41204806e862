"""The one way to open a picture file.

Only the formats in `FORMATS` are tried, none of which can start a program, and the size in the
header is checked before any pixel is decoded. Pillow's warnings about odd files are not caught
here, because catching them is not safe in threads: callers do it once, with :func:`quiet_pillow`.
"""

import io
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vsgraph.common.regular import open_regular

Reason = Literal[
    "picture missing or empty",
    "not a picture",
    "picture too large",
    "picture too small",
    "picture broken",
]

MISSING: Reason = "picture missing or empty"
MOST_PIXELS = 89_478_485  # 256 MB of RGB
MANY_PIXELS = 4_000_000
LARGE_AT_ONCE = threading.BoundedSemaphore(2)
STRIP = 256  # rows of a picture
MOST_BYTES = 2**28  # of a picture file; what follows is not read
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "PPM")
SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tif"}  # MPO: several pictures in one JPEG
WEB_PAGE = (b"<!doctype html", b"<html", b"<head", b"<?xml", b"<svg")


class PictureError(Exception):
    """A picture that cannot be used: the reason, by which such pictures are counted, and a detail.

    >>> print(PictureError("picture too large", "65000 x 65000 pixels"))
    picture too large: 65000 x 65000 pixels
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason: str = reason
        self.detail = detail


class Header(NamedTuple):
    """The suffix that fits a picture file, and its size."""

    suffix: str
    width: int
    height: int


def open_picture(source: bytes | IO[bytes]) -> Image.Image:
    """Open a picture without decoding its pixels; PictureError if it cannot be used."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    head = file.read(512)
    if not head:
        raise PictureError(MISSING)
    with picture_errors():
        image = _first_that_fits(file, head)
    check_size(*image.size)
    return image


def _first_that_fits(file: IO[bytes], head: bytes) -> Image.Image:
    """Open a file as the first format that recognizes it."""
    Image.init()
    for name in FORMATS:
        factory, accepts = Image.OPEN.get(name, (None, None))
        if factory is None or (accepts is not None and accepts(head[:16]) is not True):
            continue
        file.seek(0)
        try:
            return factory(file, "")
        except SyntaxError:  # how Pillow says that it is another format
            continue
    is_page = head.lstrip().lower().startswith(WEB_PAGE)
    raise PictureError("not a picture", "a web page or drawing in text" if is_page else "")


def check_size(width: int, height: int) -> None:
    """Refuse a picture whose pixels would fill the memory."""
    if height * width > MOST_PIXELS:
        raise PictureError("picture too large", f"{width} x {height} pixels")


@contextmanager
def picture_errors() -> Iterator[None]:
    """Turn any error of a decoder into a PictureError."""
    try:
        yield
    except PictureError:
        raise
    except Exception as error:
        raise PictureError("picture broken", f"{type(error).__name__}: {error}"[:200]) from error


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Hide Pillow's warnings about odd files."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def read_header(source: Path | bytes) -> Header:
    """Return the suffix and size in the header of a picture; PictureError if it cannot be read."""
    try:
        with open_regular(source) if isinstance(source, Path) else io.BytesIO(source) as file:
            image = open_picture(file)
            kind = str(image.format)
            return Header(SUFFIXES.get(kind, f".{kind.lower()}"), *image.size)
    except (OSError, ValueError) as error:
        raise PictureError(MISSING) from error


def small_jpeg(data: bytes, *, side: int, quality: int) -> bytes:
    """Return a picture as a small JPEG, upright, on white; empty if it cannot be read."""
    buffer = io.BytesIO()
    try:
        with picture_errors(), decoding(open_picture(data)) as found:
            image = as_rgb(upright(found, (2 * side, 2 * side)))
            image.thumbnail((side, side), reducing_gap=2.0)
            image.save(buffer, "JPEG", quality=quality, optimize=True)
    except PictureError:
        return b""
    return buffer.getvalue()


@contextmanager
def decoding(image: Image.Image) -> Iterator[Image.Image]:
    """Let only a few large pictures be in memory at a time, however many threads there are."""
    with LARGE_AT_ONCE if math.prod(image.size) > MANY_PIXELS else nullcontext():
        yield image


def upright(image: Image.Image, least: tuple[int, int]) -> Image.Image:
    """Decode a picture, upright; a JPEG at the smallest scale that covers a size."""
    if image.format == "JPEG":
        image.draft(None, least)
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    return image


def rgb_pixels(image: Image.Image) -> NDArray[np.uint8]:
    """Return a decoded picture as 8-bit RGB, (height, width, 3), one strip at a time."""
    width, height = image.size
    if image.mode.startswith(("I", "F")):  # their levels are scaled by the highest of all
        return np.asarray(as_rgb(image))
    pixels = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, STRIP):
        bottom = min(top + STRIP, height)
        pixels[top:bottom] = np.asarray(as_rgb(image.crop((0, top, width, bottom))))
    return pixels


def as_rgb(image: Image.Image) -> Image.Image:
    """Return a picture as 8-bit RGB, laid on white if it is transparent."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in image.info:
        whole = image.convert("RGBA")
        white = Image.new("RGBA", whole.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, whole).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _eight_bits(levels: NDArray[Any]) -> NDArray[np.uint8]:
    """Scale 16-bit or float levels to 0..255."""
    if levels.dtype.kind in "iu":
        return np.clip(levels // 256, 0, 255).astype(np.uint8)
    finite = np.nan_to_num(levels.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    top = finite.max()
    scale = 255 / top if top > 255 or 0 < top <= 1 else 1
    return np.clip(finite * scale, 0, 255).astype(np.uint8)
