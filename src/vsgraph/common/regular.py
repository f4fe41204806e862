"""Files of strangers: only regular ones are opened, so that a pipe or a device cannot block."""

import errno
import os
from pathlib import Path
from typing import BinaryIO

from vsgraph.common.stores import StorePath

NEVER_WAIT = getattr(os, "O_NONBLOCK", 0)  # not on every system


def is_regular(path: Path) -> bool:
    """Return whether there is a regular file, links followed; no if it cannot be a path."""
    try:
        return path.is_file()
    except OSError:  # the name is too long, links lead in a circle
        return False


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; OSError if it is anything but a regular file, links followed."""
    if isinstance(path, StorePath):
        return path.open()
    if not is_regular(path):
        raise OSError(errno.EINVAL, "not a file, or missing", str(path))
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | NEVER_WAIT))


def read_regular(path: Path, most: int = -1) -> bytes:
    """Return the bytes of a regular file, or the first `most`; OSError if it is none."""
    if isinstance(path, StorePath):
        return path.read_bytes() if most < 0 else path.read_range(0, most)
    with open_regular(path) as file:
        return file.read(most)
