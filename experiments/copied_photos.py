"""Photos with copies made on purpose: resized, recompressed, cropped, watermarked and so on."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFont, ImageOps

Make = Callable[[Image.Image, np.random.Generator], Image.Image]


def cropped(share: float) -> Make:
    """Return what cuts a share off the width and off the height, at a random place."""

    def crop(image: Image.Image, random: np.random.Generator) -> Image.Image:
        width, height = (round(side * (1 - share)) for side in image.size)
        left = int(random.integers(image.width - width + 1))
        top = int(random.integers(image.height - height + 1))
        return image.crop((left, top, left + width, top + height))

    return crop


def resized(scale: float) -> Make:
    """Return what scales a picture."""
    return lambda image, _: image.resize(
        (round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS
    )


def watermarked(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Lay half-transparent words over a picture, and a logo in a corner."""
    layer = Image.new("RGBA", image.size)
    draw = ImageDraw.Draw(layer)
    font = ImageFont.load_default(size=image.width // 7)
    top = int(random.integers(image.height // 5, image.height * 3 // 5))
    draw.text((image.width // 12, top), "© stock photo", fill=(255, 255, 255, 150), font=font)
    side = image.width // 6
    draw.rectangle((0, 0, side, side // 2), fill=(200, 30, 30, 255))
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def quality(level: int) -> Callable[[Image.Image], bytes]:
    """Return what writes a JPEG of a quality."""

    def save(image: Image.Image) -> bytes:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=level)
        return buffer.getvalue()

    return save


KINDS: dict[str, tuple[Make, int]] = {  # what is done, and the JPEG quality of the copy
    "recompressed": (lambda image, _: image, 25),
    "half the size": (resized(0.5), 85),
    "enlarged": (resized(1.6), 85),
    "cropped 5 %": (cropped(0.05), 85),
    "cropped 10 %": (cropped(0.10), 85),
    "cropped 15 %": (cropped(0.15), 85),
    "watermarked": (watermarked, 85),
    "brighter": (lambda image, _: ImageEnhance.Brightness(image).enhance(1.3), 85),
    "gray": (lambda image, _: ImageOps.grayscale(image).convert("RGB"), 85),
    "mirrored": (lambda image, _: ImageOps.mirror(image), 85),
}


def make_copies(source: Path, out: Path, *, every: int, each: int, seed: int = 0) -> None:
    """Write every so many-th photo of COCO-Web, and so many copies of each kind, of one photo each.

    ``truth.jsonl`` has a line for each file: its name, the photo it shows, the kind of copy.
    """
    random = np.random.default_rng(seed)
    rows = [json.loads(line) for line in (source / "metadata.jsonl").read_text().splitlines()]
    rows = rows[::every]
    (out / "images").mkdir(parents=True)
    chosen = random.permutation(len(rows))[: (len(KINDS) + 1) * each]
    kinds = ["same bytes", *KINDS]
    with (out / "truth.jsonl").open("w") as lines:
        for row in rows:
            data = (source / row["file"]).read_bytes()
            _write(out, lines, f"{row['id']}.jpg", data, row, "photo")
        for place, number in enumerate(chosen.tolist()):
            row, kind = rows[number], kinds[place % len(kinds)]
            data = (source / row["file"]).read_bytes()
            if kind in KINDS:
                make, level = KINDS[kind]
                with Image.open(io.BytesIO(data)) as image:
                    data = quality(level)(make(image.convert("RGB"), random))
            _write(out, lines, f"{row['id']}-{place}.jpg", data, row, kind)


def _write(out: Path, lines: object, name: str, data: bytes, row: dict, kind: str) -> None:
    (out / "images" / name).write_bytes(data)
    line = {"file": f"images/{name}", "photo": row["id"], "kind": kind, "label": row["web_label"]}
    print(json.dumps(line), file=lines)
