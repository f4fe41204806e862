"""Parquet and Arrow files, read so that a small file that was made to harm cannot fill the memory.

Both formats can say one long value a million times in a few bytes. So only a few rows are decoded
at a time, what comes out is counted, and a file that becomes far larger than it is gets refused.
"""

import functools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vsgraph.common.regular import is_regular, open_regular
from vsgraph.common.stores import is_stored
from vsgraph.errors import InputError

ENDINGS = (".parquet", ".arrow")
FEW = 64  # rows that are decoded at a time
BLOCK_BYTES = 2**26  # of decoded rows that are given together
ROW_BYTES = 256  # that a row takes at least, when it is read
LARGEST = 2**30  # decoded bytes that any file may have,
MOST_TIMES = 200  # or so many times its size
LARGEST_PACKED = 2**28  # bytes of a compressed Arrow file, which is decoded as a whole
MAGIC = b"ARROW1\0\0"  # before the stream in an Arrow file


class Budget:
    """Counts what comes out of a file, and refuses it when that is too much."""

    def __init__(self, file: Path) -> None:
        self.file, self.left = file, max(LARGEST, MOST_TIMES * file.stat().st_size)

    def take(self, n_bytes: int) -> None:
        """Count decoded bytes."""
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                f"{self.file}: its values take more than {MOST_TIMES} times the room of the file; "
                "if that is right, write it without dictionaries"
            )


def is_arrow(file: Path) -> bool:
    """Return whether a file is Parquet or Arrow, by its ending."""
    return file.suffix.lower() in ENDINGS


def is_parquet(file: Path) -> bool:
    """Return whether a file is Parquet, by its ending."""
    return file.suffix.lower() == ".parquet"


def schema_of(file: Path) -> pa.Schema:
    """Return the columns of a Parquet or Arrow file."""
    if not is_regular(file):
        raise InputError(f"{file} is not a file")
    return open_parquet(file).schema_arrow if is_parquet(file) else mapped(file).schema


def open_parquet(file: Path) -> pq.ParquetFile:
    """Open a Parquet file; one in an object store is read by range."""
    return pq.ParquetFile(open_regular(file) if is_stored(file) else file)


def first_field(fields: pa.Schema | pa.StructType, name: str) -> pa.Field:
    """Return the first field of a name, since a name may be there twice."""
    return fields.field(fields.get_all_field_indices(name)[0])


def column_batches(
    file: Path, names: Sequence[str], size: int, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """Yield blocks of some columns; without any name, blocks without columns.

    In Parquet, `a.b` is the field b of a column of structs a.
    """
    if is_parquet(file):
        decoded = open_parquet(file).iter_batches(min(FEW, size), columns=list(names))
        yield from _gathered(decoded, size, budget)
        return
    table = mapped(file)
    places = [table.schema.get_all_field_indices(name)[0] for name in names]
    for start in range(0, len(table), size):
        part = table.slice(start, size).select(places)
        part.validate(full=True)  # a mapped file is not checked before
        budget.take(part.num_rows * ROW_BYTES)
        yield from part.combine_chunks().to_batches()


def _gathered(
    decoded: Iterator[pa.RecordBatch], size: int, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """Join a few rows each to blocks of `size` rows, or fewer if these are large."""
    parts: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in decoded:
        parts.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        budget.take(batch.nbytes + batch.num_rows * ROW_BYTES)
        if n_rows >= size or n_bytes > BLOCK_BYTES:
            yield pa.concat_batches(parts)
            parts, n_rows, n_bytes = [], 0, 0
    if parts:
        yield pa.concat_batches(parts)


def is_packed(kind: pa.DataType) -> bool:
    """Return whether a column says a value that is there several times only once."""
    return (
        pa.types.is_dictionary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def unpacked(column: pa.Array, budget: Budget) -> pa.Array:
    """Return a packed column as plain values."""
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
    else:
        kind = pa.string() if pa.types.is_string_view(column.type) else pa.binary()
    parts = [pa.nulls(0, kind)]
    for start in range(0, len(column), FEW):
        parts.append(column.slice(start, FEW).cast(kind))
        budget.take(parts[-1].nbytes)
    return pa.concat_arrays(parts)


def mapped(file: Path) -> pa.Table:
    """Return an Arrow file, mapped from disk."""
    if is_stored(file):
        raise InputError(f"{file}: Arrow files are read from disk; copy it, or write Parquet")
    return _mapped(file, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _mapped(file: Path, changed: int) -> pa.Table:  # noqa: ARG001
    """Return an Arrow file; `changed` tells files of one name apart."""
    source = pa.memory_map(str(file))
    start = len(MAGIC) if source.read(len(MAGIC)) == MAGIC else 0  # its footer is not needed
    source.seek(start)
    size = sum(map(_unpacked_size, pa.ipc.MessageReader.open_stream(source)))
    if size > LARGEST_PACKED:
        raise InputError(
            f"{file} is compressed and takes {size / 1e9:.1f} GB in memory; write it without "
            "compression, or as Parquet"
        )
    source.seek(start)
    return pa.ipc.open_stream(source).read_all()


def _unpacked_size(message: pa.ipc.Message) -> int:
    """Return how many bytes the compressed values of a message take, by Arrow's flatbuffers."""
    if message.type not in {"record batch", "dictionary"}:
        return 0
    data, body = message.metadata.to_pybytes(), memoryview(message.body or b"")

    def number(kind: str, place: int) -> int:
        return int(struct.unpack_from(kind, data, place)[0])

    def field(table: int, n: int) -> int:
        """Return the place of a table's n-th field, 0 if it has none."""
        entries = table - number("<i", table)
        offset = number("<H", entries + 4 + 2 * n) if 4 + 2 * n < number("<H", entries) else 0
        return offset and table + offset

    def pointed(place: int) -> int:
        return place + number("<I", place)

    try:
        batch = pointed(field(pointed(0), 2))
        if message.type == "dictionary":
            batch = pointed(field(batch, 1))
        buffers = pointed(field(batch, 2)) if field(batch, 2) and field(batch, 3) else 0
        count = number("<I", buffers) if buffers else 0
        spans = [struct.unpack_from("<qq", data, buffers + 4 + 16 * i) for i in range(count)]
        sizes = [struct.unpack_from("<q", body, offset)[0] for offset, n in spans if n >= 8]
    except struct.error as error:
        raise pa.ArrowInvalid("damaged message") from error
    return sum(max(0, size) for size in sizes)
