"""Small real pictures for tests."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def jpeg(color="red", size=(16, 12)):
    """Return the bytes of a small JPEG."""
    raw = io.BytesIO()
    Image.new("RGB", size, color).save(raw, "JPEG")
    return raw.getvalue()


def put(path: Path, content: bytes | str | None = None) -> Path:
    """Write a file and its folders; a picture if nothing is said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = jpeg() if content is None else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def photo(seed: int, size: int = 192) -> Image.Image:
    """Return a picture with as much detail at every scale as photos have, and some shapes."""
    random = np.random.default_rng(seed)
    waves = np.fft.rfft2(random.normal(size=(size, size)))
    down, across = np.meshgrid(np.fft.fftfreq(size), np.fft.rfftfreq(size), indexing="ij")
    noise = np.fft.irfft2(waves / np.maximum(np.hypot(down, across), 1 / size), (size, size))
    levels = np.clip(128 + 40 * noise / noise.std(), 0, 255).astype(np.uint8)
    image = Image.fromarray(levels).convert("RGB")
    draw = ImageDraw.Draw(image)
    for x, y, *color in random.integers(0, size, (6, 5)).tolist():
        draw.ellipse((x, y, x + size // 4, y + size // 5), fill=tuple(color))
    return image


def as_jpeg(image: Image.Image, quality: int = 90) -> bytes:
    """Return a picture as a JPEG file."""
    raw = io.BytesIO()
    image.save(raw, "JPEG", quality=quality)
    return raw.getvalue()


def page_of_text(seed: int = 0, size: tuple[int, int] = (640, 480)) -> Image.Image:
    """Return a page of random words."""
    random = np.random.default_rng(seed)
    page = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=20)
    for top in range(10, size[1] - 20, 26):
        letters = "".join(random.choice(list("abcdefgh kmn"), 58))
        draw.text((10, top), letters, fill="black", font=font)
    return page
