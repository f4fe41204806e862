"""Files and folders that appear complete or not at all."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.stores import refuse_stored
from vsgraph.errors import FileError, InputError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

RECORD = "record.json"
LEFTOVER = ".vsgraph-"  # what unfinished files and folders are called
OWN = re.compile(rf"{re.escape(LEFTOVER)}(?P<name>.+)-[a-z0-9_]{{8}}", re.DOTALL)
NEW, OLD = "new", "old"  # within an unfinished folder
UNFINISHED = re.compile(rf"{re.escape(LEFTOVER)}(?P<name>[^/]+)-[a-z0-9_]{{8}}(/{NEW})?")
FORMAT = "vsgraph-2"
EXPORT = "vsgraph-export-1"
REPORT = "vsgraph-report-1"
CSR_PARTS = ("data", "indices", "indptr")
PREFIXES = {"anchors": "anchor"}  # of files, if not the name of the field
MANY_FILES = 32  # more of them reach the disk faster all at once
KINDS = {FORMAT: "a correction", EXPORT: "an export", REPORT: "a report"}


def refuse_file(folder: Path) -> None:
    """Raise an error if the path of a folder is a file, or in an object store."""
    refuse_stored(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose the name of a folder")


def refuse_taken(folder: Path, *, overwrite: bool, written_as: str = FORMAT) -> None:
    """Raise an error if a folder exists, unless it is of the same kind and may be replaced."""
    refuse_file(folder)
    if folder.exists() and not overwrite:
        raise InputError(
            f"{folder} exists already; choose another folder, or pass overwrite (--overwrite)"
        )
    if folder.exists() and any(folder.iterdir()) and not _is_like(folder, written_as):
        raise InputError(f"{folder} is not {KINDS[written_as]} of vsgraph and is left alone")


def _is_like(folder: Path, written_as: str) -> bool:
    """Return whether a folder's record is of a format, in any version."""
    try:
        values = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        written = str(values["format"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return written.rpartition("-")[0] == written_as.rpartition("-")[0]


@contextmanager
def new_folder(
    folder: Path, *, overwrite: bool = False, written_as: str = FORMAT
) -> Iterator[Path]:
    """Give a temporary folder that gets its final name if the block ends without an error."""
    refuse_taken(folder, overwrite=overwrite, written_as=written_as)
    with replaced_folder(folder) as fresh:
        yield fresh


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that replaces any folder of that name when the block ends.

    If the process is killed between the two renames, the old folder is put back by the next
    :func:`mend_leftovers`.
    """
    refuse_stored(folder)
    with file_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        mend_leftovers(folder.parent)
        with _unfinished(folder, is_folder=True) as scratch:
            try:
                fresh = scratch / NEW
                fresh.mkdir()
                yield fresh
                to_disk(fresh)
                if folder.exists():
                    folder.rename(scratch / OLD)
                fresh.rename(folder)
                sync_path(folder.parent)
            finally:
                _mend(scratch)


def to_disk(folder: Path) -> None:
    """Wait until a folder is on the disk, so that after a power cut its name means its content."""
    paths = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    if len(paths) > MANY_FILES and hasattr(os, "sync"):
        os.sync()
        return
    for path in paths:
        sync_path(path)


def sync_path(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if fcntl is None and path.is_dir():  # not on every system
        return
    handle = os.open(path, os.O_RDONLY if fcntl is not None else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_folder(folder: Path) -> None:
    """Remove a folder; nothing half-removed ever has its name."""
    with _unfinished(folder, is_folder=True) as scratch:
        folder.rename(scratch / "gone")
        shutil.rmtree(scratch)


def mend_leftovers(folder: Path) -> None:
    """Remove unfinished files and folders of killed processes; put back what was being replaced."""
    for path in folder.glob(f"{LEFTOVER}*"):
        is_plain = (path.is_file() or path.is_dir()) and not path.is_symlink()
        if not OWN.fullmatch(path.name) or not is_plain:
            continue
        with contextlib.suppress(OSError), _held(path) as is_held:
            if is_held:
                _mend(path)


def _mend(unfinished: Path) -> None:
    """Remove an unfinished file or folder; it stays if that fails, to be removed later."""
    target = unfinished.with_name(OWN.fullmatch(unfinished.name)["name"])  # type: ignore[index]
    with contextlib.suppress(OSError):
        if (unfinished / OLD).exists() and not target.exists():
            (unfinished / OLD).rename(target)
        shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)


@contextmanager
def _unfinished(path: Path, *, is_folder: bool) -> Iterator[Path]:
    """Give a new file or folder beside a path, marked as in use.

    Until it is marked, another process may take it for a leftover; then another one is made.
    """
    unfinished, mark = _new_name(path, is_folder=is_folder), None
    while fcntl is not None and (mark := _mark(unfinished)) is None:
        unfinished = _new_name(path, is_folder=is_folder)
    try:
        yield unfinished
    finally:
        if mark is not None:
            os.close(mark)


def _mark(unfinished: Path) -> int | None:
    """Mark a new file or folder as in use; None if it was taken for a leftover."""
    try:
        mark = os.open(unfinished, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(mark, fcntl.LOCK_EX)
    if unfinished.exists():
        return mark
    os.close(mark)
    return None


def _new_name(path: Path, *, is_folder: bool) -> Path:
    """Make an empty file or folder with a name of ours beside a path."""
    prefix = f"{LEFTOVER}{path.name}-"
    if is_folder:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
    handle, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    os.close(handle)
    return Path(name)


@contextmanager
def _held(unfinished: Path) -> Iterator[bool]:
    """Mark an unfinished file or folder as in use; False if another process uses it."""
    if fcntl is None:
        yield False
        return
    handle = os.open(unfinished, os.O_RDONLY)
    try:
        yield _try_lock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int | IO[str]) -> bool:
    """Lock an open file; False if another process holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def file_errors(path: Path | None = None) -> Iterator[None]:
    """Raise errors of the system as :class:`FileError`; `path` is what was to be written."""
    try:
        yield
    except (FileError, BrokenPipeError):  # the reader of what is printed has gone, no file
        raise
    except OSError as error:
        name = error.filename2 or error.filename or path
        final = None if name is None else UNFINISHED.sub(r"\g<name>", str(name))
        raise FileError.of(error, final) from error


def lock(path: Path) -> IO[str]:
    """Hold a lock until the process ends; raise an error if another process holds it."""
    file = path.open("w")
    if fcntl is None or _try_lock(file):
        return file
    file.close()
    raise InputError(f"{path.parent} is in use by another process; wait for it or end it")


def wait_for_lock(file: IO[Any]) -> None:
    """Lock an open file until it is closed; wait while another process holds it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)


def flat_arrays(record: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401
    """Return all arrays of a record, also nested, by the names of their files.

    A record is a mapping, a named tuple or a dataclass.

    >>> list(flat_arrays({"rows": np.arange(2), "graph": csr_array((2, 2)), "n": 2}))
    ['rows', 'graph_data', 'graph_indices', 'graph_indptr']
    """
    if dataclasses.is_dataclass(record):
        record = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    elif not isinstance(record, Mapping):
        record = record._asdict()
    arrays: dict[str, NDArray[Any]] = {}
    for key, value in record.items():
        name = PREFIXES.get(key, key)
        parts: Mapping[str, NDArray[Any]] = {}
        if isinstance(value, csr_array):
            parts = {part: getattr(value, part) for part in CSR_PARTS}
        elif dataclasses.is_dataclass(value):
            parts = flat_arrays(value)
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        arrays |= {f"{name}_{part}": array for part, array in parts.items()}
    return arrays


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as ``.npy`` files."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def new_array(path: Path, dtype: Any, shape: tuple[int, ...]) -> "np.memmap[Any, Any]":  # noqa: ANN401
    """Map a new ``.npy`` file; its room is taken at once, since later a full disk is fatal."""
    array = open_memmap(path, "w+", dtype, shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("rb+") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def load_csr(folder: Path, name: str, shape: tuple[int, int]) -> csr_array:
    """Map a sparse matrix that was saved by its :func:`flat_arrays`."""
    return csr_array(tuple(open_array(folder / f"{name}_{part}.npy") for part in CSR_PARTS), shape)


def load_record(folder: Path) -> dict[str, Any]:
    """Read the values of a saved correction."""
    try:
        values = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} holds no readable {RECORD}; was it written by vsgraph?"
        ) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{folder / RECORD} is not in the format {FORMAT}")
    return values


def open_array(path: Path) -> NDArray[Any]:
    """Map an array from a ``.npy`` file."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(
            f"{path} is not a complete array; give a .npy file of numbers, written by np.save"
        ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path} is an archive of arrays; give a .npy file for each")
    return array


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary file that gets its final name if the block ends without an error."""
    refuse_stored(path)
    with file_errors(path), _unfinished(path, is_folder=False) as unfinished:
        try:
            yield unfinished
            sync_path(unfinished)
            unfinished.chmod(0o644)
            unfinished.replace(path)
            sync_path(path.parent)
        finally:
            _mend(unfinished)


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears complete or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
