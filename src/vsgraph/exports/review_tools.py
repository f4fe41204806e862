"""Programs in which people look at images: FiftyOne and Label Studio."""

import html
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vsgraph.exports.job import Entry, Job
from vsgraph.exports.json_items import JsonItems, plain_json
from vsgraph.exports.names import numbered_name, one_line
from vsgraph.exports.placement import Picture, pictures

LOCAL_FILES = "/data/local-files/?d="
REJECTED = "_rejected"


def write_fiftyone(job: Job) -> None:
    """Write a ``FiftyOneImageClassificationDataset``: labels, and where the pictures are.

    ``labels.json`` has the final label of each image with its confidence; web label, decision and
    reason are attributes, and a rejected image has no label. ``data.json`` points to the pictures.
    Pictures in shards are copied to ``data``, and ``where.json`` names their place in the shards.
    """
    places_name = "where.json" if job.crawl.has_shards else "data.json"
    with (
        (job.path / "labels.json").open("w", encoding="utf-8") as labels_file,
        (job.path / places_name).open("w", encoding="utf-8") as places_file,
    ):
        labels_file.write(f'{{"classes": {plain_json(job.class_names)}, "labels": {{')
        places_file.write("{")
        labels, places = JsonItems(labels_file), JsonItems(places_file)
        for picture in pictures(job):
            key = f"{picture.entry.row:09d}"
            labels.add(_label(picture.entry, several=job.several), key=key)
            places.add(_place(picture, job.path / "data", key), key=key)
        labels_file.write("}}\n")
        places_file.write("}\n")


def _place(picture: Picture, folder: Path, key: str) -> str:
    """Return where a picture is; one in a shard is copied first."""
    if picture.path is not None:
        return str(picture.path.absolute())
    picture.place(folder / f"{key}{picture.suffix}", "copy")
    return picture.entry.image


def _label(entry: Entry, *, several: bool) -> Any:  # noqa: ANN401
    """Return the label of an image: a list if there may be several, None if it is rejected."""
    attributes = {name: entry.columns[name] for name in ("web_label", "decision", "why", "anchor")}
    confidence = entry.columns["confidence"]
    labels = [
        {"label": number, "confidence": confidence, "attributes": attributes}
        for number in entry.classes
    ]
    return labels if several else labels[0] if labels else None


def write_labelstudio(job: Job, *, url: str = LOCAL_FILES) -> None:
    """Write Label Studio tasks with the final labels as predictions, and the labeling setup.

    ``tasks.json`` is for the import, ``labeling_config.xml`` for the project's labeling interface.
    Beside the classes there is a choice ``_rejected``, the prediction for rejected images.

    Parameters
    ----------
    job : Job
        What to write.
    url : str
        What precedes the path of an image below the crawl's folder. By default Label Studio's
        address of local files, with the crawl's folder as its document root. Pictures in shards are
        copied to the folder ``images`` of the export, and the export is the document root.
    """
    choices = [one_line(name) for name in job.class_names]
    no_class = REJECTED
    while no_class in choices:
        no_class = f"_{no_class}"
    config = _config([*choices, no_class], several=job.several)
    (job.path / "labeling_config.xml").write_text(config, encoding="utf-8")
    with (job.path / "tasks.json").open("w", encoding="utf-8") as file:
        file.write("[")
        tasks = JsonItems(file)
        for picture in pictures(job):
            chosen = [choices[c] for c in picture.entry.classes]
            if picture.entry.columns["decision"] == "reject":
                chosen = [no_class]
            tasks.add(_task(picture.entry, url + quote(_served_path(picture, job.path)), chosen))
        file.write("]\n")


def _served_path(picture: Picture, folder: Path) -> str:
    """Return the path of a picture for its address; one in a shard is copied first."""
    if picture.path is not None:
        return picture.entry.image
    name = f"images/{numbered_name(picture.entry.row, picture.suffix)}"
    picture.place(folder / name, "copy")
    return name


def _task(entry: Entry, address: str, chosen: list[str]) -> dict[str, Any]:
    """Return the task of an image; without a choice there is no prediction."""
    result = {
        "id": f"{entry.row:09d}",
        "from_name": "label",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": chosen},
    }
    prediction = {
        "model_version": "vsgraph",
        "score": entry.columns["confidence"],
        "result": [result] if chosen else [],
    }
    data = {
        "image": address,
        "text": "\n".join(f"{name}: {text}" for name, text in entry.text.items() if text),
        "path": entry.image,
        **{name: entry.columns[name] for name in ("web_label", "decision", "why")},
    }
    return {"data": data, "predictions": [prediction]}


def _config(choices: list[str], *, several: bool) -> str:
    """Return the labeling interface: picture, text, reason, and one choice per class."""
    listed = "\n".join(f'    <Choice value="{html.escape(name)}"/>' for name in choices)
    many = "multiple" if several else "single"
    return (
        "<View>\n"
        '  <Image name="image" value="$image"/>\n'
        '  <Text name="text" value="$text"/>\n'
        '  <Text name="why" value="$why"/>\n'
        f'  <Choices name="label" toName="image" choice="{many}" showInline="true">\n'
        f"{listed}\n"
        "  </Choices>\n"
        "</View>\n"
    )
