"""Pictures to export: their headers are read, then the files are linked or copied."""

import dataclasses
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from vsgraph.common.checks import check_one_of
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports.job import Entry, Job
from vsgraph.exports.names import split_name
from vsgraph.pictures.opener import PictureError, quiet_pillow, read_header

Mode = Literal["link", "hardlink", "copy"]
MODES = ("link", "hardlink", "copy")


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture whose header could be read."""

    entry: Entry
    suffix: str  # of its name, or of its content if the name has none
    width: int
    height: int
    path: Path | None  # None if it is in a shard
    data: bytes  # empty if the file was not read

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
                f"{self.path} cannot be placed at {target} as a {mode} ({error.strerror}); "
                "try another mode: copy works wherever there is room"
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
    """Refuse an unknown mode; warn that pictures in shards can only be copied."""
    check_one_of("mode", mode, MODES)
    if crawl.has_shards and mode != "copy":
        warnings.warn(
            "the pictures are in tar shards, so they are copied, not linked",
            VSGraphWarning,
            stacklevel=4,
        )


def pictures(job: Job, *, with_bytes: bool = False) -> Iterator[Picture]:
    """Yield the pictures of a job whose header can be read, one at a time; count the others.

    With `with_bytes` the files' bytes are read, too; those in shards always are.
    """
    crawl = job.crawl
    reads = with_bytes or crawl.has_shards
    for rows in job.blocks():
        contents = crawl.read_images(rows) if reads else (b"" for _ in rows)
        for entry, data in zip(job.entries(rows), contents, strict=True):
            path = None if crawl.has_shards else crawl.root / entry.image
            try:
                with quiet_pillow():
                    header = read_header(data if reads or path is None else path)
            except PictureError as error:
                job.problems.add(error.reason, f"row {entry.row}", entry.image)
                continue
            suffix = split_name(entry.image)[1] or header.suffix
            job.n_images += 1
            yield Picture(entry, suffix, header.width, header.height, path, data)
