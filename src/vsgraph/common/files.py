"""Files and folders that appear complete or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.errors import InputError

RECORD = "record.json"
LEFTOVER = ".vsgraph-"  # what unfinished files and folders are called
FORMAT = "vsgraph-2"
EXPORT = "vsgraph-export-1"
REPORT = "vsgraph-report-1"
KINDS = {FORMAT: "a correction", EXPORT: "an export", REPORT: "a report"}


def refuse_file(folder: Path) -> None:
    """Raise an error if the path of a folder is a file."""
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
    """Give a temporary folder that replaces any folder of that name when the block ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{LEFTOVER}{folder.name}-", dir=folder.parent))
    try:
        fresh = scratch / "new"
        fresh.mkdir()
        yield fresh
        if folder.exists():
            folder.rename(scratch / "old")
        fresh.rename(folder)
    finally:
        shutil.rmtree(scratch)


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished files and folders of killed processes."""
    for path in folder.glob(f"{LEFTOVER}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def lock(path: Path) -> IO[str]:
    """Hold a lock until the process ends; raise an error if another process holds it."""
    file = path.open("w")
    try:
        import fcntl
    except ImportError:  # not on every system
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InputError(
            f"{path.parent} is in use by another process; wait for it or end it"
        ) from error
    return file


def save_record(
    folder: Path,
    arrays: Mapping[str, NDArray[Any] | None],
    values: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write arrays as ``.npy`` files and values as JSON; an array that is None is left out."""
    with new_folder(folder, overwrite=overwrite) as fresh:
        for name, array in arrays.items():
            if array is not None:
                np.save(fresh / f"{name}.npy", array, allow_pickle=False)
        content = json.dumps({"format": FORMAT, **values}, indent=2)
        (fresh / RECORD).write_text(content, encoding="utf-8")


def load_record(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what :func:`save_record` wrote; arrays are mapped, not copied."""
    try:
        values = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} holds no readable {RECORD}; was it written by vsgraph?"
        ) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{folder / RECORD} is not in the format {FORMAT}")
    return {path.stem: open_array(path) for path in sorted(folder.glob("*.npy"))}, values


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
    handle, name = tempfile.mkstemp(prefix=f"{LEFTOVER}{path.name}-", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.chmod(0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears complete or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
