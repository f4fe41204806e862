"""Picture files to pixels: fast where files are plain, careful where they are not.

A JPEG is decoded at the smallest scale that still covers the size asked for (by simplejpeg and
OpenCV where they are installed, else by Pillow); everything else goes through Pillow. Sizes are
read from the header and refused before any pixel is decoded.
"""

import dataclasses
import importlib.util
import io
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Pixels = NDArray[np.uint8]

MOST_PIXELS = 89_478_485  # 256 MB of RGB; Pillow warns from here on
MIN_SIDE = 8
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "PPM")  # none that runs programs
ORIENTATION = 0x0112


class PictureError(Exception):
    """A picture that cannot be used: a reason to count by, and what was found.

    >>> print(PictureError("too large", "65000 x 65000 pixels"))
    too large: 65000 x 65000 pixels
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Fitting(Protocol):
    """What :func:`read_picture` must know of how a picture is to become pixels of one size."""

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the least height and width to decode a picture of some size to."""
        ...

    def fit(self, pixels: Pixels) -> Pixels:
        """Return pixels of the size asked for."""
        ...


@dataclasses.dataclass(frozen=True)
class Preparation:
    """How a picture becomes pixels of one size.

    Attributes
    ----------
    height, width : int
        Size of the result.
    crop : float, optional
        Scale the shorter side to size / crop and cut the middle out; None squeezes the whole
        picture into the size, so that nothing at the edge is lost.

    Examples
    --------
    >>> Preparation(224, 224).describe()
    'squeeze 224x224'
    """

    height: int
    width: int
    crop: float | None = None

    def describe(self) -> str:
        """Say it in words, without the program that decodes."""
        how = "squeeze" if self.crop is None else f"crop {self.crop:g}"
        return f"{how} {self.height}x{self.width}"

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to scale a picture to, before anything is cut off."""
        if self.crop is None:
            return self.height, self.width
        scale = max(self.height / height, self.width / width) / self.crop
        return max(self.height, round(height * scale)), max(self.width, round(width * scale))

    def fit(self, pixels: Pixels) -> Pixels:
        """Scale to the size asked for, and cut the middle out where that is asked for."""
        height, width = self.before_crop(*pixels.shape[:2])
        scaled = pixels if pixels.shape[:2] == (height, width) else resize(pixels, height, width)
        top, left = (height - self.height) // 2, (width - self.width) // 2
        return scaled[top : top + self.height, left : left + self.width]


@cache
def decoder() -> str:
    """Return what decodes here; vectors of different decoders are never mixed.

    >>> decoder() in {"simplejpeg, OpenCV", "Pillow"}
    True
    """
    fast = all(importlib.util.find_spec(name) for name in ("simplejpeg", "cv2"))
    return "simplejpeg, OpenCV" if fast else "Pillow"


def read_picture(data: bytes, preparation: Fitting) -> Pixels:
    """Return the pixels of a picture file's bytes, upright, RGB, of the size asked for.

    Transparent pictures are laid on white, animated ones give their first frame, 16-bit ones are
    brought to 8 bits.

    Parameters
    ----------
    data : bytes
        The file as it is.
    preparation : Preparation
        The size, and how to get there; or a random crop, when training.

    Returns
    -------
    array of shape (height, width, 3), uint8

    Raises
    ------
    PictureError
        With the reason: missing or empty, not a picture, too large, too small, broken.
    """
    if not data:
        raise PictureError("picture missing or empty")
    try:
        pixels = _fast_jpeg(data, preparation) if data[:3] == b"\xff\xd8\xff" else None
        if pixels is None:
            pixels = _by_pillow(data, preparation)
    except PictureError:
        raise
    except Exception as error:
        raise PictureError("picture broken", f"{type(error).__name__}: {error}"[:200]) from error
    return preparation.fit(pixels)


def _check_size(height: int, width: int) -> None:
    """Refuse bombs and specks by the size in the header."""
    if height * width > MOST_PIXELS:
        raise PictureError("picture too large", f"{width} x {height} pixels")
    if min(height, width) < MIN_SIDE:
        raise PictureError("picture too small", f"{width} x {height} pixels")


def _fast_jpeg(data: bytes, preparation: Fitting) -> Pixels | None:
    """Decode a plain JPEG at reduced scale; None where Pillow should look at it."""
    if decoder() == "Pillow":
        return None
    import simplejpeg

    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(data)
        _check_size(height, width)
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
    """Return the EXIF orientation of a JPEG, 1 where there is none."""
    start = data.find(b"Exif\x00\x00", 0, 4096)
    if start < 4:
        return 1
    length = int.from_bytes(data[start - 2 : start], "big")
    exif = Image.Exif()
    try:
        exif.load(data[start : start - 2 + length])
        found = exif.get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001  broken EXIF is no reason to lose a picture
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Turn and mirror as EXIF says."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in {2, 3, 6, 7}:
        pixels = pixels[:, ::-1]
    if orientation in {3, 4, 7, 8}:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _by_pillow(data: bytes, preparation: Fitting) -> Pixels:
    """Decode anything else that is a picture."""
    image = _open(data)
    width, height = image.size
    _check_size(height, width)
    if image.format == "JPEG":
        longest = max(preparation.before_crop(height, width))
        image.draft(None, (longest, longest))
    image.load()
    upright = ImageOps.exif_transpose(image)
    return np.asarray(_as_rgb(upright if upright is not None else image))


def _open(data: bytes) -> Image.Image:
    """Read the header only, with one of the formats that the web uses."""
    Image.init()
    for name in FORMATS:
        factory, accept = Image.OPEN.get(name, (None, None))
        if factory is None or (accept is not None and accept(data[:16]) is not True):
            continue
        try:
            return factory(io.BytesIO(data), "")
        except SyntaxError:
            continue
    head = data[:512].lstrip().lower()
    page = head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml", b"<svg"))
    raise PictureError("not a picture", "a web page or drawing in text" if page else "")


def _as_rgb(image: Image.Image) -> Image.Image:
    """Return the colors as 8-bit RGB, on white where transparent."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in image.info:
        whole = image.convert("RGBA")
        white = Image.new("RGBA", whole.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, whole).convert("RGB")
    return image.convert("RGB")


def _eight_bits(levels: NDArray[Any]) -> Pixels:
    """Bring 16-bit or float levels to 0..255."""
    if levels.dtype.kind in "iu":
        return np.clip(levels // 256, 0, 255).astype(np.uint8)
    finite = np.nan_to_num(levels.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    top = finite.max()
    return np.clip(finite * (255 / top if top > 255 or 0 < top <= 1 else 1), 0, 255).astype(
        np.uint8
    )


def resize(pixels: Pixels, height: int, width: int) -> Pixels:
    """Scale by area when shrinking, by cubic curves when growing."""
    if decoder() == "Pillow":
        cubic = Image.Resampling.BICUBIC
        return np.asarray(Image.fromarray(pixels).resize((width, height), cubic, reducing_gap=2.0))
    import cv2

    shrinks = height <= pixels.shape[0] and width <= pixels.shape[1]
    way = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    return cv2.resize(pixels, (width, height), interpolation=way)
