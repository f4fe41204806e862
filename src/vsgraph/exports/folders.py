"""Folders of pictures: one folder per class."""

import json

import numpy as np

from vsgraph.common.files import RECORD
from vsgraph.exports.card import CARD
from vsgraph.exports.job import Job
from vsgraph.exports.names import file_name, folder_names, name_key
from vsgraph.exports.placement import Mode, check_mode, pictures
from vsgraph.exports.tables import IMAGES, write_images

REJECTED = "_rejected"
TAKEN = (REJECTED, RECORD, IMAGES, CARD, "classes.json", "problems.tsv")  # not for a class


def write_imagefolder(job: Job, *, mode: Mode = "link") -> None:
    """Write one folder of pictures per class.

    ``classes.json`` maps folders to class names, ``images.csv`` says what is known of each picture.
    `mode` is link (symbolic), hardlink or copy; pictures in shards are always copied. Rejected
    images go to the folder ``_rejected``. With a split, the folders are in ``train`` and so on.
    """
    check_mode(job, mode)
    folders = [*folder_names(job.class_names, taken=TAKEN), REJECTED]
    clashing = _clashing_rows(job)
    classes: dict[str, str] = {}
    placed: dict[int, str] = {}  # rows and their files
    for picture in pictures(job):
        entry = picture.entry
        number = entry.classes[0] if entry.classes else -1
        name = file_name(entry.image, picture.suffix, entry.row, clashes=entry.row in clashing)
        part = f"{entry.part}/" if entry.part else ""
        placed[entry.row] = f"{part}{folders[number]}/{name}"
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
