"""COCO: one JSON file of images, categories and annotations that cover the whole image."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from vsgraph.exports.job import Job
from vsgraph.exports.json_items import JsonItems, plain_json
from vsgraph.exports.placement import Picture, pictures

_START = '{"info": {"description": "labels corrected by vsgraph"}'


def write_coco(job: Job) -> None:
    """Write a COCO file: one annotation per label, its box the whole image.

    The id of an image is its row in the crawl. The id of a category is its class number plus one,
    since many programs reserve 0 for the background. A rejected image has no annotation.
    """
    with (
        job.path.open("w", encoding="utf-8") as file,
        tempfile.TemporaryFile("w+", encoding="utf-8", dir=job.path.parent) as later,
    ):
        file.write(f'{_START}, "licenses": [], "categories": {_categories(job.class_names)}')
        file.write(', "images": [')
        images, annotations = JsonItems(file), JsonItems(later)
        for picture in pictures(job):
            images.add(_image(picture))
            for category in picture.entry.classes:
                annotations.add(_annotation(picture, category, annotations.count + 1))
        file.write('], "annotations": [')
        later.seek(0)
        shutil.copyfileobj(later, file)
        file.write("]}\n")


def _categories(names: tuple[str, ...]) -> str:
    return plain_json(
        [{"id": i + 1, "name": name, "supercategory": ""} for i, name in enumerate(names)]
    )


def _image(picture: Picture) -> dict[str, Any]:
    entry = picture.entry
    return {
        "id": entry.row,
        "file_name": entry.image,
        "width": picture.width,
        "height": picture.height,
        **{name: entry.columns[name] for name in ("web_label", "decision", "confidence", "why")},
    }


def _annotation(picture: Picture, category: int, number: int) -> dict[str, Any]:
    w, h = picture.width, picture.height
    return {
        "id": number,
        "image_id": picture.entry.row,
        "category_id": category + 1,
        "bbox": [0, 0, w, h],
        "area": w * h,
        "segmentation": [[0, 0, w, 0, w, h, 0, h]],
        "iscrowd": 0,
    }


def is_our_coco(path: Path) -> bool:
    """Return whether a file starts as :func:`write_coco` writes it."""
    with path.open("rb") as file:
        return file.read(len(_START)) == _START.encode()
