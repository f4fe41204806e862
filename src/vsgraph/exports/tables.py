"""Tables and lists of the corrected labels: CSV, Parquet, soft labels, a list for scripts."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.common.files import new_array
from vsgraph.errors import InputError
from vsgraph.exports.job import BLOCK_ROWS, Job
from vsgraph.exports.names import write_class_names
from vsgraph.result.correction import Correction

JOINT = "|"
IMAGES, FILE = "images.csv", "file"  # the table in a folder, its column of files there
MADE_BY = {b"vsgraph": b"export"}
_CSV_START = b'"image","web_label","final_label","decision","confidence","why","anchor"'
_SOFT_SCHEMA = pa.schema(
    {
        "image": pa.string(),
        "classes": pa.list_(pa.int32()),
        "values": pa.list_(pa.float32()),
        "rest": pa.float32(),
    }
)


def write_csv(job: Job) -> None:
    """Write the corrected table as CSV: UTF-8, all text quoted, several labels joined by ``|``."""
    if job.several and any(JOINT in name for name in job.class_names):
        raise InputError(f"a class name contains {JOINT}, which joins labels in CSV; use parquet")
    with pyarrow.csv.CSVWriter(job.path, _joined(job.empty_table()).schema) as writer:
        for rows in job.blocks():
            writer.write_table(_joined(job.table(rows)))


def write_images(job: Job, rows: NDArray[np.intp], files: Sequence[str] | None = None) -> None:
    """Write ``images.csv``, what is known of the images of a folder, in order.

    `files` are their names in the folder, if they are there. If the name of a class contains the
    bar that joins several labels, a tab joins them.
    """
    joint = "\t" if any(JOINT in name for name in job.class_names) else JOINT
    column = None if files is None else pa.array(files, pa.string())

    def table(block: slice) -> pa.Table:
        part = _joined(job.table(rows[block]), joint)
        return part if column is None else part.add_column(0, FILE, column[block])

    with pyarrow.csv.CSVWriter(job.path / IMAGES, table(slice(0, 0)).schema) as writer:
        for block in row_blocks(len(rows), row_bytes=len(job.class_names), most=BLOCK_ROWS):
            writer.write_table(table(block))


def _joined(table: pa.Table, joint: str = JOINT) -> pa.Table:
    """Return a table whose lists of labels are joined into one string each."""
    for i, name in enumerate(table.column_names):
        if pa.types.is_list(table[name].type):
            table = table.set_column(i, name, pc.binary_join(table[name], joint))
    return table


def is_our_csv(path: Path) -> bool:
    """Return whether a file starts as :func:`write_csv` writes it."""
    with path.open("rb") as file:
        return file.read(len(_CSV_START)) == _CSV_START


def write_parquet(job: Job) -> None:
    """Write the corrected table as Parquet; several labels are a list."""
    schema = job.empty_table().schema.with_metadata(MADE_BY)
    with pq.ParquetWriter(job.path, schema) as writer:
        for rows in job.blocks(most=2**16):
            writer.write_table(job.table(rows).replace_schema_metadata(MADE_BY))


def is_our_parquet(path: Path) -> bool:
    """Return whether a Parquet file has the mark of :func:`write_parquet`."""
    try:
        with path.open("rb") as file:
            metadata = pq.read_schema(file).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return MADE_BY.items() <= metadata.items()


def write_soft(job: Job) -> None:
    """Write soft labels to fine-tune a network on: the highest few of each image.

    ``soft_labels.parquet`` has the columns `image`; `classes`, the numbers of the likeliest
    classes; `values`, their shares; `rest`, the sum of all others, which share it evenly. A
    rejected image has zeros. ``class_names.txt`` names the classes in order, ``images.csv`` has
    everything else.
    """
    soft = job.correction.soft_labels()
    width = soft.values.shape[1]
    with pq.ParquetWriter(job.path / "soft_labels.parquet", _SOFT_SCHEMA) as writer:
        for rows in job.blocks():
            starts = pa.array(np.arange(len(rows) + 1, dtype=np.int32) * width)
            classes = pa.array(soft.classes[rows].astype(np.int32).ravel())
            values = pa.array(soft.values[rows].ravel())
            columns = [
                job.column("image", rows),
                pa.ListArray.from_arrays(starts, classes),
                pa.ListArray.from_arrays(starts, values),
                pa.array(soft.rest[rows]),
            ]
            writer.write_table(pa.table(columns, schema=_SOFT_SCHEMA))
    write_class_names(job.path / "class_names.txt", job.class_names)
    write_images(job, job.rows)


def write_imglist(job: Job, *, soft: bool = False) -> None:
    """Write ``imglist.txt`` with lines ``path number``, ``class_names.txt`` and ``images.csv``.

    The number follows the last space of a line. A path with a line break is left out and counted.
    With a split there is one list of each part, ``imglist-train.txt`` and so on. With `soft`, also
    write ``soft_labels.npy``, float32 of shape (n_lines, n_classes).
    """
    listed: list[int] = []
    names = [f"imglist-{part}.txt" for part in job.parts] or ["imglist.txt"]
    with ExitStack() as stack:
        files = [
            stack.enter_context((job.path / name).open("w", encoding="utf-8", newline="\n"))
            for name in names
        ]
        for entry in (entry for rows in job.blocks() for entry in job.entries(rows)):
            if "\n" in entry.image or "\r" in entry.image:
                job.leave_out(entry.row, "path with a line break")
                continue
            file = files[job.parts.index(entry.part) if entry.part else 0]
            file.write(f"{entry.image} {entry.classes[0]}\n")
            listed.append(entry.row)
    write_class_names(job.path / "class_names.txt", job.class_names)
    write_images(job, np.array(listed, np.intp))
    if soft:
        _write_soft_array(job.path / "soft_labels.npy", job.correction, np.array(listed, np.intp))


def _write_soft_array(path: Path, correction: Correction, rows: NDArray[np.intp]) -> None:
    """Write the soft labels of some rows as a dense array."""
    soft = correction.soft_labels()
    dense = new_array(path, np.float32, (len(rows), soft.n_classes))
    for block in row_blocks(len(rows), row_bytes=4 * soft.n_classes):
        dense[block] = soft[rows[block]]
    dense.flush()
