"""Pictures to export: headers are read, then files are linked or copied."""

import errno
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from vsgraph.common.checks import check_one_of
from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import Fence
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports.job import Entry, Job
from vsgraph.exports.names import split_name
from vsgraph.pictures.opener import PictureError, quiet_pillow, read_header

Mode = Literal["link", "hardlink", "copy"]
NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


class Picture(NamedTuple):
    """A picture whose header could be read."""

    entry: Entry
    suffix: str  # of its name, or of its content if the name has none
    width: int
    height: int
    path: Path | None  # None if it is in a shard or a store
    data: bytes  # empty if the file was not read

    def place(self, target: Path, mode: Mode) -> None:
        """Link or copy it to a new file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.path is None:
            target.write_bytes(self.data)
            return
        try:
            if mode == "link":
                target.symlink_to(self.path.absolute())
            elif mode == "hardlink":
                os.link(self.path.resolve(), target)
            else:
                shutil.copyfile(self.path, target)
        except OSError as error:
            if mode == "copy" or error.errno not in NO_LINKS:
                raise
            raise InputError(
                f"{self.path} cannot be placed at {target} as a {mode} ({error.strerror}); "
                "links do not work there: pass --mode copy"
            ) from error


def check_mode(job: Job, mode: Mode) -> None:
    """Refuse an unknown mode, say what links mean, warn that pictures in shards are copied."""
    check_one_of("mode", mode, get_args(Mode))
    if is_stored(job.exported.out):  # there is nothing but copies
        return
    root = job.crawl.root.absolute()
    if not job.crawl.has_files and mode != "copy":
        warnings.warn(
            "the pictures are not in files of their own, so they are copied, not linked",
            VSGraphWarning,
            stacklevel=4,
        )
    elif mode == "link":
        job.exported.notes.append(
            f"the pictures are links to {root} and are lost if it moves; mode copy (--mode copy) "
            "copies them"
        )
    elif mode == "hardlink":
        job.exported.notes.append(
            f"the pictures are the same files as in {root}: a change to one changes both"
        )


def pictures(job: Job, *, with_bytes: bool = False) -> Iterator[Picture]:
    """Yield the pictures of a job whose header can be read; count the others.

    With `with_bytes`, pictures have their bytes; those in shards or a store always have.
    """
    crawl, fence = job.crawl, Fence(job.crawl.root)
    reads = with_bytes or not crawl.has_files
    for rows in job.blocks():
        contents = crawl.read_images(rows) if reads else (b"" for _ in rows)
        for entry, data in zip(job.entries(rows), contents, strict=True):
            path = crawl.root / entry.image if crawl.has_files else None
            if path is not None and not fence.holds(entry.image):
                job.leave_out(entry.row, "image path leads out of the folder", entry.image)
                continue
            try:
                with quiet_pillow():
                    header = read_header(data if reads or path is None else path)
            except PictureError as error:
                job.leave_out(entry.row, error.reason, entry.image)
                continue
            suffix = split_name(entry.image)[1] or header.suffix
            yield Picture(entry, suffix, header.width, header.height, path, data)
