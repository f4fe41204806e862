"""Loads at the edge of what crawls hold, each with its time and memory: ``load.py FOLDER [WHAT]``.

``pictures``: 300 pictures of 24 megapixels, checked, encoded and made small. ``rows``: a table of a
million rows, inspected. ``classes``: a crawl of 5,000 classes, corrected. Prints a line of JSON for
each, and ends with an error if the pictures need a gigabyte.
"""

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import vsgraph
from memory import Memory
from vsgraph.crawls import inspect_crawl, read_crawl
from vsgraph.encoders import Encoded, Preparation, embed_images
from vsgraph.report.thumbnails import write_pictures

N_PICTURES, SIZE = 300, (6000, 4000)
N_ROWS = 1_000_000
N_CLASSES, PER_CLASS = 5_000, 10


class MeanColor:
    """The smallest image encoder, to measure everything around it."""

    name, fingerprint, n_dims, n_classes = "mean color", "mean color 1", 3, 0
    preparation = Preparation(224, 224)

    def encode(self, pixels: NDArray[np.uint8]) -> Encoded:
        """Return the mean color of each picture."""
        return Encoded(pixels.mean(axis=(1, 2)))


def large_pictures(folder: Path) -> Path:
    """Write pictures of 24 megapixels, every tenth as PNG, and return their table."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 64, (SIZE[1] // 8, SIZE[0] // 8, 3), np.uint8)
    picture = Image.fromarray(noise).resize(SIZE)
    contents = {}
    for kind in ("jpeg", "png"):
        raw = io.BytesIO()
        picture.save(raw, kind, quality=80, compress_level=1)
        contents[kind] = raw.getvalue()
    lines = ["path,label,title"]
    for number in range(N_PICTURES):
        kind = "png" if number % 10 == 0 else "jpeg"
        name = f"{number}.{kind}"
        (folder / name).write_bytes(contents[kind] + str(number).encode())  # each is another file
        lines.append(f"{name},class {number % 3},a title")
    (folder / "crawl.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "crawl.csv"


def load_pictures(folder: Path) -> int:
    """Check, encode and make small what :func:`large_pictures` writes, in a process of its own."""
    table = folder / "pictures" / "crawl.csv"
    if not table.exists():
        code = f"import load, pathlib; load.large_pictures(pathlib.Path({str(table.parent)!r}))"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
    crawl = read_crawl(table)
    inspect_crawl(crawl)
    embed_images(crawl, MeanColor(), folder / f"vectors-{time.time_ns()}")
    rows = np.arange(len(crawl))
    small = write_pictures(folder / "small", crawl, rows, most_bytes=10**7)
    if len(small) != N_PICTURES:
        raise click.ClickException(f"only {len(small)} of {N_PICTURES} pictures were read")
    return N_PICTURES


def load_rows(folder: Path) -> int:
    """Inspect a table of a million rows, some of them quoted, without pictures."""
    table = folder / "rows.csv"
    if not table.exists():
        with table.open("w", encoding="utf-8") as file:
            file.write("path,label,title,tags\n")
            for number in range(N_ROWS):
                title = f'"a, ""quoted"" title {number}"' if number % 4 == 0 else f"title {number}"
                file.write(f"{number % 997}/{number}.jpg,class {number % 1000},{title},sea bird\n")
    return inspect_crawl(read_crawl(table)).n_images


def load_classes(folder: Path) -> int:  # noqa: ARG001
    """Correct a crawl of 5,000 classes."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(N_CLASSES, 64)).astype(np.float32)
    labels = np.arange(N_CLASSES * PER_CLASS) % N_CLASSES
    noise = random.normal(size=(len(labels), 64)).astype(np.float32)
    features = np.abs(centers[labels] + 0.5 * noise)
    settings = vsgraph.Settings(anchors_per_class=4)
    made = vsgraph.correct(features, centers[labels] + noise, centers, labels, settings=settings)
    return len(made.class_names)


LOADS: dict[str, Callable[[Path], int]] = {
    "pictures": load_pictures,
    "rows": load_rows,
    "classes": load_classes,
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("what", type=click.Choice(list(LOADS)), required=False)
def main(folder: Path, what: str | None) -> None:
    """Measure one load here, or each in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    if what is None:
        for name in LOADS:
            subprocess.run([sys.executable, __file__, str(folder), name], check=True)
        return
    memory, started = Memory(), time.monotonic()
    number = LOADS[what](folder)
    seconds = round(time.monotonic() - started, 1)
    found = {"what": what, "number": number, "seconds": seconds, "GB": round(memory.held, 2)}
    click.echo(json.dumps(found | {"GB with mapped files": round(memory.with_files, 2)}))
    if what == "pictures" and memory.held >= 1:
        raise click.ClickException("the pictures took a gigabyte or more")


if __name__ == "__main__":
    main()
