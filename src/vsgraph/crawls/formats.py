"""Which format a path holds, and the reader for it."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vsgraph.crawls.columns import is_image
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.coco import read_coco
from vsgraph.crawls.readers.folders import read_folder
from vsgraph.crawls.readers.nus_wide import read_nus_wide
from vsgraph.crawls.readers.shards import SHARD_FOLDER, read_shards
from vsgraph.crawls.readers.tables import ENDINGS, METADATA, read_table
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
}


def read_crawl(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    strict: bool = False,
    **options: Any,  # noqa: ANN401
) -> Crawl:
    r"""Read a crawl in any of the formats that are known.

    Parameters
    ----------
    path : path
        A folder, a table, a shard.
    format : str, optional
        One of ``folder``, ``table``, ``shards``, ``webvision``, ``imagenet-val``, ``nus-wide``,
        ``coco``; by default it is found out.
    strict : bool
        Make every problem an error instead of counting it.
    **options
        What the reader of the format takes, see ``docs/formats.md``.

    Returns
    -------
    crawl : Crawl
        Its `problems` say what was left out, and why.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "crawl.csv").write_text("path,label,title\na.jpg,crane,a wading bird\n")
    >>> read_crawl(folder / "crawl.csv")
    Crawl(a table (csv): 1 images, 1 classes)
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} is not there")
    name = format or recognize(path)
    if name not in READERS:
        raise InputError(f"format must be one of {', '.join(READERS)}, got {name!r}")
    given = {key: value for key, value in options.items() if value is not None}
    known = set(inspect.signature(READERS[name]).parameters) - {"path", "problems"}
    foreign = sorted(set(given) - known)
    if foreign:
        raise InputError(
            f"{foreign[0]} means nothing for the format {name}, which takes "
            f"{', '.join(sorted(known)) or 'nothing'}"
        )
    return READERS[name](path, problems=Problems(strict=strict), **given)


def recognize(path: Path) -> str:
    """Return the format that a path holds.

    Parameters
    ----------
    path : Path
        What the user pointed at.

    Returns
    -------
    format : str
        A name of :data:`READERS`.
    """
    return _recognize_file(path) if path.is_file() else _recognize_folder(path)


def _recognize_file(path: Path) -> str:
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return "table"
    if ending == ".tar":
        return "shards"
    if path.name.startswith("captions_") and ending == ".json":
        return "coco"
    raise InputError(
        f"{path} is not recognized: give a table ({', '.join(ENDINGS)}), a .tar shard, "
        "captions_*.json of COCO, or a folder"
    )


def _recognize_folder(path: Path) -> str:
    """Look for what marks each format."""
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
    if any(path.glob("*.parquet")):
        return "table"
    shown = [folder for folder in folders if not folder.name.startswith(".")]
    tables = [entry for entry in path.iterdir() if entry.suffix.lower() in ENDINGS]
    if tables and len(shown) == 1:
        raise InputError(
            f"{path} holds a table and one folder; give the table, {tables[0]}, or say --format "
            "folder if the folder is a class"
        )
    return "folder" if shown else _refuse(path)


def _refuse(path: Path) -> str:
    """Say what a folder lacks."""
    entries = list(path.iterdir())
    tables = [entry.name for entry in entries if entry.suffix.lower() in ENDINGS]
    if tables:
        raise InputError(f"{path} is no crawl itself; give the table, {path / tables[0]}")
    what = "images but no labels" if any(is_image(e.name) for e in entries) else "no images"
    raise InputError(
        f"{path} holds {what}: put images into a folder a class, or give a table with their paths "
        "and labels"
    )
