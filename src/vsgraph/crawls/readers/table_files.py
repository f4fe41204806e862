"""Files of tables, read one block of text columns at a time."""

import csv as python_csv
import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from vsgraph.common.regular import open_regular
from vsgraph.crawls.arrow_files import (
    Budget,
    column_batches,
    is_arrow,
    is_packed,
    schema_of,
    unpacked,
)
from vsgraph.crawls.columns import BLOCK, LISTS, as_names, as_text, as_written, in_blocks
from vsgraph.crawls.picture_tables import class_labels, named_classes, path_column, places
from vsgraph.crawls.problems import Problems, one_line
from vsgraph.crawls.readers.csv_records import LONGEST, CsvRecords, open_lines
from vsgraph.crawls.texts import LONGEST_TEXT, decode
from vsgraph.errors import InputError

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow")
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
MOST_BROKEN = 20_000  # lines; if they are also half of all, it is no table


def header_of(file: Path) -> list[str]:
    """Return the names of a table's columns."""
    if file.stat().st_size == 0:
        raise InputError(f"{file} is empty")
    try:
        if is_arrow(file):
            return schema_of(file).names
        if file.suffix.lower() in {".csv", ".tsv"}:
            return _csv_header(file)[0]
        return _keys_of(file)
    except UNREADABLE as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _csv_header(file: Path) -> tuple[list[str], str]:
    """Return the names in the first line, and the delimiter."""
    with open_lines(file) as lines:
        raw = lines.readline(2**20).encode("latin-1")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw:
        raise InputError(f"{file} is UTF-16; save it as UTF-8")
    line = decode(raw.removeprefix(b"\xef\xbb\xbf"))[0].rstrip("\n")
    delimiter = "\t" if file.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
    try:
        return next(python_csv.reader([line], delimiter=delimiter), []), delimiter
    except python_csv.Error as error:
        raise InputError(f"{file}: its first line holds no names of columns: {error}") from error


def _keys_of(file: Path) -> list[str]:
    """Return the keys of the first thousand objects of a file of JSON lines."""
    rows = [row for line in islice(_lines(file), 1000) if (row := _object(line))]
    if not rows:
        raise InputError(f"{file} holds no JSON objects, one per line")
    return list(dict.fromkeys(key for row in rows for key in row))


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file, at most the first `LONGEST` bytes of each."""
    with open_regular(file) as lines:
        while line := lines.readline(LONGEST):
            yield line
            while len(line) == LONGEST and not line.endswith(b"\n"):
                line = lines.readline(LONGEST)


def _object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line, None if there is none."""
    try:
        row = json.loads(decode(line)[0])
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def raw_blocks(
    file: Path,
    names: Sequence[str],
    problems: Problems,
    *,
    others: Sequence[str] = (),
    inside: tuple[str, Path] | None = None,
) -> Iterator[pa.Table]:
    """Yield blocks of some columns, values as text or lists of text; `others` as they are.

    `inside` is the column that holds the pictures, and the folder that they are named from: it
    becomes their names, and the columns of their places are added.
    """
    reader = _File(file, names, others, problems, inside)
    readers = dict.fromkeys((".parquet", ".arrow"), reader.arrow)
    readers |= {".csv": reader.csv, ".tsv": reader.csv}
    try:
        yield from readers.get(file.suffix.lower(), reader.json_lines)()
    except UNREADABLE as error:
        raise InputError(f"{file} cannot be read: {error}") from error


