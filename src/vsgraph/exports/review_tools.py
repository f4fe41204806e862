"""For people who look at images: FiftyOne and Label Studio."""

import html
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vsgraph.crawls.crawl import Crawl
from vsgraph.exports.coco import JsonItems, plain_json
from vsgraph.exports.names import numbered_name, one_line
from vsgraph.exports.placement import Picture, pictures
from vsgraph.exports.rows import Corrected, Row
from vsgraph.exports.targets import Exported, export_folder
from vsgraph.result.correction import Correction

LOCAL_FILES = "/data/local-files/?d="
REJECTED = "_rejected"


def to_fiftyone(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    rejected: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write a ``FiftyOneImageClassificationDataset``: labels, and where the pictures lie.

    ``labels.json`` has the final label of each image with its confidence; web label, decision and
    reason are attributes. ``data.json`` points to the pictures where they are. Pictures within
    shards are copied to ``data``.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row.
    out : path
        The folder.
    rejected : bool
        Take rejected images as well, without label; they are left out otherwise.
    overwrite : bool
        Replace an export that is there already.
    progress : bool
        Show a progress bar.

    Returns
    -------
    exported : Exported
        Images that could be read; the others are counted.
    """
    both = Corrected.join(crawl, correction)
    with (
        export_folder(out, crawl, to="fiftyone", overwrite=overwrite) as (folder, made),
        (folder / "labels.json").open("w", encoding="utf-8") as labels,
        (folder / ("where.json" if crawl.has_shards else "data.json")).open(
            "w", encoding="utf-8"
        ) as data,
    ):
        labels.write(f'{{"classes": {plain_json(both.names)}, "labels": {{')
        data.write("{")
        targets, places = JsonItems(labels), JsonItems(data)
        for rows in both.blocks(title="fiftyone", progress=progress):
            for picture in pictures(crawl, both.rows(rows, rejected=rejected), made.problems):
                key = f"{picture.of.row:09d}"
                targets.add(_target(picture.of, several=both.several), key=key)
                places.add(_keep(picture, folder / "data", key), key=key)
                made.n_images += 1
        labels.write("}}\n")
        data.write("}\n")
    return made


def _keep(picture: Picture, folder: Path, key: str) -> str:
    """Return where a picture lies; one within a shard is copied first."""
    if picture.path is not None:
        return str(picture.path.absolute())
    picture.place(folder / f"{key}{picture.suffix}", "copy")
    return picture.of.image


def _target(row: Row, *, several: bool) -> Any:  # noqa: ANN401
    """Return the label of an image, a list where there may be several, None if rejected."""
    attributes = {name: row.values[name] for name in ("web_label", "decision", "why", "anchor")}
    confidence = row.values["confidence"]
    targets = [
        {"label": number, "confidence": confidence, "attributes": attributes}
        for number in row.classes
    ]
    return targets if several else targets[0] if targets else None


def to_labelstudio(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    url: str = LOCAL_FILES,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write Label Studio tasks with the final labels as predictions, and the labeling setup.

    ``tasks.json`` is for the import, ``labeling_config.xml`` for the project's labeling interface.
    A choice ``_rejected`` stands beside the classes and is the prediction for rejected images.

    Parameters
    ----------
    crawl, correction, overwrite, progress
        As in :func:`to_fiftyone`; rejected images are always there.
    out : path
        The folder.
    url : str
        What stands before the path of an image below the crawl's folder. By default Label Studio's
        address of local files, with the crawl's folder as its document root. Pictures within shards
        are copied to the folder ``images`` in `out`, and `out` is the document root.

    Returns
    -------
    exported : Exported
        Images that could be read; the others are counted.
    """
    both = Corrected.join(crawl, correction)
    choices = [one_line(name) for name in both.names]
    no_class = REJECTED
    while no_class in choices:
        no_class = f"_{no_class}"
    with export_folder(out, crawl, to="labelstudio", overwrite=overwrite) as (folder, made):
        config = _config([*choices, no_class], several=both.several)
        (folder / "labeling_config.xml").write_text(config, encoding="utf-8")
        with (folder / "tasks.json").open("w", encoding="utf-8") as file:
            file.write("[")
            tasks = JsonItems(file)
            for rows in both.blocks(title="labelstudio", progress=progress):
                for picture in pictures(crawl, both.rows(rows, rejected=True), made.problems):
                    chosen = [choices[c] for c in picture.of.classes]
                    if picture.of.values["decision"] == "reject":
                        chosen = [no_class]
                    tasks.add(_task(picture.of, url + quote(_path(picture, folder)), chosen))
                    made.n_images += 1
            file.write("]\n")
    return made


def _path(picture: Picture, folder: Path) -> str:
    """Return the path of a picture for its address; one within a shard is copied first."""
    if picture.path is not None:
        return picture.of.image
    name = f"images/{numbered_name(picture.of.row, picture.suffix)}"
    picture.place(folder / name, "copy")
    return name


def _task(row: Row, address: str, chosen: list[str]) -> dict[str, Any]:
    """Return the task of an image; no choice is no prediction."""
    result = {
        "id": f"{row.row:09d}",
        "from_name": "label",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": chosen},
    }
    prediction = {
        "model_version": "vsgraph",
        "score": row.values["confidence"],
        "result": [result] if chosen else [],
    }
    data = {
        "image": address,
        "text": "\n".join(f"{name}: {text}" for name, text in row.text.items() if text),
        "path": row.image,
        **{name: row.values[name] for name in ("web_label", "decision", "why")},
    }
    return {"data": data, "predictions": [prediction]}


def _config(choices: list[str], *, several: bool) -> str:
    """Return the labeling interface: picture, text, why, and a choice a class."""
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
