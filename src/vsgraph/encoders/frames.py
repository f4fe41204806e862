"""Files that batches are appended to, each with a checksum; what was torn by a crash is cut off.

A frame is a fixed head (mark, lengths, checksum), a line of JSON, and bytes.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vsgraph.errors import InputError

HEAD = struct.Struct("<4sIQ16s")
MARK = b"VSG1"
SHARD_BYTES = 256 * 2**20
MOST_JSON = 2**24


@dataclasses.dataclass(frozen=True)
class Frame:
    """A batch on disk: its values, and where its bytes lie."""

    values: dict[str, Any]
    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        """Return the bytes."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


class FrameLog:
    """Frames in numbered files of some 256 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.damaged = 0

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("shard-*.bin"))

    def scan(self) -> Iterator[Frame]:
        """Yield the whole frames in order; cut off a torn end, step over damage in the middle."""
        for path in self._paths():
            size = path.stat().st_size
            with path.open("r+b") as file:
                at = 0
                while at < size:
                    frame, after = _read_frame(file, path, at, size)
                    if after > size or (frame is None and after == at):
                        file.truncate(at)
                        break
                    if frame is None:
                        self.damaged += 1
                    else:
                        yield frame
                    at = after

    def append(self, values: dict[str, Any], content: bytes) -> Frame:
        """Write a frame at the end."""
        paths = self._paths()
        path = paths[-1] if paths else self.folder / "shard-00000.bin"
        if path.exists() and path.stat().st_size >= SHARD_BYTES:
            path = self.folder / f"shard-{len(paths):05d}.bin"
        line = json.dumps(values).encode()
        head = HEAD.pack(MARK, len(line), len(content), _checksum(line, content))
        with path.open("ab") as file:
            start = file.tell()
            try:
                file.write(head + line + content)
            except OSError:
                file.truncate(start)
                raise
        return Frame(values, path, start + HEAD.size + len(line), len(content))


def _checksum(line: bytes, content: bytes) -> bytes:
    digest = hashlib.blake2b(line, digest_size=16)
    digest.update(content)
    return digest.digest()


def _read_frame(file: Any, path: Path, at: int, size: int) -> tuple[Frame | None, int]:  # noqa: ANN401
    """Return the frame at a place, None if it is damaged, and where the next one starts."""
    file.seek(at)
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return None, size + 1
    mark, n_line, n_content, checksum = HEAD.unpack(head)
    if mark != MARK or n_line > MOST_JSON:
        return None, at
    after = at + HEAD.size + n_line + n_content
    if after > size:
        return None, after
    line, content = file.read(n_line), file.read(n_content)
    if _checksum(line, content) != checksum:
        return None, after
    return Frame(json.loads(line), path, at + HEAD.size + n_line, n_content), after


@contextlib.contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Say what a full disk means."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise InputError(
            f"the disk of {folder} is full; what was encoded is kept: make room and start again"
        ) from error
