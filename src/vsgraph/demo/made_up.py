"""A small made-up crawl: words with several meanings, titles as on the web, known truth.

Its pictures are drawn by :mod:`vsgraph.demo.drawings`. Its vectors are plain pixel and word counts,
which need no model.
"""

import csv
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats, unit_rows
from vsgraph.demo import drawings
from vsgraph.demo.drawings import Artist


class MadeUpCrawl(NamedTuple):
    """Pictures, titles, labels and truth of a made-up crawl."""

    pictures: NDArray[np.uint8]  # (n_images, 64, 64, 3)
    titles: list[str]  # one per image; some are empty, some belong to another picture
    web_labels: NDArray[np.intp]  # (n_images,), the class whose query found the image
    truth: NDArray[np.intp]  # (n_images,), the class that it shows; -1 if it shows none
    class_names: tuple[str, ...]
    descriptions: tuple[str, ...]  # one per class


DESCRIPTIONS = {
    "drumstick": "drumstick: a wooden stick used for playing a drum, percussion music",
    "computer mouse": "mouse: a hand device with a button and wheel that moves a cursor",
    "bat": "bat: a nocturnal flying mammal with wings, lives in a cave",
    "baseball bat": "bat: a wooden club used by the batter to hit the ball in baseball",
    "orange": "orange: a round juicy citrus fruit with a peel, grows on a tree",
    "palm": "palm: a tropical tree with a trunk and long leaves, grows at a beach",
    "crane": "crane: a large wading bird with long legs and a long neck, lives in a marsh",
}

CLUB = (drawings.baseball_bat, "baseball club hit ball batter", "baseball bat")
# The word searched for in each class and what it finds: a share, what is drawn, the words beside
# it, and the class that it shows, if any.
QUERIES: dict[str, tuple[str, list[tuple[float, Artist, str, str | None]]]] = {
    "drumstick": ("drumstick", [
        (0.4, drawings.drum_sticks, "drum percussion wooden music band", "drumstick"),
        (0.6, drawings.chicken_leg, "chicken roast dinner recipe crispy sauce", None),
    ]),
    "computer mouse": ("mouse", [
        (0.55, drawings.computer_mouse, "wheel button cursor usb", "computer mouse"),
        (0.45, drawings.field_mouse, "animal rodent tail cheese wild fur", None),
    ]),
    "bat": ("bat", [
        (0.45, drawings.flying_bat, "flying wings mammal cave night", "bat"),
        (0.55, *CLUB),
    ]),
    "baseball bat": ("baseball bat", [(1.0, *CLUB)]),
    "orange": ("orange", [
        (0.6, drawings.orange_fruit, "fruit citrus juicy peel fresh", "orange"),
        (0.4, drawings.orange_wall, "wall paint house color bright", None),
    ]),
    "palm": ("palm", [
        (0.7, drawings.palm_tree, "tree tropical beach leaves trunk", "palm"),
        (0.3, drawings.palm_of_hand, "hand fingers lines reading skin", None),
    ]),
    "crane": ("crane", [
        (0.5, drawings.crane_bird, "bird wading marsh legs neck", "crane"),
        (0.5, drawings.crane_machine, "construction site tower lift steel", None),
    ]),
}  # fmt: skip
FILLER = ("photo", "best", "new", "free", "day", "image", "hd", "2019", "my", "buy", "vintage")


def make_crawl(
    *, per_class: int = 90, missing: float = 0.3, swapped: float = 0.1, random_state: int = 0
) -> MadeUpCrawl:
    """Draw a crawl of `per_class` pictures per query, in random order.

    `missing` and `swapped` are the shares of titles that are lost, or belong to another picture.

    >>> crawl = make_crawl(per_class=2)
    >>> crawl.pictures.shape, len(crawl.titles)
    ((14, 64, 64, 3), 14)
    """
    random = np.random.default_rng(random_state)
    names = tuple(DESCRIPTIONS)
    pictures, titles, web_labels, truth = [], [], [], []
    for web_label, name in enumerate(names):
        query, meanings = QUERIES[name]
        for choice in random.choice(len(meanings), per_class, p=[m[0] for m in meanings]):
            _, artist, near, shown = meanings[choice]
            pictures.append(drawings.draw_picture(artist, random))
            words = [*random.choice(near.split(), 3, replace=False), *random.choice(FILLER, 2)]
            titles.append(" ".join([query, *random.permutation(words)]))
            web_labels.append(web_label)
            truth.append(names.index(shown) if shown else -1)
    order = random.permutation(len(titles))
    titles = _spoil([titles[i] for i in order], missing, swapped, random)
    return MadeUpCrawl(
        np.stack(pictures)[order], titles, np.array(web_labels)[order], np.array(truth)[order],
        names, tuple(DESCRIPTIONS.values()),
    )  # fmt: skip


