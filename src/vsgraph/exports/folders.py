"""Folders of pictures: one a class, or one with a metadata file as Hugging Face reads it."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_one_of
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports.names import file_name, folder_names, name_key, numbered_name, repeated
from vsgraph.exports.placement import Mode, Picture, check_mode, pictures
from vsgraph.exports.rows import Corrected
from vsgraph.exports.targets import Exported, export_folder
from vsgraph.result.correction import Correction

REJECTED = "_rejected"


def to_imagefolder(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    mode: Mode = "link",
    rejected: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write a folder a class with its pictures, and ``classes.json`` from folder to class name.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row; one label an image.
    out : path
        The folder.
    mode : {'link', 'hardlink', 'copy'}
        Symbolic links, hard links or copies. Pictures within shards are always copied.
    rejected : bool
        Put rejected images into a folder ``_rejected``; they are left out otherwise.
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
    both.refuse_several("imagefolder")
    check_mode(crawl, mode)
    folders = [*folder_names(both.names, taken=[REJECTED]), REJECTED]
    with export_folder(out, crawl, to="imagefolder", overwrite=overwrite) as (root, made):
        used: dict[str, str | None] = {}
        clashes = _clashes(both)
        for rows in both.blocks(title="imagefolder", progress=progress):
            chosen = both.rows(rows, rejected=rejected)
            for picture in pictures(crawl, chosen, made.problems):
                row = picture.of
                folder = folders[row.classes[0] if row.classes else -1]
                name = file_name(row.image, picture.suffix, row.row, clashes=clashes[row.row])
                picture.place(root / folder / name, mode)
                used[folder] = row.values["final_label"]
                made.n_images += 1
        used.pop(REJECTED, None)
        content = json.dumps(dict(sorted(used.items())), indent=2, ensure_ascii=False)
        (root / "classes.json").write_text(content, encoding="utf-8")
    return made


def _clashes(both: Corrected) -> NDArray[np.bool_]:
    """Tell which images have the name of an earlier one of their folder."""
    keys = np.empty(len(both.crawl), np.uint64)
    for rows in both.blocks(title="names", progress=False):
        images = both.column("image", rows).to_pylist()
        folders = both.correction.final_labels[rows].tolist()
        keys[rows] = [name_key(*pair) for pair in zip(folders, images, strict=True)]
    return repeated(keys)


def to_hf(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    mode: Mode = "link",
    metadata: Literal["jsonl", "csv"] = "jsonl",
    rejected: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write pictures and metadata as ``load_dataset("imagefolder", data_dir=out)`` reads them.

    Parameters
    ----------
    crawl, correction, out, mode, overwrite, progress
        As in :func:`to_imagefolder`; several labels an image become lists.
    metadata : {'jsonl', 'csv'}
        Lines of JSON keep types and lists. CSV is for other programs: its readers may take a class
        named 'None' for nothing.
    rejected : bool
        Take rejected images as well, their label null.

    Returns
    -------
    exported : Exported
        Images that could be read; the others are counted.
    """
    both = Corrected.join(crawl, correction)
    check_mode(crawl, mode)
    check_one_of("metadata", metadata, ("jsonl", "csv"))
    if both.several and metadata == "csv":
        raise InputError("metadata.csv has room for one label an image; say metadata='jsonl'")
    with export_folder(out, crawl, to="hf", overwrite=overwrite) as (root, made):
        lines = _Lines(both, metadata)
        with (root / f"metadata.{metadata}").open("w", encoding="utf-8", newline="") as file:
            lines.start(file)
            for rows in both.blocks(title="hf", progress=progress):
                chosen = both.rows(rows, rejected=rejected)
                for picture in pictures(crawl, chosen, made.problems):
                    name = f"images/{numbered_name(picture.of.row, picture.suffix)}"
                    picture.place(root / name, mode)
                    lines.write(name, picture)
                    made.n_images += 1
    return made


class _Lines:
    """The lines of a metadata file."""

    def __init__(self, both: Corrected, kind: str) -> None:
        self.kind = kind
        self.labels = ("labels", "class_numbers") if both.several else ("label", "class_number")
        ours = ["web_label", "decision", "confidence", "why", "anchor"]
        ours += ["source"] if "source" in both.crawl.table.column_names else []
        self.columns = ["file_name", *self.labels, *ours, "path"]
        self.texts = text_columns(both.crawl.text_fields, taken={*self.columns, "image"})

    def start(self, file: IO[str]) -> None:
        """Write what comes first."""
        self.file = file
        self.writer = csv.DictWriter(file, [*self.columns, *self.texts.values()])
        if self.kind == "csv":
            self.writer.writeheader()

    def write(self, name: str, picture: Picture) -> None:
        """Write the line of a picture."""
        row = picture.of
        one = row.classes[0] if row.classes else None
        values: dict[str, Any] = {
            "file_name": name,
            self.labels[0]: row.values["final_label"],
            self.labels[1]: one if self.labels[1] == "class_number" else row.classes,
            **{key: row.values[key] for key in self.columns if key in row.values},
            "path": row.image,
            **{self.texts[field]: text for field, text in row.text.items()},
        }
        if self.kind == "csv":
            self.writer.writerow(values)
        else:
            self.file.write(json.dumps(values) + "\n")


def text_columns(fields: Iterable[str], *, taken: set[str]) -> dict[str, str]:
    """Return a column for each text field that is not taken and is not read as a file's name.

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
