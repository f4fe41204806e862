"""Pictures on their way out: looked at, then linked or copied."""

import dataclasses
import io
import os
import shutil
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np
from PIL import Image

from vsgraph.common.checks import check_one_of
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports.names import split_name
from vsgraph.exports.rows import Row

Mode = Literal["link", "hardlink", "copy"]
MODES = ("link", "hardlink", "copy")
UNREADABLE = "unreadable picture"
_SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tif", "JPEG2000": ".jp2"}
_BROKEN = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    SyntaxError,
    MemoryError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture whose header could be read.

    Attributes
    ----------
    of : Row
        The image.
    suffix : str
        Of its name, or of what it is where the name does not say.
    width, height : int
        In pixels.
    path : Path or None
        Its file; None if it lies within a shard.
    data : bytes
        The file's bytes where they were read, empty otherwise.
    """

    of: Row
    suffix: str
    width: int
    height: int
    path: Path | None
    data: bytes

    def place(self, target: Path, mode: Mode) -> None:
        """Link or copy it to a new file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.path is None:
            target.write_bytes(self.data)
            return
        try:
            _put(self.path, target, mode)
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be put to {target} as a {mode} ({error.strerror}); "
                "try another mode, copy always works where there is room"
            ) from error


def _put(path: Path, target: Path, mode: Mode) -> None:
    """Link or copy a file."""
    if mode == "link":
        target.symlink_to(path.absolute())
    elif mode == "hardlink":
        os.link(path.resolve(), target)
    else:
        shutil.copyfile(path, target)


def check_mode(crawl: Crawl, mode: Mode) -> None:
    """Refuse an unknown mode; say once that pictures within shards can only be copied."""
    check_one_of("mode", mode, MODES)
    if crawl.has_shards and mode != "copy":
        warnings.warn(
            "the pictures lie within tar shards, so they are copied, not linked",
            VSGraphWarning,
            stacklevel=3,
        )


def pictures(
    crawl: Crawl, rows: Iterable[Row], problems: Problems, *, with_bytes: bool = False
) -> Iterator[Picture]:
    """Yield the pictures that can be read, one at a time; count the others.

    With `with_bytes` the bytes of a file are read, too; those within shards always are.
    """
    rows = list(rows)
    reads = with_bytes or crawl.has_shards
    numbers = np.array([row.row for row in rows], np.intp)
    contents = crawl.read_images(numbers) if reads else (b"" for _ in rows)
    for row, data in zip(rows, contents, strict=True):
        path = None if crawl.has_shards else crawl.root / row.image
        seen = look(io.BytesIO(data)) if reads else look(path)
        if seen is None:
            problems.add(UNREADABLE, f"row {row.row}", row.image)
            continue
        suffix = split_name(row.image)[1] or seen[0]
        yield Picture(row, suffix, *seen[1:], path, data)


def look(file: Path | IO[bytes] | None) -> tuple[str, int, int] | None:
    """Read a picture's header: suffix, width, height; None if it is no picture.

    >>> import io
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (4, 3)).save(file, "PNG")
    >>> look(file), look(io.BytesIO(b"<html>"))
    (('.png', 4, 3), None)
    """
    if file is None or (isinstance(file, Path) and not file.is_file()):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file) as picture:
                kind = str(picture.format)
                return _SUFFIXES.get(kind, f".{kind.lower()}"), *picture.size
    except _BROKEN:
        return None
