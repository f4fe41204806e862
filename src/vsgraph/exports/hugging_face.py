"""Pictures and a metadata file, as Hugging Face ``datasets`` reads them."""

import json
from collections.abc import Iterable
from typing import Any

from vsgraph.exports.job import Job
from vsgraph.exports.names import numbered_name
from vsgraph.exports.placement import Mode, check_mode, pictures


def write_hf(job: Job, *, mode: Mode = "link") -> None:
    """Write pictures and metadata as ``load_dataset("imagefolder", data_dir=out)`` reads them.

    Several labels are a list; the label of a rejected image is null, or an empty list.

    Parameters
    ----------
    job : Job
        What to write.
    mode : {'link', 'hardlink', 'copy'}
        Symbolic links, hard links or copies. Pictures in shards are always copied.
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
