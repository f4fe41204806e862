"""WebDataset: tar shards that a training loop streams."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from vsgraph.common.checks import check_at_least
from vsgraph.crawls.crawl import Crawl
from vsgraph.exports.names import one_line
from vsgraph.exports.placement import Picture, pictures
from vsgraph.exports.rows import Corrected
from vsgraph.exports.tables import write_names
from vsgraph.exports.targets import Exported, export_folder
from vsgraph.result.correction import Correction

GB = 10**9


def to_webdataset(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    shard_images: int = 10_000,
    shard_bytes: int = GB,
    rejected: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write tar shards; the same data gives the same bytes.

    Each image is ``<row>.<suffix>`` with its picture, ``<row>.json`` with what is known of it and,
    where images have one label, ``<row>.cls`` with its class number. ``classes.txt`` names the
    classes.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row.
    out : path
        The folder for ``shard-000000.tar`` and so on.
    shard_images, shard_bytes : int
        A shard has no more images, and is closed when it has reached so many bytes.
    rejected : bool
        Take rejected images as well, with the class number -1; they are left out otherwise.
    overwrite : bool
        Replace an export that is there already.
    progress : bool
        Show a progress bar.

    Returns
    -------
    exported : Exported
        Images that could be read; the others are counted.
    """
    check_at_least("shard_images", shard_images, 1)
    check_at_least("shard_bytes", shard_bytes, 1)
    both = Corrected.join(crawl, correction)
    with export_folder(out, crawl, to="webdataset", overwrite=overwrite) as (folder, made):
        shards = _Shards(folder, shard_images, shard_bytes)
        with shards:
            for rows in both.blocks(title="webdataset", progress=progress):
                chosen = both.rows(rows, rejected=rejected)
                for picture in pictures(crawl, chosen, made.problems, with_bytes=True):
                    shards.add(_parts(picture, several=both.several))
                    made.n_images += 1
        write_names(folder / "classes.txt", both.names)
    return made


def _parts(picture: Picture, *, several: bool) -> dict[str, bytes]:
    """Return the files of an image, by name."""
    row = picture.of
    key = f"{row.row:09d}"
    known: dict[str, Any] = {**row.values, "classes": row.classes, "path": row.image}
    known["text"] = row.text
    parts = {f"{key}{picture.suffix}": picture.data}
    if not several:
        parts[f"{key}.cls"] = str(row.classes[0] if row.classes else -1).encode()
    return parts | {f"{key}.json": json.dumps(known).encode()}


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

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.tar.close()

    def add(self, parts: dict[str, bytes]) -> None:
        """Write the files of one image, in a new shard if this one is full."""
        if self.n_images >= self.most_images or self.tar.offset >= self.most_bytes:
            self.tar.close()
            self.number += 1
            self._open()
        for name, data in parts.items():
            header = tarfile.TarInfo(one_line(name))
            header.size = len(data)
            header.mode = 0o644
            self.tar.addfile(header, io.BytesIO(data))
        self.n_images += 1
