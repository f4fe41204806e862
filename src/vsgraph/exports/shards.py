"""WebDataset: tar shards for a training loop to stream."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from vsgraph.common.checks import check_at_least
from vsgraph.exports.job import Job
from vsgraph.exports.names import free_names, one_line, write_class_names
from vsgraph.exports.placement import Picture, pictures

GB = 10**9


def write_webdataset(job: Job, *, shard_images: int = 10_000, shard_bytes: int = GB) -> None:
    """Write tar shards ``shard-000000.tar`` and so on; the same data gives the same bytes.

    Each image has ``<row>.<suffix>`` with its picture, ``<row>.json`` with what is known of it and,
    if images have one label, ``<row>.cls`` with its class number, -1 if it is rejected.
    ``classes.txt`` names the classes. With a split, shards are called ``train-000000.tar`` and so
    on. A shard is closed once it holds `shard_images` images, or
    `shard_bytes` bytes.
    """
    check_at_least("shard_images", shard_images, 1)
    check_at_least("shard_bytes", shard_bytes, 1)
    shards = {part: _Shards(job.path, part) for part in job.parts or ("shard",)}
    try:
        for picture in pictures(job, with_bytes=True):
            shard = shards[picture.entry.part or "shard"]
            if shard.n_images >= shard_images or shard.tar.offset >= shard_bytes:
                shard.next()
            for name, data in _files(job, picture).items():
                header = tarfile.TarInfo(one_line(name))
                header.size, header.mode = len(data), 0o644
                shard.tar.addfile(header, io.BytesIO(data))
            shard.n_images += 1
    finally:
        for shard in shards.values():
            shard.tar.close()
    write_class_names(job.path / "classes.txt", job.class_names)


class _Shards:
    """The shards of one part of a split, one after the other."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.number = folder, name, 0
        self._open()

    def _open(self) -> None:
        path = self.folder / f"{self.name}-{self.number:06d}.tar"
        self.tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
        self.n_images = 0

    def next(self) -> None:
        """Close the shard and begin the next one."""
        self.tar.close()
        self.number += 1
        self._open()


def _files(job: Job, picture: Picture) -> dict[str, bytes]:
    """Return the files of an image, by name."""
    entry = picture.entry
    key = f"{entry.row:09d}"
    known: dict[str, Any] = entry.columns | {
        "classes": entry.classes, "path": entry.image, "text": entry.text,
    }  # fmt: skip
    free = free_names(entry.others, taken=known)
    known |= {free[name]: value for name, value in entry.others.items()}
    files = {f"{key}{picture.suffix}": picture.data}
    if not job.several:
        files[f"{key}.cls"] = str(entry.classes[0] if entry.classes else -1).encode()
    return files | {f"{key}.json": json.dumps(known).encode()}
