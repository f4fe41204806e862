"""Where pictures lie, and whether their files are the ones that were read before."""

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import Crawl, Fence
from vsgraph.encoders.vectors import KEY, NOTHING

YOUNG = 2 * 10**9  # ns; some file systems tell times to two seconds
YOUNG_STORED = 60 * 10**9  # the clock of a store is another machine's
Statuses = Mapping[str, os.stat_result | None]


class Look(NamedTuple):
    """What some rows refer to, without reading it."""

    digest: str  # of all that is told of it
    places: bytes = b""  # of pictures, 16 bytes per row; `NOTHING` where the file must be read


def look(crawl: Crawl, span: tuple[int, int]) -> Look:
    """Look where some pictures lie, and at the sizes and times of their files.

    The place of a picture stays the same only as long as its file is not touched. It is a digest of
    its path and of what the system tells of the file: size, number, time of its bytes and time of
    any change, which no program sets; in an object store size and time. A file that changed just
    now has none, for the next change might not show in its times; nor one that is not opened.
    """
    rows, statuses = _facts(crawl, span)
    root, fence = crawl.root.resolve(), Fence(crawl.root)
    versions = {
        name: _version(root, status) if fence.holds(name) else ""
        for name, status in statuses.items()
    }
    places = [
        _place(f"{root}\0{row}\0{versions[_file_of(row)]}") if versions[_file_of(row)] else NOTHING
        for row in rows
    ]
    return Look(_digest(rows, statuses), b"".join(places))


def pictures_digest(crawl: Crawl) -> str:
    """Return a digest of where all pictures lie, and of the sizes and times of their files."""
    spans = [(start, min(start + 1024, len(crawl))) for start in range(0, len(crawl), 1024)]
    words = "".join(_digest(*_facts(crawl, span)) for span in spans)
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()


def _facts(crawl: Crawl, span: tuple[int, int]) -> tuple[list[dict[str, Any]], Statuses]:
    """Return where some pictures lie, and what the system tells of their files."""
    names = ["image", *(name for name in ("shard", "offset", "size") if crawl.has_shards)]
    rows = crawl.take(slice(*span)).table.select(names).to_pylist()
    root = crawl.root if is_stored(crawl.root) else str(crawl.root)  # plain names: it is quicker
    return rows, {name: _status(root, name) for name in sorted({_file_of(r) for r in rows})}


def _file_of(row: dict[str, Any]) -> str:
    return row.get("shard") or row["image"]


def _status(root: Path | str, name: str) -> os.stat_result | None:
    """Return what the system tells of a file; None if it is missing."""
    try:
        if isinstance(root, str):
            return os.stat(f"{root}/{name}")  # noqa: PTH116  # a million times
        return (root / name).stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None


def _digest(rows: list[dict[str, Any]], statuses: Statuses) -> str:
    """Return a digest of where pictures lie, and of the sizes and times of their files."""
    told = [f"{s.st_size} {s.st_mtime_ns}" if s else "missing" for s in statuses.values()]
    return hashlib.sha256("\0".join([*map(str, rows), *told]).encode()).hexdigest()


def _version(root: Path, status: os.stat_result | None) -> str:
    """Return what tells a file from all that may take its place; nothing if that is not sure."""
    if status is None or not status.st_mtime_ns or os.name == "nt":  # no time of changes there
        return ""
    stored = is_stored(root)
    changed, number = (0, 0) if stored else (status.st_ctime_ns, status.st_ino)
    age = time.time_ns() - max(status.st_mtime_ns, changed)
    is_young = age < (YOUNG_STORED if stored else YOUNG)
    return "" if is_young else f"{status.st_size} {status.st_mtime_ns} {changed} {number}"


def _place(words: str) -> bytes:
    return hashlib.blake2b(words.encode(errors="surrogateescape"), digest_size=KEY).digest()
