"""Small procedural pictures of things whose names have several meanings.

Every function draws one thing on a 64 x 64 canvas around ``(x, y)`` at size ``r``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIZE = 64
Artist = Callable[["ImageDraw", float, float, float], None]


def draw_picture(artist: Artist, random: np.random.Generator) -> NDArray[np.uint8]:
    """Draw one thing somewhere on a noisy background; returns a (64, 64, 3) array."""
    from PIL import Image, ImageDraw

    shade = random.integers(120, 245, 3)
    noise = random.normal(shade, 10, (SIZE, SIZE, 3))
    canvas = Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8))
    x, y = random.normal(SIZE / 2, 4, 2)
    artist(ImageDraw.Draw(canvas), float(x), float(y), float(random.uniform(17, 24)))
    grain = random.normal(0, 7, (SIZE, SIZE, 3))
    return np.clip(np.asarray(canvas) + grain, 0, 255).astype(np.uint8)


def _disc(
    draw: "ImageDraw", center: tuple[float, float], radii: tuple[float, float], fill: str
) -> None:
    """Draw an ellipse."""
    (x, y), (a, b) = center, radii
    draw.ellipse([x - a, y - b, x + a, y + b], fill=fill)


def drum_sticks(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw two crossed sticks with round tips."""
    for side in (-1, 1):
        draw.line([x - side * r, y + r, x + side * r, y - r], fill="#8a5a2b", width=4)
        _disc(draw, (x + side * r, y - r), (4, 4), "#c08a4f")


def chicken_leg(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a roast leg of chicken with its bone."""
    draw.line([x, y, x + r, y + r], fill="#fff5e0", width=6)
    _disc(draw, (x + r, y + r), (4, 4), "#fff5e0")
    _disc(draw, (x - r * 0.3, y - r * 0.3), (r * 0.75, r * 0.6), "#a5521d")


def computer_mouse(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a computer mouse with wheel and cable."""
    draw.line([x, y - r, x + r * 0.6, y - 2 * r], fill="#222222", width=2)
    _disc(draw, (x, y), (r * 0.6, r), "#303438")
    draw.line([x, y - r, x, y - r * 0.2], fill="#9aa0a6", width=2)
    _disc(draw, (x, y - r * 0.5), (2, 4), "#e0e0e0")


def field_mouse(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw the animal, with round ears and a long tail."""
    draw.arc([x, y - r * 0.5, x + 2 * r, y + r], 20, 170, fill="#c58f86", width=3)
    _disc(draw, (x, y), (r, r * 0.6), "#8d7a66")
    for ear in (-0.75, -0.35):
        _disc(draw, (x + ear * r, y - r * 0.6), (r * 0.25, r * 0.25), "#d7a79e")
    _disc(draw, (x - r * 0.75, y - 1), (2, 2), "#000000")


def flying_bat(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw the animal with spread wings."""
    for side in (-1, 1):
        wing = [(0, 0), (1.3, -0.8), (1.2, 0.1), (0.8, -0.1), (0.6, 0.4), (0.3, 0.1), (0, 0.5)]
        draw.polygon([(x + side * r * a, y + r * b) for a, b in wing], fill="#2b2230")
    _disc(draw, (x, y), (r * 0.25, r * 0.5), "#3a2f40")


def baseball_bat(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a wooden club with a ball."""
    outline = [(-1, 1.1), (-1.1, 1), (0.7, -1.1), (1.1, -0.7)]
    draw.polygon([(x + r * a, y + r * b) for a, b in outline], fill="#caa163")
    _disc(draw, (x + r * 0.7, y + r * 0.6), (6, 6), "#ffffff")


def orange_fruit(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a round fruit with a leaf."""
    _disc(draw, (x, y), (r, r), "#f28c1c")
    _disc(draw, (x - r * 0.3, y - r * 0.3), (r * 0.3, r * 0.25), "#f7b25e")
    draw.polygon(
        [(x, y - r), (x + r * 0.7, y - r * 1.5), (x + r * 0.2, y - r * 0.9)], fill="#3c8a35"
    )


def orange_wall(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a wall painted orange, with a window."""
    draw.rectangle([0, 0, SIZE, SIZE * 0.8], fill="#e97b1e")
    draw.rectangle([x - r * 0.5, y - r * 0.8, x + r * 0.5, y + r * 0.2], fill="#7fa6c9")
    draw.line([0, SIZE * 0.8, SIZE, SIZE * 0.8], fill="#6b3a12", width=3)


def palm_tree(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a trunk with long leaves."""
    draw.line([x, y + 1.4 * r, x, y - r * 0.4], fill="#7a5530", width=5)
    for angle in np.linspace(-0.2, np.pi + 0.2, 6):
        tip = (x + 1.2 * r * np.cos(angle), y - r * 0.4 - r * (np.sin(angle) - 0.3))
        draw.line([x, y - r * 0.4, *tip], fill="#2f7d32", width=4)


def palm_of_hand(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw an open hand."""
    _disc(draw, (x, y + r * 0.4), (r * 0.7, r * 0.8), "#e3b08f")
    for finger in (-0.55, -0.2, 0.15, 0.5):
        draw.line([x + finger * r, y, x + finger * 1.4 * r, y - r * 1.2], fill="#e3b08f", width=5)
    draw.line([x + r * 0.5, y + r * 0.4, x + r * 1.1, y], fill="#e3b08f", width=5)


def crane_bird(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a long-legged bird."""
    for leg in (-3, 3):
        draw.line([x + leg, y, x + leg, y + 1.4 * r], fill="#4a4a4a", width=2)
    _disc(draw, (x, y), (r * 0.8, r * 0.4), "#f4f4f4")
    draw.line([x - r * 0.6, y, x - r * 0.8, y - r * 1.1], fill="#f4f4f4", width=4)
    _disc(draw, (x - r * 0.8, y - r * 1.1), (4, 4), "#c02626")


def crane_machine(draw: "ImageDraw", x: float, y: float, r: float) -> None:
    """Draw a tower crane with a load."""
    draw.line([x - r * 0.4, y + 1.4 * r, x - r * 0.4, y - r], fill="#d9a400", width=5)
    draw.line([x - r, y - r, x + 1.3 * r, y - r], fill="#d9a400", width=4)
    draw.line([x + r, y - r, x + r, y + r * 0.2], fill="#333333", width=2)
    draw.rectangle([x + r * 0.7, y + r * 0.2, x + r * 1.3, y + r * 0.6], fill="#8c3b2a")
