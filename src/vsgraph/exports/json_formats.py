"""Formats in JSON, written item by item: COCO, FiftyOne and Label Studio."""

import html
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from vsgraph.exports.job import Entry, Job
from vsgraph.exports.names import numbered_name, one_line
from vsgraph.exports.placement import Picture, pictures

LOCAL_FILES = "/data/local-files/?d="
REJECTED = "_rejected"
NO_ATTRIBUTE = ("confidence", "final_label")  # of a label: it has them itself
FIFTYONE = ("id", "tags", "label", "logits", "index", "mask")  # fields that its labels have
_COCO_START = '{"info": {"description": "labels corrected by vsgraph"}'


class JsonItems:
    r"""The items of a JSON list or object, written one at a time.

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
        """Write an item, with its key if the items are those of an object."""
        name = "" if key is None else f"{plain_json(key)}: "
        self.file.write(f"{',' if self.count else ''}\n{name}{plain_json(item)}")
        self.count += 1


def plain_json(value: Any) -> str:  # noqa: ANN401
    r"""Return JSON in ASCII without characters of markup: ``<`` is ``\u003c``."""
    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write_coco(job: Job) -> None:
    """Write a COCO file: one annotation per label, its box the whole image.

    The id of an image is its row in the crawl. The id of a category is its class number plus one,
    since many programs reserve 0 for the background. A rejected image has no annotation.
    """
    categories = [
        {"id": i + 1, "name": name, "supercategory": ""} for i, name in enumerate(job.class_names)
    ]
    with (
        job.path.open("w", encoding="utf-8") as file,
        tempfile.TemporaryFile("w+", encoding="utf-8", dir=job.path.parent) as later,
    ):
        file.write(f'{_COCO_START}, "licenses": [], "categories": {plain_json(categories)}')
        file.write(', "images": [')
        images, annotations = JsonItems(file), JsonItems(later)
        for picture in pictures(job):
            images.add(_coco_image(job, picture))
            for category in picture.entry.classes:
                annotations.add(_coco_annotation(picture, category, annotations.count + 1))
        file.write('], "annotations": [')
        later.seek(0)
        shutil.copyfileobj(later, file)
        file.write("]}\n")


def _coco_image(job: Job, picture: Picture) -> dict[str, Any]:
    entry = picture.entry
    own = {
        "id": entry.row, "file_name": entry.image,
        "width": picture.width, "height": picture.height, **entry.columns,
    }  # fmt: skip
    return own | job.from_crawl(entry, taken=own)


def _coco_annotation(picture: Picture, category: int, number: int) -> dict[str, Any]:
    w, h = picture.width, picture.height
    return {
        "id": number, "image_id": picture.entry.row, "category_id": category + 1,
        "bbox": [0, 0, w, h], "area": w * h, "segmentation": [[0, 0, w, 0, w, h, 0, h]],
        "iscrowd": 0,
    }  # fmt: skip


def is_our_coco(path: Path) -> bool:
    """Return whether a file starts as :func:`write_coco` writes it."""
    with path.open("rb") as file:
        return file.read(len(_COCO_START)) == _COCO_START.encode()


def write_fiftyone(job: Job) -> None:
    """Write a ``FiftyOneImageClassificationDataset``: labels, and where the pictures are.

    ``labels.json`` has the final label of each image with its confidence; everything else that is
    known is an attribute. A rejected image has no label. ``data.json`` points to the pictures.
    Pictures in shards are copied to ``data``, and ``where.json`` names their place in the shards.
    """
    places_name = "data.json" if job.crawl.has_files else "where.json"
    with (
        (job.path / "labels.json").open("w", encoding="utf-8") as labels_file,
        (job.path / places_name).open("w", encoding="utf-8") as places_file,
    ):
        labels_file.write(f'{{"classes": {plain_json(job.class_names)}, "labels": {{')
        places_file.write("{")
        labels, places = JsonItems(labels_file), JsonItems(places_file)
        for picture in pictures(job):
            key = f"{picture.entry.row:09d}"
            labels.add(_fiftyone_label(job, picture.entry), key=key)
            place = picture.entry.image
            if picture.path is not None:
                place = str(picture.path.absolute())
            else:
                picture.place(job.path / "data" / f"{key}{picture.suffix}", "copy")
            places.add(place, key=key)
        labels_file.write("}}\n")
        places_file.write("}\n")


def _fiftyone_label(job: Job, entry: Entry) -> Any:  # noqa: ANN401
    """Return the label of an image: a list if there may be several, None if it is rejected."""
    attributes = {name: value for name, value in entry.columns.items() if name not in NO_ATTRIBUTE}
    own = job.from_crawl(entry, taken=("path", *NO_ATTRIBUTE, *FIFTYONE))
    attributes |= {"path": entry.image} | {_field_name(name): own[name] for name in own}
    confidence = entry.columns["confidence"]
    labels = [
        {"label": number, "confidence": confidence, "attributes": attributes}
        for number in entry.classes
    ]
    return labels if job.several else labels[0] if labels else None


def _field_name(name: str) -> str:
    """Return a name that a field of FiftyOne may have.

    >>> _field_name("og.image"), _field_name("_cls"), _field_name("$x")
    ('og_image', 'cls', 'x')
    """
    return re.sub(r"[.$]", "_", name).lstrip("_") or "column"


def write_labelstudio(job: Job, *, url: str = LOCAL_FILES) -> None:
    """Write Label Studio tasks with the final labels as predictions, and the labeling setup.

    ``tasks.json`` is for the import, ``labeling_config.xml`` for the project's labeling interface.
    Beside the classes there is a choice ``_rejected``, the prediction for rejected images. `url`
    precedes the path of an image below the crawl's folder. Pictures in shards are copied to
    ``images``, and their paths are below the export's folder.
    """
    choices = [one_line(name) for name in job.class_names]
    no_class = REJECTED
    while no_class in choices:
        no_class = f"_{no_class}"
    config = _labeling_config([*choices, no_class], several=job.several)
    (job.path / "labeling_config.xml").write_text(config, encoding="utf-8")
    with (job.path / "tasks.json").open("w", encoding="utf-8") as file:
        file.write("[")
        tasks = JsonItems(file)
        for picture in pictures(job):
            chosen = [choices[c] for c in picture.entry.classes]
            if picture.entry.columns["decision"] == "reject":
                chosen = [no_class]
            path = picture.entry.image
            if picture.path is None:
                path = f"images/{numbered_name(picture.entry.row, picture.suffix)}"
                picture.place(job.path / path, "copy")
            tasks.add(_task(job, picture.entry, url + quote(path), chosen))
        file.write("]\n")


def _task(job: Job, entry: Entry, address: str, chosen: list[str]) -> dict[str, Any]:
    """Return the task of an image; without a choice there is no prediction."""
    result = {
        "id": f"{entry.row:09d}", "from_name": "label", "to_name": "image", "type": "choices",
        "value": {"choices": chosen},
    }  # fmt: skip
    prediction = {
        "model_version": "vsgraph",
        "score": entry.columns["confidence"],
        "result": [result] if chosen else [],
    }
    data = {
        "image": address,
        "text": "\n".join(f"{name}: {text}" for name, text in entry.text.items() if text),
        "path": entry.image,
        **entry.columns,
    }
    data |= job.from_crawl(entry, taken=data)
    return {"data": data, "predictions": [prediction]}


def _labeling_config(choices: list[str], *, several: bool) -> str:
    """Return the labeling interface: picture, text, reason, and one choice per class."""
    listed = "\n".join(f'    <Choice value="{html.escape(name)}"/>' for name in choices)
    many = "multiple" if several else "single"
    return f"""<View>
  <Image name="image" value="$image"/>
  <Text name="text" value="$text"/>
  <Text name="why" value="$why"/>
  <Choices name="label" toName="image" choice="{many}" showInline="true">
{listed}
  </Choices>
</View>
"""
