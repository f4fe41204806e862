"""Pictures and a metadata file, as Hugging Face ``datasets`` reads them."""

import csv
import json
from collections.abc import Iterable
from typing import IO, Any, Literal

from vsgraph.common.checks import check_one_of
from vsgraph.errors import InputError
from vsgraph.exports.job import Job
from vsgraph.exports.names import numbered_name
from vsgraph.exports.placement import Mode, Picture, check_mode, pictures


def write_hf(job: Job, *, mode: Mode = "link", metadata: Literal["jsonl", "csv"] = "jsonl") -> None:
    """Write pictures and metadata as ``load_dataset("imagefolder", data_dir=out)`` reads them.

    Several labels are a list; the label of a rejected image is null, or an empty list.

    Parameters
    ----------
    job : Job
        What to write.
    mode : {'link', 'hardlink', 'copy'}
        Symbolic links, hard links or copies. Pictures in shards are always copied.
    metadata : {'jsonl', 'csv'}
        JSON lines keep types and lists. CSV is for other programs; readers of it may take a class
        named 'None' for a missing value.
    """
    check_mode(job.crawl, mode)
    check_one_of("metadata", metadata, ("jsonl", "csv"))
    if job.several and metadata == "csv":
        raise InputError("metadata.csv holds one label per image; pass metadata='jsonl'")
    with (job.path / f"metadata.{metadata}").open("w", encoding="utf-8", newline="") as file:
        lines = _MetadataFile(job, file, metadata)
        for picture in pictures(job):
            name = f"images/{numbered_name(picture.entry.row, picture.suffix)}"
            picture.place(job.path / name, mode)
            lines.add(name, picture)


class _MetadataFile:
    """A metadata file: one line per picture."""

    def __init__(self, job: Job, file: IO[str], kind: str) -> None:
        self.file, self.several = file, job.several
        self.labels = ("labels", "class_numbers") if job.several else ("label", "class_number")
        ours = [n for n in job.empty_table().column_names if n not in {"image", "final_label"}]
        self.columns = ["file_name", *self.labels, *ours, "path"]
        self.texts = text_columns(job.crawl.text_fields, taken={*self.columns, "image"})
        self.csv: Any = None
        if kind == "csv":
            self.csv = csv.DictWriter(file, [*self.columns, *self.texts.values()])
            self.csv.writeheader()

    def add(self, name: str, picture: Picture) -> None:
        """Write the line of a picture."""
        entry = picture.entry
        one = entry.classes[0] if entry.classes else None
        values: dict[str, Any] = {
            "file_name": name,
            self.labels[0]: entry.columns["final_label"],
            self.labels[1]: entry.classes if self.several else one,
            **{key: entry.columns[key] for key in self.columns if key in entry.columns},
            "path": entry.image,
            **{self.texts[field]: text for field, text in entry.text.items()},
        }
        if self.csv is None:
            self.file.write(json.dumps(values) + "\n")
        else:
            self.csv.writerow(values)


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
