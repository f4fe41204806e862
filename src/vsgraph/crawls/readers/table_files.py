"""The files that tables come in, a block of text columns at a time."""

import csv as python_csv
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from vsgraph.crawls.columns import BLOCK, as_names, as_text, in_blocks
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import decode
from vsgraph.errors import InputError

LISTS = pa.list_(pa.string())


def header_of(file: Path) -> list[str]:
    """Return the names of a table's columns."""
    if file.stat().st_size == 0:
        raise InputError(f"{file} is empty")
    try:
        if file.suffix.lower() == ".parquet":
            return pq.read_schema(file).names
        if file.suffix.lower() in {".csv", ".tsv"}:
            return _csv_header(file)[0]
        return _keys_of(file)
    except pa.ArrowException as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _csv_header(file: Path) -> tuple[list[str], str]:
    """Return the names in the first line and what stands between them."""
    with file.open("rb") as opened:
        raw = opened.readline(2**20)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{file} is UTF-16; save it as UTF-8")
    line = decode(raw.removeprefix(b"\xef\xbb\xbf"))[0].rstrip("\r\n")
    between = "\t" if file.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
    return next(python_csv.reader([line], delimiter=between), []), between


def _keys_of(file: Path) -> list[str]:
    """Return the keys of the first thousand objects of a file of JSON lines."""
    keys: dict[str, None] = {}
    with file.open("rb") as opened:
        for _, line in zip(range(1000), opened, strict=False):
            row = _object(line)
            if row is not None:
                keys |= dict.fromkeys(row)
    if not keys:
        raise InputError(f"{file} holds no JSON objects, one a line")
    return list(keys)


def _object(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, None if it is none."""
    try:
        row = json.loads(decode(line)[0])
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def raw_blocks(file: Path, names: Sequence[str], problems: Problems) -> Iterator[pa.Table]:
    """Yield blocks of some columns, values as text or lists of text."""
    reader = _File(file, names, problems)
    ending = file.suffix.lower()
    try:
        if ending == ".parquet":
            yield from reader.parquet()
        elif ending in {".csv", ".tsv"}:
            yield from reader.csv()
        else:
            yield from reader.json_lines()
    except pa.ArrowException as error:
        raise InputError(f"{file} cannot be read: {error}") from error


@dataclasses.dataclass(frozen=True)
class _File:
    """Reads one file."""

    file: Path
    names: Sequence[str]
    problems: Problems

    def parquet(self) -> Iterator[pa.Table]:
        for batch in pq.ParquetFile(self.file).iter_batches(BLOCK, columns=self.names):
            yield pa.table(
                {name: self._as_strings(name, pa.chunked_array([batch.column(name)]))
                 for name in self.names}
            )  # fmt: skip

    def _as_strings(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of Parquet as text, or as lists of text where it holds lists."""
        kind = column.type
        if pa.types.is_dictionary(kind):
            return self._as_strings(name, column.cast(kind.value_type))
        if pa.types.is_struct(kind) or pa.types.is_binary(kind):
            raise InputError(
                f"{self.file}: column {name!r} holds {kind}, not text; write pictures as files and "
                "their paths as text"
            )
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return column.cast(LISTS)
        return column.cast(pa.string())

    def csv(self) -> Iterator[pa.Table]:
        header, between = _csv_header(self.file)

        def skip(row: Any) -> str:  # noqa: ANN401
            self.problems.add(
                "broken line", f"{self.file}, line {row.number}",
                f"{row.actual_columns} columns instead of {row.expected_columns}",
            )  # fmt: skip
            return "skip"

        reader = pa_csv.open_csv(
            self.file,
            pa_csv.ReadOptions(
                column_names=_unique(header), skip_rows=1, use_threads=False, block_size=2**24
            ),
            pa_csv.ParseOptions(
                delimiter=between, newlines_in_values=True, invalid_row_handler=skip
            ),
            pa_csv.ConvertOptions(
                include_columns=self.names, check_utf8=False,
                column_types=dict.fromkeys(self.names, pa.binary()),
            ),
        )  # fmt: skip
        row = 0
        for batch in reader:
            yield pa.table({name: self._decoded(batch.column(name), row) for name in self.names})
            row += batch.num_rows

    def _decoded(self, column: pa.Array, first: int) -> pa.ChunkedArray:
        """Return bytes as text; what is not UTF-8 is counted and read as Windows' Latin."""
        try:
            return pa.chunked_array([column.cast(pa.string())])
        except pa.ArrowInvalid:
            texts = []
            for i, raw in enumerate(column.to_pylist()):
                text, was_utf8 = ("", True) if raw is None else decode(raw)
                texts.append(text)
                if not was_utf8:
                    self.problems.add("text not in UTF-8", f"{self.file}, row {first + i + 1}")
            return pa.chunked_array([pa.array(texts, pa.string())])

    def json_lines(self) -> Iterator[pa.Table]:
        with self.file.open("rb") as opened:
            for lines in in_blocks(enumerate(opened, 1)):
                rows = [row for number, line in lines if (row := self._row(number, line))]
                yield pa.table({name: _json_column(rows, name) for name in self.names})

    def _row(self, number: int, line: bytes) -> dict[str, Any] | None:
        """Return the object of a line, counting what is none."""
        if not line.strip():
            return None
        if not decode(line)[1]:
            self.problems.add("text not in UTF-8", f"{self.file}, line {number}")
        row = _object(line)
        if row is None:
            self.problems.add("broken line", f"{self.file}, line {number}", "no JSON object")
        return row


def _unique(header: Sequence[str]) -> list[str]:
    """Return names of columns, a repeated one marked."""
    seen: dict[str, int] = {}
    names = []
    for name in header:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _json_column(rows: Sequence[Mapping[str, Any]], name: str) -> pa.ChunkedArray:
    """Return the values of a key as text, or as lists of text where any is a list."""
    values = [row.get(name) for row in rows]
    if any(isinstance(value, list) for value in values):
        return pa.chunked_array([pa.array(list(map(as_names, values)), LISTS)])
    return pa.chunked_array([pa.array(list(map(as_text, values)), pa.string())])
