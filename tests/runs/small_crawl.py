"""A crawl of twelve pictures, and an encoder that is ready at once."""

import collections
import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from vsgraph.demo.made_up import make_crawl, write_crawl
from vsgraph.encoders.protocol import Encoded
from vsgraph.pictures.decode import Preparation
from vsgraph.runs import run


class Tiny:
    """An encoder of pictures that is ready at once."""

    name, n_dims, n_classes, fingerprint = "tiny", 48, 0, "tiny"
    preparation = Preparation(4, 4)

    def encode(self, pixels):
        return Encoded(pixels.reshape(len(pixels), -1).astype(np.float32) - 127)


def write_small_crawl(folder: Path) -> Path:
    """Write a crawl of twelve pictures in two classes; return its table."""
    made = make_crawl(per_class=6)
    rows = np.flatnonzero(np.isin(made.web_labels, [2, 3]))
    few = made._replace(
        pictures=made.pictures[rows], titles=[made.titles[row] for row in rows],
        web_labels=made.web_labels[rows], truth=made.truth[rows],
    )  # fmt: skip
    write_crawl(few, folder).rename(folder / "plain.jsonl")
    table = folder / "meanings.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([lines[0], *(line for line in lines if "bat," in line)]))
    return folder / "plain.jsonl"


def correct_small(table, out, **options):
    """Correct that crawl, or the one that the run remembers."""
    choices = {"text_encoder": "lsa", "meanings": table.parent / "meanings.csv"} if table else {}
    few = {"n_neighbors": 3, "anchors_per_class": 2} if table else options.pop("settings", None)
    return run(table, out, settings=few, choices=choices, **options)


def grow_crawl(crawl: Path) -> None:
    """Add a picture, few enough that the result before is gone on from."""
    path = crawl / "plain.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    pixels = Image.open(crawl / rows[0]["file_name"]).convert("RGB").rotate(90)
    pixels.save(crawl / "new.png")
    path.write_text("".join(json.dumps(row) + "\n" for row in
                            [rows[0], rows[0] | {"file_name": "new.png"}, *rows[1:]]))  # fmt: skip


def change_crawl(crawl: Path) -> None:
    """Reverse the rows of each class, and change a picture."""
    path = crawl / "plain.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    by_class = collections.defaultdict(list)
    for row in rows:
        by_class[row["query"]].append(row)
    lines = [json.dumps(by_class[row["query"]].pop()) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    shutil.copyfile(crawl / rows[0]["file_name"], crawl / rows[1]["file_name"])
