"""Files and folders that go to an object store and come from it, many at a time.

An object appears whole or not at all. A folder is whole when the file that is written last is
there: it goes up last, and is removed first.
"""

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from vsgraph.common.files import whole_file
from vsgraph.common.progress import bar
from vsgraph.common.room import check_disk, say_bytes
from vsgraph.common.store_systems import file_system, store_errors
from vsgraph.common.stores import StorePath, ahead
from vsgraph.errors import StoreError

CHUNK = 2**23
MUCH = 2**25  # bytes; more than that is told


def put_bytes(data: object, target: StorePath) -> None:
    """Write an object in one step, from bytes or a mapped file."""
    with store_errors(target):
        stream = file_system(target).open_output_stream(target.key)
        stream.write(data)  # all at once: an error or a signal in between would leave a part
        stream.close()


def put_file(source: Path, target: StorePath) -> int:
    """Write a file as an object, and return its size."""
    import pyarrow as pa

    size = source.stat().st_size
    if not size:  # cannot be mapped
        put_bytes(b"", target)
        return 0
    with pa.memory_map(str(source)) as mapped:
        put_bytes(mapped.read_buffer(), target)
    return size


def get_file(source: StorePath, target: Path) -> None:
    """Write an object as a file that appears whole."""
    with whole_file(target) as unfinished:
        _fetch(source, unfinished)


def _fetch(source: StorePath, target: Path) -> int:
    """Write an object to a file, and return its size."""
    size = 0
    with store_errors(source):
        stream = file_system(source).open_input_stream(source.key)
    with stream, target.open("wb") as file:
        while True:
            with store_errors(source):
                chunk = stream.read(CHUNK)
            if not chunk:
                return size
            size += file.write(chunk)


def state_of(path: StorePath) -> str | None:
    """Return what changes when an object does; None if it is missing."""
    with store_errors(path):
        try:
            with file_system(path).open_input_file(path.key) as file:
                values = {str(key).lower(): value for key, value in file.metadata().items()}
        except FileNotFoundError:
            return None
    names = ("etag", "generation", "content-length", "last-modified")
    return " ".join(str(values[name]) for name in names if name in values)


def objects_below(folder: StorePath) -> dict[str, int]:
    """Return the names and sizes of all objects below a folder, as they are now."""
    from pyarrow import fs

    selector = fs.FileSelector(folder.key, allow_not_found=True, recursive=True)
    with store_errors(folder):
        infos = file_system(folder).get_file_info(selector)
    start = len(folder.key) + 1
    return {info.path[start:]: info.size for info in infos if info.is_file}


def put_folder(folder: Path, target: StorePath, *, last: str) -> None:
    """Write all files of a folder, links followed, as objects; the one named `last` at the end."""
    files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    final = files.pop(last)
    sizes = {name: path.stat().st_size for name, path in files.items()}
    _move(f"upload of {target.name}", sizes, lambda name: put_file(files[name], target / name))
    put_file(final, target / last)


def get_folder(source: StorePath, folder: Path) -> None:
    """Fetch all objects below an address into a folder that is not in use yet."""
    sizes = objects_below(source)
    for name in sizes:
        parts = PurePosixPath(name).parts
        if ".." in parts or "\\" in name or "\0" in name or PurePosixPath(name).is_absolute():
            raise StoreError(f"{source}/{name}: such a name is not fetched")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    check_disk(folder, sum(sizes.values()))
    _move(f"fetching {source.name}", sizes, lambda name: _fetch(source / name, folder / name))


def _move(title: str, sizes: dict[str, int], one: Callable[[str], int]) -> None:
    """Move files in threads; how much it is, and how far it is, is told if it is much."""
    total = sum(sizes.values())
    with bar(total, f"{title} ({say_bytes(total)})", "B", progress=total > MUCH) as moved:
        for size in ahead(one, sizes):
            moved.update(size)


def remove_folder(folder: StorePath, *, first: str) -> None:
    """Remove all objects below an address; the one named `first` at the beginning."""
    remove_file(folder / first)
    with store_errors(folder):
        try:
            file_system(folder).delete_dir(folder.key)
        except FileNotFoundError:
            return


def remove_file(path: StorePath) -> None:
    """Remove an object, if it is there."""
    with store_errors(path):
        try:
            file_system(path).delete_file(path.key)
        except FileNotFoundError:
            return
