"""WebDataset: tar shards for a training loop to stream."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any, Self

from vsgraph.common.checks import check_at_least
from vsgraph.exports.job import Job
from vsgraph.exports.names import one_line, write_class_names
from vsgraph.exports.placement import Picture, pictures

GB = 10**9


def write_webdataset(job: Job, *, shard_images: int = 10_000, shard_bytes: int = GB) -> None:
    """Write tar shards ``shard-000000.tar`` and so on; the same data gives the same bytes.

    Each image has ``<row>.<suffix>`` with its picture, ``<row>.json`` with what is known of it and,
    if images have one label, ``<row>.cls`` with its class number, -1 if it is rejected.
    ``classes.txt`` names the classes. A shard is closed once it holds `shard_images` images, or
    `shard_bytes` bytes.
    """
    check_at_least("shard_images", shard_images, 1)
    check_at_least("shard_bytes", shard_bytes, 1)
    with _Shards(job.path, shard_images, shard_bytes) as shards:
        for picture in pictures(job, with_bytes=True):
            shards.add(_files(picture, several=job.several))
    write_class_names(job.path / "classes.txt", job.class_names)


def _files(picture: Picture, *, several: bool) -> dict[str, bytes]:
    """Return the files of an image, by name."""
    entry = picture.entry
    key = f"{entry.row:09d}"
    known: dict[str, Any] = entry.columns | {
        "classes": entry.classes, "path": entry.image, "text": entry.text,
    }  # fmt: skip
    files = {f"{key}{picture.suffix}": picture.data}
    if not several:
        files[f"{key}.cls"] = str(entry.classes[0] if entry.classes else -1).encode()
    return files | {f"{key}.json": json.dumps(known).encode()}


class _Shards:
    """Tar files of limited size, one after the other."""

    def __init__(self, folder: Path, most_images: int, most_bytes: int) -> None:
        self.folder, self.most_images, self.most_bytes = folder, most_images, most_bytes
        self.number = 0
        self._open()

    def _open(self) -> None:
        path = self.folder / f"shard-{self.number:06d}.tar"
        self.tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
        self.n_images = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.tar.close()

    def add(self, files: dict[str, bytes]) -> None:
        """Write the files of one image, to a new shard if this one is full."""
        if self.n_images >= self.most_images or self.tar.offset >= self.most_bytes:
            self.tar.close()
            self.number += 1
            self._open()
        for name, data in files.items():
            header = tarfile.TarInfo(one_line(name))
            header.size = len(data)
            header.mode = 0o644
            self.tar.addfile(header, io.BytesIO(data))
        self.n_images += 1
