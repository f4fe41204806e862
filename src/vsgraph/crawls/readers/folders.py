"""A folder of class folders, with side files of text beside the images if there are any."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vsgraph.common.regular import is_regular, read_regular
from vsgraph.common.stores import is_stored
from vsgraph.crawls.columns import (
    TEXT_FIELDS,
    UNLABELED,
    ClassList,
    Gathered,
    as_text,
    is_image,
    other_values,
    read_class_list,
)
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import decode

TYPES = dict.fromkeys(("image", "web_labels", *TEXT_FIELDS), pa.string())
Entry = os.DirEntry[str] | Path
SIDE_ENDINGS = (".json", ".txt")
LARGEST_SIDE_FILE = 2**22


def read_folder(path: Path, *, classes: ClassList | None = None, problems: Problems) -> Crawl:
    """Read ``root/<class>/.../<image>``, with the text of ``x.json`` and ``x.txt`` of ``x.jpg``."""
    gathered = Gathered(problems, TEXT_FIELDS)
    gathered.add_rows(_rows(path, problems), TYPES)
    listed = read_class_list(classes) if classes is not None else None
    return gathered.crawl("a folder of class folders", path, classes=listed)


def read_pictures(path: Path, names: Sequence[str] = (), *, problems: Problems) -> Crawl:
    """Read all pictures below a folder, or only some of its files, none of which has a label."""
    gathered = Gathered(problems, TEXT_FIELDS)
    if names:
        rows = (_picture_row(path, name, problems) for name in names)
        gathered.add_rows(rows, TYPES)
    else:
        gathered.add_rows(_class_rows(path, path, UNLABELED, problems), TYPES)
    return gathered.crawl("pictures without labels", path)


def _picture_row(root: Path, name: str, problems: Problems) -> dict[str, Any]:
    """Return the row of a single picture, with the text of the files beside it."""
    path = root / name
    beside = [path.stem + ".json", path.name + ".json", path.stem + ".txt"]
    sides = {side for side in beside if is_regular(path.with_name(side))}
    texts = _side_texts(path.parent, path.name, sides, problems)
    return {"image": name, "web_labels": UNLABELED, **texts}


def _rows(root: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    """Yield one row per image below a class folder."""
    for entry in _sorted_entries(root, root, problems):
        if entry.is_dir():
            yield from _class_rows(root, root / entry.name, entry.name, problems)
        elif is_image(entry.name):
            problems.add("image outside any class folder", f"{root}/{entry.name}")


def _class_rows(
    root: Path, folder: Path, name: str, problems: Problems
) -> Iterator[dict[str, Any]]:
    """Yield the images of a class, first those in its folder, then those deeper down."""
    entries = _sorted_entries(root, folder, problems)
    files = [entry for entry in entries if not entry.is_dir()]
    sides = {entry.name for entry in files if entry.name.lower().endswith(SIDE_ENDINGS)}
    for entry in files:
        if is_image(entry.name):
            reference = (folder / entry.name).relative_to(root).as_posix()
            texts = _side_texts(folder, entry.name, sides, problems) if sides else {}
            yield {"image": reference, "web_labels": name, **texts}
    for entry in entries:
        if entry.is_dir():
            yield from _class_rows(root, folder / entry.name, name, problems)


def _sorted_entries(root: Path, folder: Path, problems: Problems) -> list[Entry]:
    """Return the entries of a folder, without hidden ones and links out of the tree."""
    if is_stored(folder):
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    try:
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if not entry.name.startswith(".")]
    except OSError as error:
        problems.add("folder that cannot be read", str(folder), error.strerror or "")
        return []
    return sorted((e for e in entries if _may_be_read(root, e, problems)), key=lambda e: e.name)


def _may_be_read(root: Path, entry: os.DirEntry[str], problems: Problems) -> bool:
    """Return whether the name of an entry is UTF-8 and the entry stays within the tree."""
    try:
        entry.name.encode("utf-8")
    except UnicodeEncodeError:
        problems.add("file name not in UTF-8", repr(os.fsencode(entry.path)))
        return False
    if not entry.is_symlink():
        return True
    if not is_regular(Path(entry.path)):
        problems.add("link to a folder, or to nothing", entry.path, "not followed")
        return False
    if not Path(entry.path).resolve().is_relative_to(root.resolve()):
        problems.add("link that leads out of the folder", entry.path, "not followed")
        return False
    return True


def _side_texts(folder: Path, image: str, sides: set[str], problems: Problems) -> dict[str, Any]:
    """Return the text fields of the files beside an image, and what else they say."""
    stem = image.rpartition(".")[0]
    texts: dict[str, Any] = {}
    for name in (f"{stem}.json", f"{image}.json"):
        if name in sides:
            path = folder / name
            values = json_object(_read_side(path, problems), str(path), problems)
            texts |= {field: as_text(values[field]) for field in TEXT_FIELDS if field in values}
            texts |= other_values(values, TYPES)
    if f"{stem}.txt" in sides:
        texts["text"] = as_text(_read_side(folder / f"{stem}.txt", problems))
    return texts


def _read_side(path: Path, problems: Problems) -> str:
    """Return the text of a side file."""
    try:
        raw = read_regular(path, LARGEST_SIDE_FILE)
    except OSError as error:
        problems.add("side file that cannot be read", str(path), error.strerror or "")
        return ""
    return decode_counted(raw, str(path), problems)


def decode_counted(raw: bytes, where: str, problems: Problems) -> str:
    """Return bytes as text; if they are not UTF-8, add a problem."""
    text, was_utf8 = decode(raw)
    if not was_utf8:
        problems.add("text not in UTF-8", where)
    return text


def json_object(text: str, where: str, problems: Problems) -> dict[str, Any]:
    """Return the JSON object in a text; if it holds none, add a problem and return {}."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        problems.add("side file that is not a JSON object", where)
        return {}
    return values
