"""Parquet and Arrow files, also with pictures inside, as the Hugging Face hub serves them.

A picture is a cell of bytes, or of `{bytes, path}`. It is named by its file and row, and read from
its group of rows when it is needed.
"""

import functools
import json
import threading
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.arrow_files import (
    first_field,
    is_arrow,
    is_parquet,
    mapped,
    open_parquet,
    schema_of,
)
from vsgraph.errors import InputError

BYTES, PATH = "bytes", "path"
PLACE = ("shard", "offset", "size")
LARGEST_GROUP = 2**30  # bytes of a group of rows, which are kept together
FEW = 16  # pictures that are decoded at a time
READING = threading.Lock()  # several threads want the same group of rows; one reads it


def _holds_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def picture_column(file: Path) -> str | None:
    """Return the column that holds pictures themselves, None if there is none."""
    try:
        return _picture_column(schema_of(file)) if is_arrow(file) else None
    except (pa.ArrowException, OSError, ValueError):  # told when it is read
        return None


def _picture_column(schema: pa.Schema) -> str | None:
    for field in schema:
        if pa.types.is_struct(field.type) and BYTES in {f.name for f in field.type}:
            kinds = [f.type for f in field.type if f.name == BYTES]
            return field.name if len(kinds) == 1 and _holds_bytes(kinds[0]) else None
    binary = [field.name for field in schema if _holds_bytes(field.type)]
    known = ("image", "img", "picture", "jpg", "png", "webp", "image_bytes", "bytes")
    return next((name for name in binary if name.lower() in known), None)


def _cells_of(batch: pa.RecordBatch | pa.Table, name: str) -> Any:  # noqa: ANN401
    """Return the first column of a name, checked."""
    column = batch.column(batch.schema.get_all_field_indices(name)[0])
    column.validate(full=True)
    return column


def class_labels(file: Path) -> dict[str, list[str]]:
    """Return the names of the classes of each column of class numbers, as ``datasets`` notes."""
    try:
        note = json.loads((schema_of(file).metadata or {}).get(b"huggingface", b"{}"))
        features = note["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    found = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = feature[0] if isinstance(feature, list) and feature else feature
        inner = inner.get("feature", inner) if isinstance(inner, dict) else {}
        if isinstance(inner, dict) and isinstance(inner.get("names"), list):
            names = (str(one).encode("utf-8", "replace").decode() for one in inner["names"])
            found[name] = list(names)
    return found


def named_classes(column: pa.Array, names: list[str] | None) -> pa.Array:
    """Return numbers of classes, or lists of them, as names; -1 and others become null."""
    if names is None:
        return column
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        flat = named_classes(pc.list_flatten(column), names)
        lists = column.cast(pa.list_(column.type.value_type))
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        starts = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        return pa.ListArray.from_arrays(starts, flat, mask=lists.is_null())
    if not pa.types.is_integer(column.type):
        return column
    known = pc.and_(pc.greater_equal(column, 0), pc.less(column, len(names)))
    numbers = pc.if_else(known, column, pa.scalar(None, column.type))
    return pa.array(names, pa.string()).take(numbers)


def path_column(file: Path, column: str) -> list[str]:
    """Return the column of the paths that stand beside the pictures, if there is one."""
    kind = first_field(schema_of(file), column).type
    if not pa.types.is_struct(kind) or PATH not in {field.name for field in kind}:
        return []
    return [f"{column}.{PATH}"] if is_parquet(file) else [column]


def places(
    file: Path, column: str, root: Path, first: int, batch: pa.RecordBatch
) -> dict[str, Any]:
    """Return the names and places of the pictures of a block of rows."""
    shard, n_rows = file.relative_to(root).as_posix(), batch.num_rows
    rows = range(first, first + n_rows)
    suffixes = [""] * n_rows
    if column in batch.schema.names:
        suffixes = _suffixes(_cells_of(batch, column))
    names = [f"{shard}/{row:09d}{suffix}" for row, suffix in zip(rows, suffixes, strict=True)]
    return {
        column: pa.array(names, pa.string()),
        "shard": pa.array([shard] * n_rows, pa.string()),
        "offset": pa.array(rows, pa.int64()),
        "size": pa.array([_mean_size(file, column, file.stat().st_mtime_ns)] * n_rows, pa.int64()),
    }


def _suffixes(cells: pa.StructArray) -> list[str]:
    """Return the ending of the path that stands beside each picture, '' if it has none."""
    paths = (path.as_py() for path in pc.struct_field(cells, PATH))  # one at a time: some are long
    endings = (PurePosixPath(str(path or "")).suffix.lower() for path in paths)
    return [e if e.isascii() and e[1:].isalnum() and len(e) < 6 else "" for e in endings]


@functools.lru_cache(maxsize=64)
def _mean_size(file: Path, column: str, changed: int) -> int:  # noqa: ARG001
    """Return the mean number of bytes of a picture in a file, at least 1."""
    if not is_parquet(file):
        return max(1, file.stat().st_size // max(1, len(mapped(file))))
    record = open_parquet(file).metadata
    return max(1, sum(_group_bytes(record, column)) // max(1, record.num_rows))


def _group_bytes(record: Any, column: str) -> list[int]:  # noqa: ANN401
    """Return how many bytes of a column each group of rows of a Parquet file has."""
    sizes = []
    for number in range(record.num_row_groups):
        group = record.row_group(number)
        parts = [group.column(i) for i in range(group.num_columns)]
        own = [p for p in parts if p.path_in_schema in {column, f"{column}.{BYTES}"}]
        sizes.append(sum(part.total_uncompressed_size for part in own))
    return sizes


def read_picture_cell(file: Path, row: int, most: int) -> bytes:
    """Return at most so many bytes of the picture in a row of a file; empty if there is none."""
    changed = file.stat().st_mtime_ns
    starts = _starts(file, changed)
    number = int(np.searchsorted(starts, row, side="right")) - 1
    with READING:
        cells = _cells(file, changed, number)
    value = cells[row - int(starts[number])].as_py()
    return b"" if value is None else value[:most]


@functools.lru_cache(maxsize=64)
def _starts(file: Path, changed: int) -> Any:  # noqa: ANN401, ARG001
    """Return the first row of each group of rows of a file."""
    if not is_parquet(file):
        return np.zeros(1, np.int64)
    record = open_parquet(file).metadata
    counts = [record.row_group(i).num_rows for i in range(record.num_row_groups)]
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


@functools.lru_cache(maxsize=3)
def _cells(file: Path, changed: int, number: int) -> pa.ChunkedArray:  # noqa: ARG001
    """Return the pictures of a group of rows, as bytes."""
    column = picture_column(file)
    if column is None:
        raise OSError(f"{file} has no pictures any more")
    if not is_parquet(file):
        return _bytes_of(_cells_of(mapped(file), column))
    batches = open_parquet(file).iter_batches(FEW, row_groups=[number], columns=[column])
    parts, size = [], 0
    for batch in batches:
        parts.append(_bytes_of(_cells_of(batch, column)))
        size += parts[-1].nbytes
        if size > LARGEST_GROUP:
            raise InputError(
                f"{file}: a group of rows has more than {LARGEST_GROUP / 1e9:.1f} GB of pictures, "
                "which are kept together; write it again with smaller ones (row_group_size=1000)"
            )
    return pa.chunked_array(parts)


def _bytes_of(cells: Any) -> Any:  # noqa: ANN401
    return pc.struct_field(cells, BYTES) if pa.types.is_struct(cells.type) else cells
