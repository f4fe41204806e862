"""Parquet and Arrow files, also with pictures inside, as the Hugging Face hub serves them.

A picture is a cell of bytes, or of `{bytes, path}`. It is named by its file and row, and read from
its group of rows when it is needed.
"""

import functools
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vsgraph.common.regular import is_regular, open_regular
from vsgraph.common.stores import is_stored
from vsgraph.errors import InputError

BYTES, PATH = "bytes", "path"
PLACE = ("shard", "offset", "size")
LARGEST_GROUP = 2**30  # bytes of a group of rows, which are read together
ARROW = (".parquet", ".arrow")
READING = threading.Lock()  # several threads want the same group of rows; one reads it


def is_arrow(file: Path) -> bool:
    """Return whether a file is Parquet or Arrow, by its ending."""
    return file.suffix.lower() in ARROW


def schema_of(file: Path) -> pa.Schema:
    """Return the columns of a Parquet or Arrow file."""
    if not is_regular(file):
        raise InputError(f"{file} is not a file")
    if file.suffix.lower() == ".parquet":
        return pq.read_schema(_source(file))
    return _mapped(file, file.stat().st_mtime_ns).schema


def _source(file: Path) -> Any:  # noqa: ANN401
    """Return what Arrow reads a file from: its path, or an object that is read by range."""
    return open_regular(file) if is_stored(file) else file


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
            return field.name if _holds_bytes(field.type.field(BYTES).type) else None
    binary = [field.name for field in schema if _holds_bytes(field.type)]
    known = ("image", "img", "picture", "jpg", "png", "webp", "image_bytes", "bytes")
    return next((name for name in binary if name.lower() in known), None)


def column_batches(file: Path, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """Yield blocks of some columns; without any name, blocks without columns."""
    if file.suffix.lower() == ".arrow":
        table = _mapped(file, file.stat().st_mtime_ns)
        for start in range(0, len(table), size):
            places = [table.schema.get_all_field_indices(name)[0] for name in names]
            part = table.slice(start, size).select(places)
            part.validate(full=True)  # a mapped file is not checked before
            part = part.combine_chunks()
            yield from part.to_batches()
        return
    yield from pq.ParquetFile(_source(file)).iter_batches(size, columns=list(names))


@functools.lru_cache(maxsize=64)
def _mapped(file: Path, changed: int) -> pa.Table:  # noqa: ARG001
    """Return an Arrow file, mapped from disk; `changed` tells files of one name apart."""
    if is_stored(file):
        raise InputError(f"{file}: Arrow files are read from disk; copy it, or write Parquet")
    source = pa.memory_map(str(file))
    try:
        return pa.ipc.open_stream(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_file(source).read_all()


def _first(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the first column of a name, checked."""
    column = table.column(table.schema.get_all_field_indices(name)[0])
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
            found[name] = list(map(str, inner["names"]))
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


def places(file: Path, column: str, root: Path, first: int, n_rows: int) -> dict[str, Any]:
    """Return the names and places of the pictures of a block of rows."""
    shard = file.relative_to(root).as_posix()
    rows = range(first, first + n_rows)
    suffixes = _suffixes(file, column, first, n_rows)
    names = [f"{shard}/{row:09d}{suffix}" for row, suffix in zip(rows, suffixes, strict=True)]
    return {
        column: pa.array(names, pa.string()),
        "shard": pa.array([shard] * n_rows, pa.string()),
        "offset": pa.array(rows, pa.int64()),
        "size": pa.array([_mean_size(file, column, file.stat().st_mtime_ns)] * n_rows, pa.int64()),
    }


@functools.lru_cache(maxsize=64)
def _mean_size(file: Path, column: str, changed: int) -> int:  # noqa: ARG001
    """Return the mean number of bytes of a picture in a file, at least 1."""
    if file.suffix.lower() == ".arrow":
        return max(1, file.stat().st_size // max(1, len(_mapped(file, file.stat().st_mtime_ns))))
    record = pq.ParquetFile(_source(file)).metadata
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


def _suffixes(file: Path, column: str, first: int, n_rows: int) -> list[str]:
    """Return the ending of the path that stands beside each picture, '' if there is none."""
    kind = schema_of(file).field(column).type
    if not pa.types.is_struct(kind) or PATH not in {field.name for field in kind}:
        return [""] * n_rows
    paths = _paths(file, column, file.stat().st_mtime_ns)[first : first + n_rows].to_pylist()
    endings = (PurePosixPath(path or "").suffix.lower() for path in paths)
    return [e if e.isascii() and e[1:].isalnum() and len(e) < 6 else "" for e in endings]


@functools.lru_cache(maxsize=1)
def _paths(file: Path, column: str, changed: int) -> pa.ChunkedArray:
    """Return the paths that stand beside the pictures of a file."""
    if file.suffix.lower() == ".arrow":
        cells = _first(_mapped(file, changed), column)
        return pc.struct_field(cells, PATH).cast(pa.string())
    table = pq.ParquetFile(_source(file)).read([f"{column}.{PATH}"])
    return pc.struct_field(_first(table, column), PATH).cast(pa.string())


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
    if file.suffix.lower() == ".arrow":
        return np.zeros(1, np.int64)
    record = pq.ParquetFile(_source(file)).metadata
    counts = [record.row_group(i).num_rows for i in range(record.num_row_groups)]
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


@functools.lru_cache(maxsize=3)
def _cells(file: Path, changed: int, number: int) -> pa.ChunkedArray:
    """Return the pictures of a group of rows, as bytes."""
    column = picture_column(file)
    if column is None:
        raise OSError(f"{file} has no pictures any more")
    if file.suffix.lower() == ".arrow":
        cells = _first(_mapped(file, changed), column)
    else:
        reader = pq.ParquetFile(_source(file))
        size = _group_bytes(reader.metadata, column)[number]
        if size > LARGEST_GROUP:
            raise InputError(
                f"{file}: a group of rows has {size / 1e9:.1f} GB of pictures, which are read "
                "together; write it again with smaller ones (row_group_size=1000)"
            )
        cells = _first(reader.read_row_group(number, columns=[column]), column)
    return pc.struct_field(cells, BYTES) if pa.types.is_struct(cells.type) else cells
