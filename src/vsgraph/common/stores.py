"""Addresses in object stores as paths: ``s3://`` and ``gs://``, by Arrow's file systems.

A :class:`StorePath` answers what readers ask of a path: what is there, of which size and time, and
its bytes by range. Anything else that is done with it is refused in one line. Keys and endpoints
come from the environment and are written nowhere.
"""

import fnmatch
import functools
import io
import posixpath
import re
import stat
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from vsgraph.common.store_systems import file_system, store_errors
from vsgraph.errors import InputError

SCHEMES = ("s3", "gs")
ODD = {"", ".", ".."}  # names of objects that are no names of files
HEADS = {f"{scheme}:" for scheme in SCHEMES}
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
BLOCK = 2**20  # bytes; smaller reads fetch so many
N_AHEAD, KEPT_BLOCKS = 8, 16  # of an open object
KEPT_HANDLES = 64  # open objects
AT_ONCE = 16  # requests
Item = TypeVar("Item")
Found = TypeVar("Found")


class Status(NamedTuple):
    """What a listing says of an object or folder."""

    st_size: int
    st_mtime_ns: int
    st_mode: int


class StorePath(type(Path())):  # type: ignore[misc]  # the concrete class of this system
    """A path in an object store, ``s3://bucket/key``, to read from."""

    def __str__(self) -> str:
        if not self.parts or self.parts[0] not in HEADS:  # relative to another
            return "/".join(self.parts) or "."
        return f"{self.parts[0]}//{'/'.join(self.parts[1:])}"

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    def __fspath__(self) -> str:
        refuse_stored(self)
        return str(self)  # relative to another

    @property
    def key(self) -> str:
        """The bucket and the name in it, as Arrow's file systems have it."""
        return "/".join(self.parts[1:])

    def resolve(self, *_: object, **__: object) -> Self:
        """Return the path without parts that lead upwards."""
        return type(self)(f"{self.parts[0]}//{posixpath.normpath(f'/{self.key}').lstrip('/')}")

    def absolute(self) -> Self:
        """Return the path itself."""
        return self

    def as_posix(self) -> str:
        """Return the address."""
        return str(self)

    def is_symlink(self) -> bool:
        """Return False: a store has no links."""
        return False

    def exists(self, **_: object) -> bool:
        """Return whether there is an object or a folder of this name."""
        return self._status() is not None

    def is_file(self, **_: object) -> bool:
        """Return whether there is an object of this name."""
        found = self._status()
        return found is not None and stat.S_ISREG(found.st_mode)

    def is_dir(self, **_: object) -> bool:
        """Return whether there are objects below this name."""
        found = self._status()
        return found is not None and stat.S_ISDIR(found.st_mode)

    def stat(self, **_: object) -> Status:
        """Return size, time and kind, from a listing of the whole folder; OSError if missing."""
        found = _listed(self.parent).get(self.name) if self.name else self._status()
        if found is None:
            raise FileNotFoundError(2, "No such object", str(self))
        return found

    def _status(self) -> Status | None:
        """Return size, time and kind by a request of its own, unless the folder was listed."""
        if str(self.parent) in _LISTED and len(self.parts) > 2:
            return _LISTED[str(self.parent)].get(self.name)
        with store_errors(self):
            return _as_status(file_system(self).get_file_info(self.key))

    def iterdir(self) -> Iterator[Self]:
        """Yield what a folder holds."""
        return (self / name for name in list(_listed(self)))

    def glob(self, pattern: str, **_: object) -> Iterator[Self]:
        """Yield what matches a pattern of names, ``*/x.csv``."""
        head, _slash, rest = pattern.partition("/")
        for name, found in list(_listed(self).items()):
            if fnmatch.fnmatchcase(name, head):
                if not rest:
                    yield self / name
                elif stat.S_ISDIR(found.st_mode):
                    yield from (self / name).glob(rest)

    def open(self, mode: str = "rb", *_: object, **__: object) -> Any:  # noqa: ANN401
        """Open an object to read its bytes by range."""
        if mode != "rb":
            refuse_stored(self)
        return io.BufferedReader(_Ranged(self))

    def read_range(self, start: int, size: int) -> bytes:
        """Return bytes of an object by one request; fewer at its end."""
        with store_errors(self):
            handle = _handle(str(self))
            return handle.read_at(max(0, min(size, handle.size() - start)), start)

    def read_bytes(self) -> bytes:
        """Return all bytes of an object."""
        with store_errors(self):
            return file_system(self).open_input_stream(self.key).readall()

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Return an object as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")


