"""Small pictures made when they are first asked for, and kept in the run's folder."""

import contextlib
import os
import tempfile
from pathlib import Path

from vsgraph.common.files import LEFTOVER
from vsgraph.pictures.opener import small_jpeg
from vsgraph.review.view import View

SMALL, LARGE = (160, 72), (1200, 85)  # side, quality
FOLDER = "review"
JPEG = b"\xff\xd8\xff"


class Thumbnails:
    """Small pictures below ``RUN/review``, by the content of the picture."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER / f"pictures-{SMALL[0]}"

    def small(self, view: View, row: int, key: str) -> bytes:
        """Return a small JPEG of an image; empty if its picture cannot be read."""
        path = self.folder / key[:2] / f"{key}.jpg" if key.isalnum() else None
        if path is not None:
            with contextlib.suppress(OSError):
                data = path.read_bytes()
                if data.startswith(JPEG):
                    return data
        data = _made(view, row, SMALL)
        if data and path is not None:
            with contextlib.suppress(OSError):  # a full disk only costs time
                _put(path, data)
        return data

    def large(self, view: View, row: int) -> bytes:
        """Return a large JPEG of an image, which is not kept; empty if it cannot be read."""
        return _made(view, row, LARGE)


def _made(view: View, row: int, size: tuple[int, int]) -> bytes:
    """Decode a picture and encode it again."""
    if not view.crawl.has_pictures:
        return b""
    return small_jpeg(view.crawl.read_image(row), side=size[0], quality=size[1])


def _put(path: Path, data: bytes) -> None:
    """Write a file that appears complete; after a power cut it may be empty, and is made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{LEFTOVER}{path.name}-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(path)
