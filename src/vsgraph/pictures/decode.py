"""Picture files to pixels of one size.

A JPEG is decoded at the smallest scale that covers the wanted size, by simplejpeg and OpenCV if
they are installed, else by Pillow. All other files go through Pillow.
"""

import dataclasses
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vsgraph.pictures.opener import (
    PictureError,
    check_size,
    decoding,
    open_picture,
    picture_errors,
    quiet_pillow,
    rgb_pixels,
    upright,
)

Pixels = NDArray[np.uint8]

MIN_SIDE = 8
ORIENTATION = 0x0112  # the EXIF tag


class Fitting(Protocol):
    """A way to prepare pictures: :class:`Preparation`, or the random crops of training."""

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the least height and width to decode a picture of this size to."""
        ...

    def fit(self, pixels: Pixels) -> Pixels:
        """Return pixels of the final size."""
        ...


@dataclasses.dataclass(frozen=True)
class Preparation:
    """How a picture becomes pixels of one size.

    With `crop`, the shorter side is scaled to size / crop and the middle is cut out. Otherwise the
    whole picture is squeezed into the size, and nothing at the edge is lost.

    >>> Preparation(224, 224).describe()
    'squeeze 224x224'
    """

    height: int
    width: int
    crop: float | None = None

    def describe(self) -> str:
        """Return it in words."""
        how = "squeeze" if self.crop is None else f"crop {self.crop:g}"
        return f"{how} {self.height}x{self.width}"

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to scale a picture to, before anything is cut off."""
        if self.crop is None:
            return self.height, self.width
        scale = max(self.height / height, self.width / width) / self.crop
        return max(self.height, round(height * scale)), max(self.width, round(width * scale))

    def fit(self, pixels: Pixels) -> Pixels:
        """Scale to the final size, and cut out the middle if there is a crop."""
        height, width = self.before_crop(*pixels.shape[:2])
        scaled = pixels if pixels.shape[:2] == (height, width) else resize(pixels, height, width)
        top, left = (height - self.height) // 2, (width - self.width) // 2
        return scaled[top : top + self.height, left : left + self.width]


@cache
def decoder() -> str:
    """Return the name of the decoder in use; vectors of different decoders are never mixed."""
    fast = all(importlib.util.find_spec(name) for name in ("simplejpeg", "cv2"))
    return "simplejpeg, OpenCV" if fast else "Pillow"


def read_picture(data: bytes, preparation: Fitting) -> Pixels:
    """Return the pixels of a picture file: upright, RGB, uint8 (height, width, 3).

    Transparent pictures are laid on white, animated ones give their first frame, 16-bit ones are
    reduced to 8 bits. It is a PictureError if the file is empty, not a picture, too large, too
    small, or broken.
    """
    with picture_errors():
        pixels = _fast_jpeg(data, preparation) if data[:3] == b"\xff\xd8\xff" else None
        if pixels is None:
            return _by_pillow(open_picture(data), preparation)
    return preparation.fit(pixels)


def _by_pillow(image: Image.Image, preparation: Fitting) -> Pixels:
    """Decode any picture, and fit it before another large one may take its room."""
    width, height = image.size
    _check_side(width, height)
    longest = max(preparation.before_crop(height, width))
    with decoding(image):
        return preparation.fit(rgb_pixels(upright(image, (longest, longest))))


def why_unreadable(data: bytes) -> PictureError | None:
    """Return the error that keeps a picture from being encoded, None if there is none."""
    try:
        read_picture(data, Preparation(64, 64))
    except PictureError as error:
        return error
    return None


def _check_side(width: int, height: int) -> None:
    """Refuse a picture too small to show anything."""
    if min(height, width) < MIN_SIDE:
        raise PictureError("picture too small", f"{width} x {height} pixels")


def _fast_jpeg(data: bytes, preparation: Fitting) -> Pixels | None:
    """Decode a plain JPEG at reduced scale; None if Pillow should try it."""
    if decoder() == "Pillow":
        return None
    import simplejpeg

    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(data)
        check_size(width, height)
        _check_side(width, height)
        if colors not in {"YCbCr", "Gray"}:
            return None
        orientation = _orientation(data)
        sides = (width, height) if orientation >= 5 else (height, width)
        target = preparation.before_crop(*sides)
        least = target[::-1] if orientation >= 5 else target
        pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=least[0], min_width=least[1])
    except ValueError:  # what this decoder refuses, Pillow may still read
        return None
    return _upright(pixels, orientation)


def _orientation(data: bytes) -> int:
    """Return the EXIF orientation of a JPEG, 1 if it has none."""
    start = data.find(b"Exif\x00\x00", 0, 4096)
    if start < 4:
        return 1
    length = int.from_bytes(data[start - 2 : start], "big")
    exif = Image.Exif()
    try:
        exif.load(data[start : start - 2 + length])
        orientation = exif.get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001  broken EXIF is no reason to lose a picture
        return 1
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Rotate and mirror as EXIF says."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in {2, 3, 6, 7}:
        pixels = pixels[:, ::-1]
    if orientation in {3, 4, 7, 8}:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def resize(pixels: Pixels, height: int, width: int) -> Pixels:
    """Scale pixels, by area if they shrink, else by cubic interpolation."""
    if decoder() == "Pillow":
        cubic = Image.Resampling.BICUBIC
        return np.asarray(Image.fromarray(pixels).resize((width, height), cubic, reducing_gap=2.0))
    import cv2

    shrinks = height <= pixels.shape[0] and width <= pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    return cv2.resize(pixels, (width, height), interpolation=method)


@contextmanager
def quiet_decoders() -> Iterator[None]:
    """Hide Pillow's warnings, and keep OpenCV from starting threads beside ours."""
    with quiet_pillow(), ExitStack() as stack:
        if decoder() != "Pillow":
            import cv2

            stack.callback(cv2.setNumThreads, cv2.getNumThreads())
            cv2.setNumThreads(1)
        yield
