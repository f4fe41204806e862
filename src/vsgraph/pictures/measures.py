"""What a picture looks like in a few numbers, and as a small gray square to find copies by.

All of it is measured on at most 256 pixels a side, so that a JPEG is decoded at reduced scale.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.pictures.decode import Pixels, decoder, read_picture, resize
from vsgraph.pictures.opener import read_header

MEASURES = (
    "width", "height", "bytes", "brightness", "dark_end", "spread", "sharpness", "page", "strokes",
)  # fmt: skip
SIDE = 32  # of the gray square
WIDTH = len(MEASURES) + SIDE * SIDE  # numbers of a picture
VERSION = f"measures 1, {SIDE}, {decoder()}"
LONGEST = 256
CELL = 16  # pixels
NEAR_PAGE = 16  # gray levels
CONTRAST = 64  # gray levels between letters and their page
GRAY = np.array([0.299, 0.587, 0.114], np.float32)

Gray = NDArray[np.floating[Any]]


@dataclasses.dataclass(frozen=True)
class Shrunk:
    """Pictures as they are, but small: none is enlarged, and their shape stays."""

    longest: int

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to scale a picture to."""
        scale = min(1.0, self.longest / max(height, width))
        return max(1, round(height * scale)), max(1, round(width * scale))

    def fit(self, pixels: Pixels) -> Pixels:
        """Scale to the final size."""
        height, width = self.before_crop(*pixels.shape[:2])
        return pixels if pixels.shape[:2] == (height, width) else resize(pixels, height, width)


def measure_picture(data: bytes) -> NDArray[np.float32]:
    """Return the measures of a picture file and its gray square, (WIDTH,).

    It is a PictureError if the file is empty, not a picture, too large, too small, or broken.
    """
    pixels = read_picture(data, Shrunk(LONGEST))
    header = read_header(data)
    gray = pixels.astype(np.float32) @ GRAY
    page, strokes = _page(gray)
    numbers = [
        header.width, header.height, len(data), gray.mean(), np.percentile(gray, 99), gray.std(),
        _sharpness(gray), page, strokes,
    ]  # fmt: skip
    square = resize(pixels, SIDE, SIDE).astype(np.float32) @ GRAY
    return np.concatenate([np.array(numbers, np.float32), square.ravel()])


def _sharpness(gray: Gray) -> float:
    """Return the energy of details over that of details twice as large, the least of two scales.

    Sharp photos have about as much of both, at whatever scale they are seen; a blurred one lacks
    the finer ones.
    """
    half = _halved(gray)
    energies = [_detail(scale) for scale in (gray, half, _halved(half))]
    return min(energies[0] / max(energies[1], 1.0), energies[1] / max(energies[2], 1.0))


def _detail(gray: Gray) -> float:
    """Return the mean square of the differences between neighboring pixels' differences."""
    if min(gray.shape) < 3:
        return 0.0
    middle = 4 * gray[1:-1, 1:-1]
    around = gray[:-2, 1:-1] + gray[2:, 1:-1] + gray[1:-1, :-2] + gray[1:-1, 2:]
    return float(np.square(middle - around).mean())


def _halved(gray: Gray) -> Gray:
    """Return a picture at half its size; an odd last row or column is left out."""
    height, width = (2 * (side // 2) for side in gray.shape)
    even = gray[:height, :width]
    return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4


def _page(gray: Gray) -> tuple[float, float]:
    """Return the share of plain background, and of cells where strokes stand on it.

    A page of text is mostly one gray level, and in many of its cells there are both that level and
    some that is far from it, as in no photo.
    """
    levels = np.bincount(gray.astype(np.uint8).ravel(), minlength=256)
    page = float(np.argmax(np.convolve(levels, np.ones(5), "same")))
    is_page = np.abs(gray - page) <= NEAR_PAGE
    is_ink = np.abs(gray - page) >= CONTRAST
    cells = [_cell_shares(mask) for mask in (is_page, is_ink)]
    written = (cells[0] >= 0.2) & (cells[1] >= 0.05) & (cells[0] + cells[1] >= 0.5)
    return float(is_page.mean()), float(written.mean())


def _cell_shares(mask: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the share of a mask in each cell of a grid."""
    rows, columns = (max(1, side // CELL) for side in mask.shape)
    part = mask[: rows * (mask.shape[0] // rows), : columns * (mask.shape[1] // columns)]
    return part.reshape(rows, mask.shape[0] // rows, columns, -1).mean(axis=(1, 3))
