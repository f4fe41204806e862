"""A table that was given in memory, kept in the folder of its run."""

import filecmp
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vsgraph.common.files import whole_file
from vsgraph.crawls.readers.table_roles import KNOWN, named_like
from vsgraph.errors import InputError
from vsgraph.runs.names import TABLE

GROUP = 1024  # rows that are read together


def keep_table(data: Any, folder: Path) -> tuple[Path, Path]:  # noqa: ANN401
    """Write a table into a run's folder; return it and the folder that its paths start from.

    An equal table from an earlier run is left as it is, so that nothing is done again.
    """
    table = with_paths_alone(without_views(as_arrow(data)))
    path = folder / TABLE
    with whole_file(path) as unfinished:
        pq.write_table(table, unfinished, row_group_size=GROUP)
        if path.exists() and filecmp.cmp(path, unfinished, shallow=False):
            os.utime(unfinished, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    return path, _root_of(table)


def as_arrow(data: Any) -> pa.Table:  # noqa: ANN401
    """Return a table of any common kind as an Arrow table.

    >>> as_arrow([{"path": "a.jpg", "label": "crane"}]).num_rows
    1
    """
    try:
        if hasattr(data, "with_format") and hasattr(data, "features"):  # datasets.Dataset
            known = data.features.arrow_schema.metadata  # with the names of classes
            return data.with_format("arrow")[:].replace_schema_metadata(known)
        if hasattr(data, "__arrow_c_stream__"):  # Arrow, polars, pandas
            table = pa.table(data)
            return table.select([n for n in table.column_names if n != "__index_level_0__"])
        if isinstance(data, Mapping):
            return pa.table(dict(data))
        if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
            return pa.Table.from_pylist([dict(row) for row in data])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the table cannot be read: {error}") from error
    raise InputError(
        "crawl must be a path or a table (pandas, polars, Arrow, datasets, a list of dicts), got "
        f"{type(data).__name__}"
    )


def without_views(table: pa.Table) -> pa.Table:
    """Return a table whose text is not of the kinds that polars has, which few programs read.

    >>> tags = pa.array([["a"]], pa.list_(pa.string_view()))
    >>> without_views(pa.table({"tags": tags})).schema.types
    [ListType(list<item: string>)]
    """
    fields = [field.with_type(_without_views(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields, table.schema.metadata))


def _without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind


def with_paths_alone(table: pa.Table) -> pa.Table:
    """Return a table with paths in place of cells `{bytes, path}` that have no bytes.

    >>> cells = pa.array([{"bytes": None, "path": "a.jpg"}], pa.struct(
    ...     {"bytes": pa.binary(), "path": pa.string()}))
    >>> with_paths_alone(pa.table({"image": cells}))["image"].to_pylist()
    ['a.jpg']
    """
    for number, field in enumerate(table.schema):
        if pa.types.is_struct(field.type) and {f.name for f in field.type} >= {"bytes", "path"}:
            column = table[number]
            if pc.struct_field(column, "bytes").null_count == len(column):
                table = table.set_column(number, field.name, pc.struct_field(column, "path"))
    return table


def _root_of(table: pa.Table) -> Path:
    """Return the folder of all paths if they are absolute, else the working directory."""
    name = named_like(table.column_names, KNOWN["image"])
    if name is None or not pa.types.is_string(table[name].type):
        return Path.cwd()
    paths = pc.unique(table[name]).drop_null().to_pylist()
    if not paths or not all(map(os.path.isabs, paths)):
        return Path.cwd()
    return Path(os.path.commonpath(list(map(os.path.dirname, paths))))
