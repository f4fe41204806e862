"""Disk space, checked before something long starts."""

import shutil
from pathlib import Path

from vsgraph.errors import InputError


def say_bytes(n_bytes: float) -> str:
    """Return a number of bytes in words.

    >>> say_bytes(512), say_bytes(2_500_000), say_bytes(31e9)
    ('512 bytes', '2.5 MB', '31.0 GB')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def check_disk(folder: Path, n_bytes: float) -> None:
    """Raise an error if the disk of a folder has less room than needed.

    >>> check_disk(Path.cwd(), 1)
    >>> check_disk(Path.cwd(), 1e18)
    Traceback (most recent call last):
    vsgraph.errors.InputError: 1000000000.0 GB are needed in ..., but only ... are free; ...
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if n_bytes > free:
        raise InputError(
            f"{say_bytes(n_bytes)} are needed in {folder}, but only {say_bytes(free)} are free; "
            "make room or choose a folder on another disk"
        )
