"""A folder of class folders, with side files beside the images if there are any."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from vsgraph.crawls.columns import (
    TEXT_FIELDS,
    ClassList,
    Gathered,
    as_text,
    in_blocks,
    is_image,
    read_class_list,
    table_of,
)
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import decode

TYPES = {"image": pa.string(), "web_labels": pa.string()} | dict.fromkeys(TEXT_FIELDS, pa.string())
SIDE_ENDINGS = (".json", ".txt")
LARGEST_SIDE_FILE = 2**22


def read_folder(path: Path, *, classes: ClassList | None = None, problems: Problems) -> Crawl:
    """Read ``root/<class>/<image>``, as torchvision's ImageFolder does.

    Parameters
    ----------
    path : Path
        The folder. Images may lie deeper than one folder; the first one is the class.
    classes : Path or sequence of str, optional
        A file of classes, one a line, that gives their order; other folders are left out.
    problems : Problems
        Where to say what is wrong.

    Returns
    -------
    crawl : Crawl
        With the text of ``x.json`` and ``x.txt`` beside ``x.jpg``.
    """
    gathered = Gathered(problems, TEXT_FIELDS)
    for rows in in_blocks(_rows(path, problems)):
        gathered.add(table_of(rows, TYPES))
    listed = read_class_list(classes) if classes is not None else None
    return gathered.crawl("a folder of class folders", path, classes=listed)


def _rows(root: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    """Yield a row for each image below a class folder."""
    for entry in _sorted_entries(root, root, problems):
        if entry.is_dir():
            yield from _class_rows(root, Path(entry.path), entry.name, problems)
        elif is_image(entry.name):
            problems.add("image outside any class folder", entry.path)


def _class_rows(
    root: Path, folder: Path, name: str, problems: Problems
) -> Iterator[dict[str, Any]]:
    """Yield the images of a class, its folders included."""
    files: list[os.DirEntry[str]] = []
    folders: list[os.DirEntry[str]] = []
    for entry in _sorted_entries(root, folder, problems):
        (folders if entry.is_dir() else files).append(entry)
    sides = {e.name for e in files if e.name.lower().endswith(SIDE_ENDINGS)}
    for entry in files:
        if is_image(entry.name):
            reference = Path(entry.path).relative_to(root).as_posix()
            texts = _side_texts(folder, entry.name, sides, problems) if sides else {}
            yield {"image": reference, "web_labels": name, **texts}
    for entry in folders:
        yield from _class_rows(root, Path(entry.path), name, problems)


def _sorted_entries(root: Path, folder: Path, problems: Problems) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, without hidden files and what leads out of the tree."""
    try:
        with os.scandir(folder) as entries:
            found = [e for e in entries if not e.name.startswith(".")]
    except OSError as error:
        problems.add("folder that cannot be read", str(folder), error.strerror or "")
        return []
    return sorted((e for e in found if _may_be_read(root, e, problems)), key=lambda e: e.name)


def _may_be_read(root: Path, entry: os.DirEntry[str], problems: Problems) -> bool:
    """Return whether an entry has a name we can write down and stays within the tree."""
    try:
        entry.name.encode("utf-8")
    except UnicodeEncodeError:
        problems.add("file name not in UTF-8", repr(os.fsencode(entry.path)))
        return False
    if not entry.is_symlink():
        return True
    if entry.is_dir() or not Path(entry.path).exists():
        problems.add("link to a folder, or to nothing", entry.path, "not followed")
        return False
    if not Path(entry.path).resolve().is_relative_to(root.resolve()):
        problems.add("link that leads out of the folder", entry.path, "not followed")
        return False
    return True


def _side_texts(
    folder: Path, image: str, sides: set[str], problems: Problems
) -> dict[str, str | None]:
    """Return the text fields of the files beside an image."""
    stem = image.rpartition(".")[0]
    texts: dict[str, str | None] = {}
    for name in (f"{stem}.json", f"{image}.json"):
        if name in sides:
            texts |= json_texts(_read_side(folder / name, problems), str(folder / name), problems)
    if f"{stem}.txt" in sides:
        texts["text"] = as_text(_read_side(folder / f"{stem}.txt", problems))
    return texts


def _read_side(path: Path, problems: Problems) -> str:
    """Return the text of a side file."""
    try:
        with path.open("rb") as opened:
            text, was_utf8 = decode(opened.read(LARGEST_SIDE_FILE))
    except OSError as error:
        problems.add("side file that cannot be read", str(path), error.strerror or "")
        return ""
    if not was_utf8:
        problems.add("text not in UTF-8", str(path))
    return text


def json_object(text: str, where: str, problems: Problems) -> dict[str, Any]:
    """Return the object that a text holds; nothing, counted, if it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        problems.add("side file that is no JSON object", where)
        return {}
    return found


def json_texts(text: str, where: str, problems: Problems) -> dict[str, str | None]:
    """Return the text fields of a JSON object."""
    found = json_object(text, where, problems)
    return {name: as_text(found[name]) for name in TEXT_FIELDS if name in found}