def write_crawl(crawl: MadeUpCrawl, folder: Path) -> Path:
    """Write JPEG files and a table of paths, queries, titles and truth; return the table's path.

    ``meanings.csv`` beside the table describes the classes.
    """
    from PIL import Image

    (folder / "images").mkdir(parents=True, exist_ok=True)
    names = [*crawl.class_names, "none"]
    lines = []
    for row, picture in enumerate(crawl.pictures):
        path = f"images/{row:04d}.jpg"
        large = Image.fromarray(picture).resize((224, 224), Image.Resampling.BICUBIC)
        large.save(folder / path, quality=90)
        words = crawl.titles[row].split()
        lines.append(json.dumps({
            "file_name": path, "query": names[crawl.web_labels[row]], "title": " ".join(words[:3]),
            "tags": words[3:], "truth": names[crawl.truth[row]],
        }))  # fmt: skip
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "meanings.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["class", "description"])
        table.writerows(zip(crawl.class_names, crawl.descriptions, strict=True))
    return folder / "metadata.jsonl"


def _spoil(
    titles: list[str], missing: float, swapped: float, random: np.random.Generator
) -> list[str]:
    """Remove some titles and give some others to the wrong pictures."""
    order = random.permutation(len(titles))
    n_missing, n_swapped = round(missing * len(titles)), round(swapped * len(titles))
    lost, moved = order[:n_missing], order[n_missing : n_missing + n_swapped]
    spoiled = list(titles)
    for i in lost:
        spoiled[i] = ""
    for here, there in zip(moved, np.roll(moved, 1), strict=True):
        spoiled[here] = titles[there]
    return spoiled


def picture_features(pictures: NDArray[np.uint8]) -> Floats:
    """Return vectors of colors and edge directions on a coarse grid, (n_images, 320).

    >>> picture_features(np.zeros((2, 64, 64, 3), np.uint8)).shape
    (2, 320)
    """
    scaled = pictures.astype(np.float32) / 255
    centered = scaled - np.median(scaled, axis=(1, 2), keepdims=True)
    colors = centered.reshape(-1, 8, 8, 8, 8, 3).mean(axis=(2, 4)).reshape(len(pictures), -1)
    down, across = np.gradient(centered.mean(axis=3), axis=(1, 2))
    direction = (np.arctan2(down, across) % np.pi * 8 / np.pi).astype(int) % 8
    maps = np.stack([np.hypot(down, across) * (direction == d) for d in range(8)], axis=1)
    edges = maps.reshape(len(maps), 8, 4, 16, 4, 16).mean(axis=(3, 5)).reshape(len(maps), -1)
    return np.hstack([unit_rows(colors), unit_rows(edges)])


def text_vectors(texts: list[str], descriptions: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return word counts, rare words weighted up; a text without words is a row of zeros.

    >>> texts, meanings = text_vectors(["red fruit", ""], ("a round fruit",))
    >>> texts.any(axis=1).tolist(), meanings.shape[1] == texts.shape[1]
    ([True, False], True)
    """
    documents = [re.findall(r"[a-z]+", text.lower()) for text in [*texts, *descriptions]]
    words = sorted({word for document in documents for word in document})
    column = {word: i for i, word in enumerate(words)}
    counts = np.zeros((len(documents), len(words)))
    for row, document in enumerate(documents):
        for word in document:
            counts[row, column[word]] += 1
    rarity = np.log(len(counts) / (1 + (counts > 0).sum(axis=0)))
    weighted = unit_rows(counts * np.maximum(rarity, 0.1))
    return weighted[: len(texts)], weighted[len(texts) :]
