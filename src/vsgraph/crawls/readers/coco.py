"""COCO captions as a crawl: labels are query words in a caption, the truth is marked by people."""

import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vsgraph.common.regular import read_regular
from vsgraph.crawls.columns import LISTS, Gathered, as_text
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError


def read_coco(
    path: Path,
    *,
    queries: Path | None = None,
    images: Path | None = None,
    several_labels: bool = False,
    random_state: int = 0,
    problems: Problems,
) -> Crawl:
    """Read official ``captions_*.json``, and the truth from ``instances_*.json`` beside it."""
    captions_file = _find_captions(path)
    part = captions_file.stem.removeprefix("captions_")
    captions = _load(captions_file)
    instances_file = captions_file.with_name(f"instances_{part}.json")
    if queries is None and not instances_file.exists():
        raise InputError(f"{instances_file} does not exist, so give the queries (--queries)")
    instances = _load(instances_file) if instances_file.exists() else None
    names: dict[int, str] = {}
    marked: dict[int, set[str]] = defaultdict(set)
    if instances is not None:
        kinds = instances.entries("categories", {"id": int, "name": str}, problems)
        names = {entry["id"]: entry["name"] for entry in kinds}
        marks = {"image_id": int, "category_id": int}
        for mark in instances.entries("annotations", marks, problems):
            marked[mark["image_id"]].add(names.get(mark["category_id"], ""))
    patterns, wnids = _queries(queries, list(names.values()))
    texts = _texts(captions, problems)
    folder, root = _image_folder(captions_file, part, images)
    draw = np.random.default_rng(random_state)
    rows = []
    for image in captions.entries("images", {"id": int, "file_name": str}, problems):
        title, *others = texts.get(image["id"]) or [""]
        hits = [name for name, pattern in patterns.items() if pattern.search(title)]
        if hits:
            rows.append({
                "image": folder + Path(image["file_name"]).name,
                "web_labels": hits if several_labels else hits[int(draw.integers(len(hits)))],
                "title": title, "description": " ".join(others),
                "truth": sorted(marked[image["id"]] & set(patterns)),
            })  # fmt: skip
    types = {
        "image": pa.string(),
        "web_labels": LISTS if several_labels else pa.string(),
        "title": pa.string(), "description": pa.string(),
        **({"truth": LISTS} if instances else {}),
    }  # fmt: skip
    gathered = Gathered(problems, ("title", "description"))
    gathered.add_rows(rows, types)
    return gathered.crawl(f"COCO captions ({part})", root, classes=list(patterns), wnids=wnids)


def _find_captions(path: Path) -> Path:
    """Return the captions file meant by a path."""
    if path.is_file():
        return path
    files = sorted([*path.glob("captions_*.json"), *path.glob("annotations/captions_*.json")])
    if not files:
        raise InputError(f"{path} holds no captions_*.json")
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise InputError(f"{path} holds {listed}; give the path of one")
    return files[0]


@dataclasses.dataclass(frozen=True)
class _Coco:
    """The content of a COCO file."""

    path: Path
    content: dict[str, Any]

    def entries(
        self, key: str, fields: Mapping[str, type], problems: Problems
    ) -> list[dict[str, Any]]:
        """Return the entries of a list that have these fields, by their id; count the others."""
        listed = self.content.get(key)
        if not isinstance(listed, list):
            raise InputError(f"{self.path} is not a COCO file: it has no list of {key}")
        good = []
        for entry in listed:
            values = {name: entry.get(name) for name in fields} if isinstance(entry, dict) else {}
            if values and all(isinstance(values[name], kind) for name, kind in fields.items()):
                good.append(
                    {n: as_text(v) or "" if fields[n] is str else v for n, v in values.items()}
                )
            else:
                problems.add("broken entry", f"{self.path}: {key}", repr(entry)[:100])
        return sorted(good, key=lambda entry: entry.get("id", 0))


def _text(value: str) -> str:
    """Return text that can be written, as one line."""
    return " ".join((as_text(value) or "").split())


def _load(path: Path) -> _Coco:
    """Return the content of a COCO file."""
    try:
        content = json.loads(read_regular(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or "annotations" not in content:
        raise InputError(f"{path} is not a COCO file: it has no annotations")
    return _Coco(path, content)


def _queries(
    path: Path | None, categories: list[str]
) -> tuple[dict[str, re.Pattern[str]], list[str | None]]:
    """Return the query of each class as a pattern of whole words, and the wnids that are given."""
    if path is None:
        entries: dict[str, Any] = {name: f"{re.escape(name)}s?" for name in categories}
    else:
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as JSON: {error}") from error
    patterns, wnids = {}, []
    for name, entry in entries.items():
        query = entry if isinstance(entry, str) else entry["query"]
        try:
            patterns[name] = re.compile(rf"\b(?:{query})\b", re.IGNORECASE)
        except re.error as error:
            raise InputError(
                f"{path}: the query of {name!r} is not a regular expression: {error}"
            ) from error
        wnids.append(None if isinstance(entry, str) else entry.get("wnid"))
    return patterns, wnids


def _texts(captions: _Coco, problems: Problems) -> dict[int, list[str]]:
    """Return the captions of each photo, in the order of their ids."""
    texts: dict[int, list[str]] = defaultdict(list)
    fields = {"id": int, "image_id": int, "caption": str}
    for entry in captions.entries("annotations", fields, problems):
        texts[entry["image_id"]].append(entry["caption"])
    return texts


def _image_folder(captions: Path, part: str, images: Path | None) -> tuple[str, Path]:
    """Return the folder of the photos below the root, and the root."""
    if images is not None:
        return "", images
    root = captions.parent.parent if captions.parent.name == "annotations" else captions.parent
    folder = next((f for f in (part, "images", f"images/{part}") if (root / f).is_dir()), part)
    return f"{folder}/", root
