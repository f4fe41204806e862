"""Random crops of pictures, the same ones if a training is repeated or resumed."""

import dataclasses
import math
from typing import Self

import numpy as np

from vsgraph.pictures.decode import Pixels, resize

RATIOS = (3 / 4, 4 / 3)  # of width to height


@dataclasses.dataclass(frozen=True)
class RandomCrop:
    """A part of a picture, scaled to a fixed size and perhaps mirrored.

    >>> RandomCrop(32, 32, area=0.25, ratio=1.0, down=0.5, right=0.0).box(100, 100)
    (25, 0, 50, 50)
    """

    height: int  # of the result
    width: int
    area: float  # share of the picture
    ratio: float  # width divided by height of the part
    down: float  # 0 at the top, 1 at the bottom
    right: float  # 0 at the left, 1 at the right
    mirrored: bool = False

    @classmethod
    def draw(cls, height: int, width: int, *, smallest: float, seed: tuple[int, ...]) -> Self:
        """Draw a crop that depends only on the seed; half of them are mirrored."""
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        area, ratio, down, right, side = random.uniform(size=5)
        low, high = np.log(RATIOS)
        return cls(
            height, width, smallest + (1 - smallest) * area,
            math.exp(low + (high - low) * ratio), down, right, side < 0.5,
        )  # fmt: skip

    def box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return top, left, height and width of the part, given the size of the picture."""
        size = self.area * height * width
        tall = min(height, max(1, round(math.sqrt(size / self.ratio))))
        wide = min(width, max(1, round(math.sqrt(size * self.ratio))))
        return round(self.down * (height - tall)), round(self.right * (width - wide)), tall, wide

    def before_crop(self, height: int, width: int) -> tuple[int, int]:
        """Return the smallest height and width to decode a picture to."""
        _, _, tall, wide = self.box(height, width)
        scale = min(1.0, max(self.height / tall, self.width / wide))
        return math.ceil(scale * height), math.ceil(scale * width)

    def fit(self, pixels: Pixels) -> Pixels:
        """Cut out the part, scale it and perhaps mirror it."""
        top, left, tall, wide = self.box(*pixels.shape[:2])
        part = pixels[top : top + tall, left : left + wide]
        scaled = resize(np.ascontiguousarray(part), self.height, self.width)
        return scaled[:, ::-1] if self.mirrored else scaled
