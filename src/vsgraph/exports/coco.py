"""COCO: one JSON file of images, categories and annotations that cover the whole image."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any

from vsgraph.crawls.crawl import Crawl
from vsgraph.exports.placement import Picture, pictures
from vsgraph.exports.rows import Corrected
from vsgraph.exports.targets import Exported, export_file
from vsgraph.result.correction import Correction

_START = '{"info": {"description": "labels corrected by vsgraph"}'


def to_coco(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    rejected: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write a COCO file: an annotation a label, its box the whole image.

    The id of an image is its row in the crawl, that of a category its class number plus one, since
    many programs keep 0 for the background.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row.
    out : path
        The file.
    rejected : bool
        Take rejected images as well, without annotation; they are left out otherwise.
    overwrite : bool
        Replace a COCO file of vsgraph that is there already.
    progress : bool
        Show a progress bar.

    Returns
    -------
    exported : Exported
        Images that could be read; the others are counted.
    """
    both = Corrected.join(crawl, correction)
    with (
        export_file(out, to="coco", overwrite=overwrite, is_ours=_is_ours) as (path, made),
        path.open("w", encoding="utf-8") as file,
        tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent) as later,
    ):
        file.write(f'{_START}, "licenses": [], "categories": {_categories(both.names)}')
        file.write(', "images": [')
        images, annotations = JsonItems(file), JsonItems(later)
        for rows in both.blocks(title="coco", progress=progress):
            for picture in pictures(crawl, both.rows(rows, rejected=rejected), made.problems):
                images.add(_image(picture))
                for category in picture.of.classes:
                    annotations.add(_annotation(picture, category, annotations.count + 1))
                made.n_images += 1
        file.write('], "annotations": [')
        later.seek(0)
        shutil.copyfileobj(later, file)
        file.write("]}\n")
    return made


class JsonItems:
    r"""Items of a JSON list, written as they come.

    >>> import io
    >>> file = io.StringIO()
    >>> items = JsonItems(file)
    >>> items.add(1), items.add({"a": "<b>"}), file.getvalue()
    (None, None, '\n1,\n{"a": "\\u003cb\\u003e"}')
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.count = 0

    def add(self, item: Any, *, key: str | None = None) -> None:  # noqa: ANN401
        """Write an item, or a key and its item where the list is an object."""
        name = "" if key is None else f"{plain_json(key)}: "
        self.file.write(f"{',' if self.count else ''}\n{name}{plain_json(item)}")
        self.count += 1


def plain_json(value: Any) -> str:  # noqa: ANN401
    r"""Return JSON in ASCII that no page takes for markup: ``<`` is ``\u003c``."""
    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _categories(names: tuple[str, ...]) -> str:
    return plain_json(
        [{"id": i + 1, "name": name, "supercategory": ""} for i, name in enumerate(names)]
    )


def _image(picture: Picture) -> dict[str, Any]:
    row = picture.of
    return {
        "id": row.row,
        "file_name": row.image,
        "width": picture.width,
        "height": picture.height,
        **{name: row.values[name] for name in ("web_label", "decision", "confidence", "why")},
    }


def _annotation(picture: Picture, category: int, number: int) -> dict[str, Any]:
    w, h = picture.width, picture.height
    return {
        "id": number,
        "image_id": picture.of.row,
        "category_id": category + 1,
        "bbox": [0, 0, w, h],
        "area": w * h,
        "segmentation": [[0, 0, w, 0, w, h, 0, h]],
        "iscrowd": 0,
    }


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_START)) == _START.encode()
