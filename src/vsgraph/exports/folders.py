"""Folders of pictures: one folder per class, or numbered files with metadata."""

import json
from typing import Any

import numpy as np

from vsgraph.common.files import RECORD
from vsgraph.exports.job import Job
from vsgraph.exports.names import file_name, folder_names, free_names, name_key, numbered_name
from vsgraph.exports.placement import Mode, check_mode, pictures
from vsgraph.exports.tables import IMAGES, write_images

REJECTED = "_rejected"
TAKEN = (REJECTED, RECORD, IMAGES, "classes.json", "problems.tsv")  # no class gets these names


def write_imagefolder(job: Job, *, mode: Mode = "link") -> None:
    """Write one folder of pictures per class, ``classes.json`` from folder to class name.

    ``images.csv`` has everything that is known of each picture.

    `mode` is link (symbolic), hardlink or copy; pictures in shards are always copied. Rejected
    images go to the folder ``_rejected``.
    """
    check_mode(job.crawl, mode)
    folders = [*folder_names(job.class_names, taken=TAKEN), REJECTED]
    clashing = _clashing_rows(job)
    classes: dict[str, str] = {}
    placed: dict[int, str] = {}  # rows and their files
    for picture in pictures(job):
        entry = picture.entry
        number = entry.classes[0] if entry.classes else -1
        name = file_name(entry.image, picture.suffix, entry.row, clashes=entry.row in clashing)
        placed[entry.row] = f"{folders[number]}/{name}"
        picture.place(job.path / placed[entry.row], mode)
        if number >= 0:
            classes[folders[number]] = job.class_names[number]
    content = json.dumps(dict(sorted(classes.items())), indent=2, ensure_ascii=False)
    (job.path / "classes.json").write_text(content, encoding="utf-8")
    write_images(job, np.array(list(placed), np.intp), list(placed.values()))


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
    ours = [name for name in job.decided_columns if name not in {"image", "final_label"}]
    label, number = ("labels", "class_numbers") if job.several else ("label", "class_number")
    taken = ["file_name", label, number, *ours, "path", "image"]
    named = [*job.crawl.text_fields, *job.crawl.other_columns]
    taken += [name for name in named if name.endswith(("file_name", "file_names"))]  # mean files
    free = free_names(named, taken=taken)
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
                **{free[name]: value for name, value in (entry.text | entry.others).items()},
            }
            file.write(json.dumps(line) + "\n")
