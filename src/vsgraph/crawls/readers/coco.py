"""COCO captions as a crawl: labels are query words in a caption, the truth is marked by people."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vsgraph.common.regular import read_regular
from vsgraph.crawls.columns import LISTS, Gathered
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
    names = {e["id"]: e["name"] for e in instances["categories"]} if instances else {}
    patterns, wnids = _queries(queries, list(names.values()))
    texts = _texts(captions)
    marked: dict[int, set[str]] = defaultdict(set)
    for mark in instances["annotations"] if instances else ():
        marked[mark["image_id"]].add(names[mark["category_id"]])
    folder, root = _image_folder(captions_file, part, images)
    draw = np.random.default_rng(random_state)
    rows = []
    for image in sorted(captions["images"], key=lambda entry: entry["id"]):
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


def _load(path: Path) -> dict[str, Any]:
    """Return the content of a COCO file."""
    try:
        content = json.loads(read_regular(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or "annotations" not in content:
        raise InputError(f"{path} is not a COCO file: it has no annotations")
    return content


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


def _texts(captions: dict[str, Any]) -> dict[int, list[str]]:
    """Return the captions of each photo, in the order of their ids."""
    texts: dict[int, list[str]] = defaultdict(list)
    for entry in sorted(captions["annotations"], key=lambda entry: entry["id"]):
        texts[entry["image_id"]].append(" ".join(entry["caption"].split()))
    return texts


def _image_folder(captions: Path, part: str, images: Path | None) -> tuple[str, Path]:
    """Return the folder of the photos below the root, and the root."""
    if images is not None:
        return "", images
    root = captions.parent.parent if captions.parent.name == "annotations" else captions.parent
    folder = next((f for f in (part, "images", f"images/{part}") if (root / f).is_dir()), part)
    return f"{folder}/", root
