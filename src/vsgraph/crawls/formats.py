"""Which format a path holds, and the reader for it."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vsgraph.common.stores import is_stored, place
from vsgraph.crawls.columns import is_image
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.arrays import read_arrays
from vsgraph.crawls.readers.coco import read_coco
from vsgraph.crawls.readers.folders import read_folder
from vsgraph.crawls.readers.nus_wide import read_nus_wide
from vsgraph.crawls.readers.shards import SHARD_FOLDER, read_shards
from vsgraph.crawls.readers.table_files import ENDINGS
from vsgraph.crawls.readers.table_roles import lists_images
from vsgraph.crawls.readers.tables import METADATA, SHARDS, read_table
from vsgraph.crawls.readers.webvision import read_imagenet_validation, read_webvision
from vsgraph.errors import InputError

READERS: dict[str, Callable[..., Crawl]] = {
    "folder": read_folder,
    "table": read_table,
    "shards": read_shards,
    "webvision": read_webvision,
    "imagenet-val": read_imagenet_validation,
    "nus-wide": read_nus_wide,
    "coco": read_coco,
    "arrays": read_arrays,
}
STORED = ("folder", "table", "shards")  # formats that are also read in an object store


def read_crawl(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    strict: bool = False,
    **options: Any,  # noqa: ANN401
) -> Crawl:
    r"""Read a crawl in any known format.

    Parameters
    ----------
    path : path
        A folder, a table, a shard, or a ``.npy`` file of web labels. Folders, tables and shards
        may lie in an object store (``s3://bucket/crawl``).
    format : str, optional
        One of ``folder``, ``table``, ``shards``, ``webvision``, ``imagenet-val``, ``nus-wide``,
        ``coco``, ``arrays``; recognized if not given.
    strict : bool
        Raise the first problem as an error instead of counting it.
    **options
        Options of the format, see ``docs/formats.md``.

    Returns
    -------
    crawl : Crawl
        Its `problems` say which rows were left out, and why.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "crawl.csv").write_text("path,label,title\na.jpg,crane,a wading bird\n")
    >>> read_crawl(folder / "crawl.csv")
    Crawl(a table (csv): 1 images, 1 classes)
    """
    path = place(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is neither a file nor a folder")
    name = format or recognize(path)
    if name not in READERS:
        raise InputError(f"format must be one of {', '.join(READERS)}, got {name!r}")
    if is_stored(path) and name not in STORED:
        raise InputError(f"the format {name} is read from a folder on this machine; copy {path}")
    given = {key: value for key, value in options.items() if value is not None}
    known = set(inspect.signature(READERS[name]).parameters) - {"path", "problems"}
    foreign = sorted(set(given) - known)
    if foreign:
        raise InputError(
            f"the format {name} has no option {foreign[0]}; it has "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    return READERS[name](path, problems=Problems(strict=strict), **given)


def recognize(path: Path) -> str:
    """Return the format of a file or folder."""
    return _recognize_file(path) if path.is_file() else _recognize_folder(path)


def _recognize_file(path: Path) -> str:
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return "table"
    if ending == ".tar":
        return "shards"
    if path.name.startswith("captions_") and ending == ".json":
        return "coco"
    if ending == ".npy":
        return "arrays"
    raise InputError(
        f"{path} is not recognized: give a table ({', '.join(ENDINGS)}), a .tar shard, "
        "captions_*.json of COCO, a .npy file of web labels, or a folder"
    )


def _recognize_folder(path: Path) -> str:
    """Return the format of a folder by the files that mark each format."""
    marks = {
        "webvision": ["info/synsets.txt"],
        "nus-wide": ["ConceptsList/Concepts81.txt", "Concepts81.txt"],
        "coco": ["captions_*.json", "annotations/captions_*.json"],
        "table": [*METADATA, *(f"*/{name}" for name in METADATA)],
        "shards": ["*.tar", "*.tar.gz", "*.tgz"],
    }
    for name, patterns in marks.items():
        if any(next(path.glob(pattern), None) for pattern in patterns):
            return name
    folders = [entry for entry in path.iterdir() if entry.is_dir()]
    if any(SHARD_FOLDER.fullmatch(f.name) and f.with_suffix(".parquet").exists() for f in folders):
        return "shards"
    if any(next(path.glob(pattern), None) for patterns in SHARDS for pattern in patterns):
        return "table"
    return _recognize_plain(path, [entry for entry in folders if not entry.name.startswith(".")])


def _recognize_plain(path: Path, folders: list[Path]) -> str:
    """Return whether a folder without any mark is a table beside pictures, or class folders."""
    tables = [entry for entry in path.iterdir() if entry.suffix.lower() in ENDINGS]
    if len(tables) == 1 and len(folders) <= 1 and lists_images(tables[0]):
        return "table"
    if tables and len(folders) == 1:
        raise InputError(
            f"{path} holds a table and one folder; give the table, {tables[0]}, or --format folder "
            "if the folder is a class"
        )
    if folders:
        return "folder"
    if tables:
        raise InputError(f"{path} is not a crawl itself; give the table, {tables[0]}")
    has_images = any(is_image(entry.name) for entry in path.iterdir())
    raise InputError(
        f"{path} holds {'images but no labels' if has_images else 'no images'}: put images into "
        "one folder per class, or give a table with their paths and labels"
    )