def place(path: str | Path) -> Path:
    """Return a path, or an address in a store, as it is opened: listings are made anew.

    >>> place("crawl/a.csv").name, str(place("s3://bucket/crawl/"))
    ('a.csv', 's3://bucket/crawl')
    >>> place("ftp://host/crawl")
    Traceback (most recent call last):
    vsgraph.errors.InputError: ftp://host/crawl: addresses begin with s3:// or gs://
    """
    text = str(path)
    if isinstance(path, Path) and path.parts and path.parts[0] in HEADS:
        text = f"{path.parts[0]}//{'/'.join(path.parts[1:])}"  # Path() takes one slash away
    found = ADDRESS.match(text)
    if found is None:
        return Path(path)
    rest = text[found.end() :]
    shown = text.partition("?")[0] if "@" not in text else f"{found[0]}..."
    if found[1].lower() not in SCHEMES:
        raise InputError(f"{shown}: addresses begin with s3:// or gs://")
    if "@" in rest.partition("/")[0] or "?" in rest:
        raise InputError(
            f"{shown}: keys, region and endpoint are not part of an address; set "
            "AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL ..."
        )
    if not rest.strip("/"):
        raise InputError(f"{shown} names no bucket, as in {found[0]}bucket/crawl")
    _LISTED.clear()
    return StorePath(f"{found[1].lower()}://{rest}").resolve()


def refuse_stored(path: Path) -> None:
    """Refuse an address, also one that lost its class by Path(), where files are needed."""
    if path.parts and path.parts[0] in HEADS:
        address = StorePath(*path.parts)
        raise InputError(f"{address} lies in an object store; this needs a path on this machine")


def is_stored(path: Path) -> bool:
    """Return whether a path is an address in an object store."""
    return isinstance(path, StorePath)


_LISTED: dict[str, dict[str, Status]] = {}  # by folder; see place


def _listed(folder: StorePath) -> dict[str, Status]:
    """Return what lies in a folder, by name, sorted; empty if there is none."""
    known = _LISTED.get(str(folder))
    if known is None:
        from pyarrow import fs

        selector = fs.FileSelector(folder.key, allow_not_found=True)
        with store_errors(folder):
            infos = file_system(folder).get_file_info(selector)
        found = {info.base_name: _as_status(info) for info in infos}
        known = {n: found[n] for n in sorted(found) if n not in ODD and found[n] is not None}  # type: ignore[misc]
        _LISTED[str(folder)] = known
    return known


def _as_status(info: Any) -> Status | None:  # noqa: ANN401
    """Return what Arrow says of an object, None if it is missing."""
    if not info.is_file:
        return None if info.type.name == "NotFound" else Status(0, 0, stat.S_IFDIR)
    return Status(info.size, info.mtime_ns or 0, stat.S_IFREG)


@functools.lru_cache(maxsize=KEPT_HANDLES)
def _open(address: str, _status: Status) -> Any:  # noqa: ANN401
    path = StorePath(address)
    return file_system(path).open_input_file(path.key)


def _handle(address: str) -> Any:  # noqa: ANN401
    """Return an open object, whose size is asked for once as long as it stays the same."""
    path = StorePath(address)
    return _open(address, path.stat())


class _Ranged(io.RawIOBase):
    """An object as a file: large reads are one request each, small ones come from blocks."""

    def __init__(self, path: StorePath) -> None:
        self.path, self.at = path, 0
        self.length = path.stat().st_size
        self.blocks: OrderedDict[int, Future[bytes]] = OrderedDict()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}
        self.at = starts[whence] + offset
        return self.at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        """Fill a buffer, or less of it; 0 at the end."""
        size = max(0, min(len(buffer), self.length - self.at))
        if size >= BLOCK:
            data = self.path.read_range(self.at, size)
        elif size:
            first = self.at // BLOCK * BLOCK
            data = self._block(first)[self.at - first : self.at - first + size]
        else:
            data = b""
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)

    def _block(self, first: int) -> bytes:
        """Return a block; if the one before was read, the next ones are fetched meanwhile."""
        n_more = N_AHEAD if first - BLOCK in self.blocks else 0
        for start in range(first, min(self.length, first + (n_more + 1) * BLOCK), BLOCK):
            if start not in self.blocks:
                self.blocks[start] = _threads().submit(self.path.read_range, start, BLOCK)
        self.blocks.move_to_end(first)
        while len(self.blocks) > KEPT_BLOCKS:
            self.blocks.popitem(last=False)
        return self.blocks[first].result()


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads that fetch blocks."""
    return ThreadPoolExecutor(AT_ONCE)


def ahead(work: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
    """Yield what a function returns for each item, some of them computed ahead in threads."""
    waiting: deque[Future[Found]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            for item in items:
                waiting.append(threads.submit(work, item))
                if len(waiting) >= AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
