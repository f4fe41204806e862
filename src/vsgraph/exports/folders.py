"""Folders of pictures: one folder per class, or numbered files with metadata."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from vsgraph.common.files import RECORD
from vsgraph.exports.job import Job
from vsgraph.exports.names import file_name, folder_names, name_key, numbered_name
from vsgraph.exports.placement import Mode, check_mode, pictures

REJECTED = "_rejected"
TAKEN = (REJECTED, RECORD, "classes.json", "problems.tsv")  # no class gets these names


def write_imagefolder(job: Job, *, mode: Mode = "link") -> None:
    """Write one folder of pictures per class, and ``classes.json`` from folder to class name.

    `mode` is link (symbolic), hardlink or copy; pictures in shards are always copied. Rejected
    images go to the folder ``_rejected``.
    """
    check_mode(job.crawl, mode)
    folders = [*folder_names(job.class_names, taken=TAKEN), REJECTED]
    clashing = _clashing_rows(job)
    classes: dict[str, str] = {}
    for picture in pictures(job):
        entry = picture.entry
        number = entry.classes[0] if entry.classes else -1
        name = file_name(entry.image, picture.suffix, entry.row, clashes=entry.row in clashing)
        picture.place(job.path / folders[number] / name, mode)
        if number >= 0:
            classes[folders[number]] = job.class_names[number]
    content = json.dumps(dict(sorted(classes.items())), indent=2, ensure_ascii=False)
    (job.path / "classes.json").write_text(content, encoding="utf-8")


def _clashing_rows(job: Job) -> set[int]:
    """Return the images whose file has the same name as an earlier one in its folder."""
    blocks = []
    for rows in job.blocks():
        labels = job.correction.final_labels[rows].tolist()
        images = job.column("image", rows).to_pylist()
        blocks.append(np.array(list(map(name_key, labels, images)), np.uint64))
    _, first = np.unique(np.concatenate([np.zeros(0, np.uint64), *blocks]), return_index=True)
    return set(np.delete(job.rows, first).tolist())


def write_hf(job: Job, *, mode: Mode = "link") -> None:
    """Write pictures and metadata as ``load_dataset("imagefolder", data_dir=out)`` reads them.

    `mode` is as for :func:`write_imagefolder`. Several labels are a list; the label of a rejected
    image is null, or an empty list.
    """
    check_mode(job.crawl, mode)
    ours = [name for name in job.empty_table().column_names if name not in {"image", "final_label"}]
    label, number = ("labels", "class_numbers") if job.several else ("label", "class_number")
    taken = {"file_name", label, number, *ours, "path", "image"}
    texts = text_columns(job.crawl.text_fields, taken=taken)
    with (job.path / "metadata.jsonl").open("w", encoding="utf-8", newline="") as file:
        for picture in pictures(job):
            entry = picture.entry
            name = f"images/{numbered_name(entry.row, picture.suffix)}"
            picture.place(job.path / name, mode)
            one = entry.classes[0] if entry.classes else None
            line: dict[str, Any] = {
                "file_name": name,
                label: entry.columns["final_label"],
                number: entry.classes if job.several else one,
                **{column: entry.columns[column] for column in ours},
                "path": entry.image,
                **{texts[field]: text for field, text in entry.text.items()},
            }
            file.write(json.dumps(line) + "\n")


def text_columns(fields: Iterable[str], *, taken: set[str]) -> dict[str, str]:
    """Return a column for each text field, with a name that is free and does not mean a file.

    >>> text_columns(["title", "label", "old_file_name"], taken={"label"})
    {'title': 'title', 'label': 'label_text', 'old_file_name': 'old_file_name_text'}
    """
    columns: dict[str, str] = {}
    for field in fields:
        column = field
        while column in taken or column.endswith(("file_name", "file_names")):
            column += "_text"
        columns[field] = column
        taken = taken | {column}
    return columns