@dataclasses.dataclass(frozen=True)
class _File:
    """Reads one file."""

    file: Path
    names: Sequence[str]
    others: Sequence[str]
    problems: Problems
    inside: tuple[str, Path] | None = None

    def arrow(self) -> Iterator[pa.Table]:
        pictures = self.inside[0] if self.inside else None
        plain = [name for name in self.names if name != pictures]
        classes, first, budget = class_labels(self.file), 0, Budget(self.file)
        wanted = [*plain, *self.others]
        beside = path_column(self.file, pictures) if pictures else []
        for batch in column_batches(self.file, [*beside, *wanted], BLOCK, budget):
            own = {name: self._unpacked(_column(batch, name), budget) for name in wanted}
            columns = {
                name: self._as_strings(
                    name, pa.chunked_array([named_classes(own[name], classes.get(name))])
                )
                for name in plain
            }
            columns |= {name: _passed_on(own[name]) for name in self.others}
            if self.inside:
                columns |= places(self.file, *self.inside, first, batch)
            yield pa.table(columns)
            first += batch.num_rows

    def _unpacked(self, column: pa.Array, budget: Budget) -> pa.Array:
        """Return a column with plain values, so that nothing is decoded that is not counted."""
        while is_packed(column.type):
            column = unpacked(column, budget)
        return column

    def _as_strings(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of Parquet as text, or as lists of text if it holds lists."""
        kind = column.type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if (
            pa.types.is_struct(kind) or pa.types.is_binary(kind)
            or (is_list and is_packed(kind.value_type))
        ):  # fmt: skip
            raise InputError(
                f"{self.file}: column {name!r} holds {kind}, not text; write pictures as files and "
                "their paths as text"
            )
        if is_list:
            lists = column.cast(LISTS)
            lists.validate(full=True)
            return lists
        text = column.cast(pa.string())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            self.problems.add("text not in UTF-8", f"{self.file}: column {name!r}")
            raw = text.cast(pa.binary()).to_pylist()
            text = pa.chunked_array([pa.array(_decoded(raw), pa.string())])
        return text

    def csv(self) -> Iterator[pa.Table]:
        header, delimiter = _csv_header(self.file)
        wanted = [*self.names, *self.others]

        def skip(row: Any) -> str:  # noqa: ANN401
            self.problems.add(
                "broken line", f"{self.file}, line {row.number}",
                f"{row.actual_columns} columns instead of {row.expected_columns}",
            )  # fmt: skip
            broken = self.problems.counts["broken line"]
            return "error" if broken > MOST_BROKEN and 2 * broken > (row.number or 0) else "skip"

        read = pa_csv.ReadOptions(
            column_names=_unique(header), skip_rows=1, use_threads=False, block_size=4 * LONGEST
        )
        parse = pa_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
        )
        convert = pa_csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string())
        )
        with closing(CsvRecords(self.file, delimiter, self.problems)) as records:
            for batch in pa_csv.open_csv(records, read, parse, convert):
                yield pa.table({n: pa.chunked_array([batch.column(n)]) for n in wanted})

    def json_lines(self) -> Iterator[pa.Table]:
        for block in in_blocks(enumerate(_lines(self.file), 1)):
            rows = [row for number, line in block if (row := self._row(number, line))]
            yield pa.table(
                {name: _json_column(rows, name) for name in self.names}
                | {name: pa.array([as_written(row.get(name)) for row in rows], pa.string())
                   for name in self.others}
            )  # fmt: skip

    def _row(self, number: int, line: bytes) -> dict[str, Any] | None:
        """Return the JSON object in a line; add a problem if there is none."""
        if not line.strip():
            return None
        if not decode(line)[1]:
            self.problems.add("text not in UTF-8", f"{self.file}, line {number}")
        row = _object(line)
        if row is None:
            self.problems.add("broken line", f"{self.file}, line {number}", "not a JSON object")
        return row


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the first column of a name."""
    return batch.column(batch.schema.get_all_field_indices(name)[0])


def _passed_on(column: pa.Array) -> pa.Array:
    """Return a column of Parquet as text: null if it holds bytes, JSON if it is nested."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _holds_bytes(kind):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_nested(kind):
        return pa.array((as_written(cell.as_py()) for cell in column), pa.string())
    try:
        text = column.cast(pa.string())
    except pa.ArrowException:  # a type without text
        return pa.nulls(len(column), pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        text = pa.array(_decoded(text.cast(pa.binary()).to_pylist()), pa.string())
    return pc.utf8_slice_codeunits(text, 0, LONGEST_TEXT)


def _holds_bytes(kind: pa.DataType) -> bool:
    """Return whether a struct has a field of bytes, such as a picture."""
    fields = list(kind) if pa.types.is_struct(kind) else []
    return any(pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type) for f in fields)


def _decoded(cells: Iterable[bytes | None]) -> list[str | None]:
    """Return bytes as text, UTF-8 or Windows-1252."""
    return [None if cell is None else decode(cell)[0] for cell in cells]


def listed(header: Sequence[str]) -> str:
    r"""Return the first names of columns, for messages.

    >>> listed(["path", "la\x1bbel"]), listed(["x"] * 99)[-9:]
    ('path, la bel', 'x, x, ...')
    """
    return ", ".join([*(one_line(n[:40]) for n in header[:20]), *["..."][: len(header) > 20]])


def _unique(header: Sequence[str]) -> list[str]:
    """Return the names of columns, repeated ones with a number."""
    seen: Counter[str] = Counter()
    names = []
    for name in header:
        seen[name] += 1
        names.append(f"{name}#{seen[name]}" if seen[name] > 1 else name)
    return names


def _json_column(rows: Sequence[Mapping[str, Any]], name: str) -> pa.ChunkedArray:
    """Return the values of a key as text, or as lists of text if any is a list."""
    values = [row.get(name) for row in rows]
    if any(isinstance(value, list) for value in values):
        return pa.chunked_array([pa.array(list(map(as_names, values)), LISTS)])
    return pa.chunked_array([pa.array(list(map(as_text, values)), pa.string())])
