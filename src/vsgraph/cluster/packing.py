"""Work for other machines as bytes: functions with what they need, large arrays as files.

An array that is mapped from a file travels as the name of the file. Any other large array, and a
large table, is written to a file first, once, named by its content. So the bytes are few, they
change if anything changes that the work depends on, and a machine maps what it reads.
"""

import hashlib
import io
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from ray import cloudpickle

from vsgraph.common.files import whole_file
from vsgraph.common.stores import StorePath, place

SMALL = 2**16  # bytes that travel with the work itself


def pack(work: Callable[..., Any], folder: Path) -> bytes:
    """Return a function and what it refers to as bytes; `folder` is for large arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    _Packer(packed, folder).dump(work)  # type: ignore[no-untyped-call]
    return packed.getvalue()


def unpack(packed: bytes) -> Callable[..., Any]:
    """Return the function that was packed on another machine."""
    return cloudpickle.loads(packed)


def digest_of(*parts: bytes | memoryview) -> str:
    """Return a key of some bytes."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class _Packer(cloudpickle.Pickler):
    """Pickles a function; large arrays and tables become the names of their files."""

    def __init__(self, file: IO[bytes], folder: Path) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self.folder = folder

    def reducer_override(self, value: Any) -> Any:  # noqa: ANN401
        """Return how a value is made again; NotImplemented for the usual way."""
        if isinstance(value, StorePath):
            return place, (str(value),)
        if isinstance(value, Path):
            return Path, (str(value.absolute()),)
        if isinstance(value, np.ndarray) and value.nbytes > SMALL and not value.dtype.hasobject:
            return _map_array, _place(value) or self._written(value)
        if isinstance(value, pa.Table) and value.nbytes > SMALL:
            return _map_table, (self._written_table(value),)
        return super().reducer_override(value)  # type: ignore[no-untyped-call]

    def _written(self, array: NDArray[Any]) -> tuple[Any, ...]:
        """Write an array to a file named by its content, and return its place."""
        flat = array.T if array.flags.f_contiguous else np.ascontiguousarray(array)
        shape = f"{array.dtype.str} {array.shape} {array.flags.c_contiguous}".encode()
        path = (
            self.folder.absolute() / f"{digest_of(flat.reshape(-1).view(np.uint8).data, shape)}.npy"
        )
        if not path.exists():
            with whole_file(path) as unfinished, unfinished.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        place = _place(np.load(path, mmap_mode="r", allow_pickle=False))
        return () if place is None else place

    def _written_table(self, table: pa.Table) -> str:
        """Write a table to a file named by its content."""
        with whole_file(self.folder / "table") as unfinished:
            with (
                pa.OSFile(str(unfinished), "wb") as sink,
                pa.ipc.new_file(sink, table.schema) as writer,
            ):
                writer.write_table(table)
            with unfinished.open("rb") as file:
                key = hashlib.file_digest(file, "sha256").hexdigest()[:24]
        path = self.folder.absolute() / f"{key}.arrow"
        (self.folder / "table").replace(path)
        return str(path)


def _place(array: NDArray[Any]) -> tuple[Any, ...] | None:
    """Return the file that an array is mapped from and its place in it, as `_map_array` takes it.

    The time of the file is part of it, so that the work is another one if the file changes.
    """
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    flags = array.flags
    if not isinstance(root, np.memmap) or root.mode != "r" or not flags.forc:
        return None
    path = Path(str(root.filename)).absolute()
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    order = "C" if flags.c_contiguous else "F"
    stamp = path.stat().st_mtime_ns
    return str(path), stamp, array.dtype.str, root.offset + start, array.shape, order


def _map_array(
    path: str,
    _: int,  # the time of the file
    dtype: str,
    offset: int,
    shape: tuple[int, ...],
    order: Any,  # noqa: ANN401
) -> NDArray[Any]:
    """Map an array from its place in a file."""
    return np.asarray(np.memmap(path, dtype, "r", offset, shape, order))


def _map_table(path: str) -> pa.Table:
    """Map a table from a file."""
    return pa.ipc.open_file(pa.memory_map(path)).read_all()
