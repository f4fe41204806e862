"""Where pictures lie, and whether their files are the ones that were read before."""

import hashlib
import time
from pathlib import Path
from typing import Any

from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.vectors import KEY, NOTHING

YOUNG = 2 * 10**9  # ns; some file systems tell times to two seconds


def references(crawl: Crawl, span: tuple[int, int]) -> str:
    """Return a digest of where pictures lie, and of the sizes and times of their files."""
    rows = _where(crawl, span)
    words = [str(row) for row in rows]
    for name in sorted({_file_of(row) for row in rows}):
        status = _status(crawl.root / name)
        words.append(f"{status.st_size} {status.st_mtime_ns}" if status else "missing")
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def pictures_digest(crawl: Crawl) -> str:
    """Return a digest of where all pictures lie, and of the sizes and times of their files."""
    spans = [(start, min(start + 1024, len(crawl))) for start in range(0, len(crawl), 1024)]
    words = "".join(references(crawl, span) for span in spans)
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()


def places(crawl: Crawl, span: tuple[int, int]) -> list[bytes]:
    """Return a digest per picture that stays the same only as long as its file is not touched.

    That is its place and all that the system tells of its file: size, number, time of its bytes and
    time of any change, which no program can set. A file that changed just now has none (`NOTHING`),
    for the next change might not show in its times.
    """
    root, now, found = crawl.root.resolve(), time.time_ns(), dict[str, str]()
    rows = _where(crawl, span)
    for name in {_file_of(row) for row in rows}:
        found[name] = _version(root / name, now)
    return [
        hashlib.blake2b(f"{root}\0{row}\0{version}".encode(), digest_size=KEY).digest()
        if (version := found[_file_of(row)])
        else NOTHING
        for row in rows
    ]


def _where(crawl: Crawl, span: tuple[int, int]) -> list[dict[str, Any]]:
    """Return where some pictures lie."""
    names = ["image", *(name for name in ("shard", "offset", "size") if crawl.has_shards)]
    return crawl.take(slice(*span)).table.select(names).to_pylist()


def _file_of(row: dict[str, Any]) -> str:
    return row.get("shard") or row["image"]


def _status(path: Path) -> Any:  # noqa: ANN401
    """Return what the system tells of a file; None if it is missing."""
    try:
        return path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None


def _version(path: Path, now: int) -> str:
    """Return what tells a file from all that may take its place; nothing if it is too young."""
    status = _status(path)
    if status is None:
        return ""
    changed = status.st_mtime_ns if is_stored(path) else status.st_ctime_ns
    number = 0 if is_stored(path) else status.st_ino
    is_young = now - max(changed, status.st_mtime_ns) < YOUNG
    return "" if is_young else f"{status.st_size} {status.st_mtime_ns} {changed} {number}"
