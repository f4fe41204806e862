"""One folder of pictures per class."""

import json

import numpy as np

from vsgraph.exports.job import Job
from vsgraph.exports.names import file_name, folder_names, name_key, repeated
from vsgraph.exports.placement import Mode, check_mode, pictures

REJECTED = "_rejected"


def write_imagefolder(job: Job, *, mode: Mode = "link") -> None:
    """Write one folder of pictures per class, and ``classes.json`` from folder to class name.

    Rejected images go to the folder ``_rejected``.

    Parameters
    ----------
    job : Job
        What to write; one label per image.
    mode : {'link', 'hardlink', 'copy'}
        Symbolic links, hard links or copies. Pictures in shards are always copied.
    """
    check_mode(job.crawl, mode)
    folders = [*folder_names(job.class_names, taken=[REJECTED]), REJECTED]
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
    keys = np.zeros(len(job.rows), np.uint64)
    n_seen = 0
    for rows in job.blocks():
        labels = job.correction.final_labels[rows].tolist()
        images = job.column("image", rows).to_pylist()
        keys[n_seen : n_seen + len(rows)] = [
            name_key(*pair) for pair in zip(labels, images, strict=True)
        ]
        n_seen += len(rows)
    return set(job.rows[repeated(keys)].tolist())
