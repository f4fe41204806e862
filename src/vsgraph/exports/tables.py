"""Tables of the corrected labels: CSV, Parquet, soft labels."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports.names import one_line
from vsgraph.exports.rows import Corrected
from vsgraph.exports.targets import Exported, export_file, export_folder
from vsgraph.result.correction import Correction

JOINT = "|"
MADE_BY = {b"vsgraph": b"export"}
_CSV_START = b'"image","web_label","final_label","decision","confidence","why","anchor"'


def to_csv(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write the corrected table as CSV: UTF-8, every text quoted, several labels joined by ``|``.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row.
    out : path
        The file.
    overwrite : bool
        Replace a table that is there already.
    progress : bool
        Show a progress bar.

    Returns
    -------
    exported : Exported
        All images, also the rejected ones, whose final label is empty.
    """
    both = Corrected.join(crawl, correction)
    if both.several and any(JOINT in name for name in both.names):
        raise InputError(f"a class has {JOINT} in its name, which joins labels in CSV; use parquet")
    with export_file(out, to="csv", overwrite=overwrite, is_ours=_is_our_csv) as (path, made):
        schema = _joined(both.table(slice(0, 0))).schema
        with pyarrow.csv.CSVWriter(path, schema) as writer:
            for rows in both.blocks(title="csv", progress=progress):
                writer.write_table(_joined(both.table(rows)))
        made.n_images = len(crawl)
    return made


def _joined(table: pa.Table) -> pa.Table:
    """Return a table whose lists of labels are one text each."""
    for i, name in enumerate(table.column_names):
        if pa.types.is_list(table[name].type):
            table = table.set_column(i, name, pc.binary_join(table[name], JOINT))
    return table


def _is_our_csv(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_CSV_START)) == _CSV_START


def to_parquet(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write the corrected table as Parquet; several labels are a list.

    Parameters
    ----------
    crawl, correction, out, overwrite, progress
        As in :func:`to_csv`.

    Returns
    -------
    exported : Exported
        All images, also the rejected ones, whose final label is null or an empty list.
    """
    both = Corrected.join(crawl, correction)
    with export_file(out, to="parquet", overwrite=overwrite, is_ours=_is_our_parquet) as (
        path,
        made,
    ):
        schema = both.table(slice(0, 0)).schema.with_metadata(MADE_BY)
        with pq.ParquetWriter(path, schema) as writer:
            for rows in both.blocks(title="parquet", progress=progress, most=2**16):
                writer.write_table(both.table(rows).replace_schema_metadata(MADE_BY))
        made.n_images = len(crawl)
    return made


def _is_our_parquet(path: Path) -> bool:
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return MADE_BY.items() <= metadata.items()


def to_soft(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write soft labels to fine-tune a network on, the highest of each image.

    A folder with ``soft_labels.parquet`` and ``class_names.txt``, a name a line in the order of the
    class numbers. Columns: `image`; `classes`, the numbers of the likeliest classes; `values`,
    their shares; `rest`, the sum of all others, which share it evenly. Rejected images have zeros.

    Parameters
    ----------
    crawl, correction, overwrite, progress
        As in :func:`to_csv`.
    out : path
        The folder.

    Returns
    -------
    exported : Exported
        All images, row by row.
    """
    both = Corrected.join(crawl, correction)
    with export_folder(out, crawl, to="soft", overwrite=overwrite) as (folder, made):
        soft = correction.soft_labels()
        width = soft.values.shape[1]
        schema = pa.schema(
            {
                "image": pa.string(),
                "classes": pa.list_(pa.int32()),
                "values": pa.list_(pa.float32()),
                "rest": pa.float32(),
            }
        )
        with pq.ParquetWriter(folder / "soft_labels.parquet", schema) as writer:
            for rows in both.blocks(title="soft", progress=progress):
                starts = pa.array(np.arange(rows.stop - rows.start + 1, dtype=np.int32) * width)
                classes = pa.array(soft.classes[rows].astype(np.int32).ravel())
                values = pa.array(soft.values[rows].ravel())
                columns = [
                    both.column("image", rows),
                    pa.ListArray.from_arrays(starts, classes),
                    pa.ListArray.from_arrays(starts, values),
                    pa.array(soft.rest[rows]),
                ]
                writer.write_table(pa.table(columns, schema=schema))
        write_names(folder / "class_names.txt", both.names)
        made.n_images = len(crawl)
    return made


def write_names(path: Path, names: tuple[str, ...]) -> None:
    """Write a name a line."""
    path.write_text("".join(f"{one_line(name)}\n" for name in names), encoding="utf-8")
