"""Rows gathered into the columns of a crawl, one block at a time."""

import dataclasses
import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import OTHERS, Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import LONGEST_TEXT, plain_column, plain_names
from vsgraph.errors import InputError

BLOCK = 32_768
IMAGE_ENDINGS = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm",
    ".pgm", ".avif", ".heic",
}  # fmt: skip
TEXT_FIELDS = (
    "title", "caption", "text", "alt", "alt_text", "tags", "keywords", "hashtags", "description",
    "snippet",
)  # fmt: skip
NONE = "none"  # in the truth: none of the classes
UNLABELED = "(no label)"  # in place of a label, where images need none
MOST_OTHERS = 64  # other columns that are passed on
LISTS = pa.list_(pa.string())
ClassList = Path | Sequence[str]  # a file of class names, or the names
Item = TypeVar("Item")


def is_image(name: str) -> bool:
    """Return whether a file name has the ending of a picture."""
    return PurePosixPath(name).suffix.lower() in IMAGE_ENDINGS


def in_blocks(items: Iterable[Item], size: int = BLOCK) -> Iterator[list[Item]]:
    """Yield items in lists of at most `size`."""
    iterator = iter(items)
    while block := list(itertools.islice(iterator, size)):
        yield block


def as_text(value: object) -> str | None:
    """Return a JSON value as text: lists are joined, an empty value is None.

    >>> as_text(["sea", "bird"]), as_text(3.0), as_text("  ")
    ('sea bird', '3', None)
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        try:
            value = " ".join(filter(None, map(as_text, value)))
        except RecursionError:  # lists in lists in lists ...
            return None
    if value is None:
        return None
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 5 and 5.0 are one class
    return str(value).encode("utf-8", "replace").decode("utf-8").strip() or None


def as_written(value: object) -> str | None:
    """Return a JSON value as text that is passed on: strings as they are, others as JSON.

    >>> as_written("a  b"), as_written([1, "x"]), as_written(3.0), as_written("")
    ('a  b', '[1, "x"]', '3.0', None)
    """
    if not isinstance(value, str):
        try:
            value = None if value is None else json.dumps(value, default=str, ensure_ascii=False)
        except (ValueError, RecursionError):  # lists in lists in lists ...
            return None
    return (value and value.encode("utf-8", "replace").decode("utf-8")[:LONGEST_TEXT]) or None


def as_names(value: object) -> list[str] | None:
    """Return the names in a JSON value, which may be a list or one name; None if it is empty."""
    if isinstance(value, list):
        return [text for entry in value if (text := as_text(entry))]
    text = as_text(value)
    return None if text is None else [text]


def is_list(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds lists."""
    return pa.types.is_list(column.type)


def with_column(table: pa.Table, name: str, column: Any) -> pa.Table:  # noqa: ANN401
    """Return a table with one column replaced."""
    return table.set_column(table.column_names.index(name), name, column)


@dataclasses.dataclass
class Gathered:
    """Blocks of a crawl whose labels are still names."""

    problems: Problems
    text_fields: tuple[str, ...]
    blocks: list[pa.Table] = dataclasses.field(default_factory=list)

    def add(self, block: pa.Table) -> None:
        """Add a block, its text made plain."""
        for name in self.text_fields:
            block = with_column(block, name, plain_column(block[name]))
        self.blocks.append(block)

    def add_rows(self, rows: Iterable[Mapping[str, Any]], types: Mapping[str, pa.DataType]) -> None:
        """Add rows, with the columns of `types`; a missing value is null."""
        for block in in_blocks(rows):
            columns = {n: pa.array([row.get(n) for row in block], t) for n, t in types.items()}
            others = [row.get(OTHERS, {}) for row in block]
            names = list(dict.fromkeys(name for row in others for name in row))[: MOST_OTHERS + 1]
            values = {name: pa.array([row.get(name) for row in others], pa.string())
                      for name in names}  # fmt: skip
            self.add(pa.table(columns | others_column(values)))

    def crawl(
        self,
        kind: str,
        root: Path,
        *,
        classes: Sequence[str] | None = None,
        wnids: Sequence[str | None] = (),
    ) -> Crawl:
        """Return the crawl, its classes numbered; labels outside `classes` are left out."""
        if not sum(block.num_rows for block in self.blocks):
            reasons = f"; {'; '.join(self.problems.lines())}" if self.problems else ""
            raise InputError(f"{root} holds no image with a label, read as {kind}{reasons}")
        same = _with_same_others(self.blocks, self.problems)
        table = pa.concat_tables(same, promote_options="default")
        self.blocks.clear()
        table = with_column(table, "web_labels", plain_names(table["web_labels"]))
        names = list(classes) if classes is not None else _label_names(table["web_labels"])
        table = _numbered(table, names)
        others: dict[str, int] = {}
        if "truth" in table.column_names:
            table, others = numbered_truth(table, names)
        used = tuple(n for n in self.text_fields if table[n].null_count < len(table))
        table = table.drop_columns([n for n in self.text_fields if n not in used])
        _count_twins(table["image"], self.problems)
        _count_names_alike(names, self.problems)
        return Crawl(kind, root, table, tuple(names), tuple(wnids), used, self.problems, others)


def other_values(values: Mapping[str, Any], taken: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the first values of a JSON object that have no role, to be passed on."""
    names = [name for name in values if name and name not in taken][: MOST_OTHERS + 1]
    written = {name.encode("utf-8", "replace").decode(): as_written(values[name]) for name in names}
    return {OTHERS: written} if written else {}


def others_column(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns that are only passed on as one, if there are any; all are strings."""
    arrays = {
        name: column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for name, column in columns.items()
    }
    packed = pa.StructArray.from_arrays(list(arrays.values()), list(arrays)) if arrays else None
    return {} if packed is None else {OTHERS: packed}


def _with_same_others(blocks: Sequence[pa.Table], problems: Problems) -> list[pa.Table]:
    """Give every block the same other columns, without those that are empty everywhere."""
    filled: dict[str, None] = {}
    for block in blocks:
        for name, column in _others_of(block).items():
            if column.null_count < len(column):
                filled[name] = None
    names = list(filled)[:MOST_OTHERS]
    if len(filled) > MOST_OTHERS:
        problems.add("too many other columns", list(filled)[MOST_OTHERS], f"{MOST_OTHERS} are kept")
    same = []
    for block in blocks:
        own, nulls = _others_of(block), pa.nulls(block.num_rows, pa.string())
        rest = block.select([name for name in block.column_names if name != OTHERS])
        for name, column in others_column({n: own.get(n, nulls) for n in names}).items():
            rest = rest.append_column(name, column)
        same.append(rest)
    return same


def _others_of(block: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of a block that are only passed on, by name."""
    if OTHERS not in block.column_names:
        return {}
    packed = block[OTHERS].combine_chunks()
    return {field.name: packed.field(i) for i, field in enumerate(packed.type)}


def _label_names(column: pa.ChunkedArray) -> list[str]:
    """Return the names in a column of labels, sorted; numbers by size."""
    flat = pc.list_flatten(column) if is_list(column) else column
    names = [name for name in pc.unique(flat).to_pylist() if name is not None]
    all_numbers = all(re.fullmatch(r"\d{1,18}", name) for name in names)
    return sorted(names, key=int if all_numbers else None)


def _numbered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Replace class names by their numbers; rows left without a label are dropped."""
    if is_list(table["web_labels"]):
        labels = _numbered_lists(table["web_labels"], names)
        known = pc.greater(pc.list_value_length(labels), 0)
    else:
        labels = pc.index_in(table["web_labels"], pa.array(names, pa.string()))
        known = pc.is_valid(labels)
    table = with_column(table, "web_labels", labels)
    return table if pc.all(known, skip_nulls=False).as_py() else table.filter(known)


def numbered_truth(table: pa.Table, names: Sequence[str]) -> tuple[pa.Table, dict[str, int]]:
    """Replace names in the column `truth` by numbers; drop the column if it is all null.

    Null stays null: unknown. A name that is no class is removed; an image without any other name
    has an empty list: it shows none of the classes. Also returned are the names that are no class
    (other than `NONE`), the most frequent first, with their number of images.
    """
    truth = table["truth"]
    if truth.null_count == len(truth):
        return table.drop_columns(["truth"]), {}
    truth = plain_names(truth)
    counts = pc.value_counts(pc.list_flatten(truth)).to_pylist()
    unlisted = {entry["values"]: entry["counts"] for entry in counts}
    for name in (*names, NONE, None):
        unlisted.pop(name, None)
    others = dict(sorted(unlisted.items(), key=lambda entry: (-entry[1], entry[0])))
    return with_column(table, "truth", _numbered_lists(truth, names)), others


def _numbered_lists(column: pa.ChunkedArray, names: Sequence[str]) -> pa.ListArray:
    """Return lists of names as lists of numbers, without the names that are no class."""
    lists = column.combine_chunks()
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    numbers = pc.index_in(pc.list_flatten(lists), pa.array(names, pa.string()))
    kept = np.asarray(pc.is_valid(numbers).to_numpy(zero_copy_only=False), bool)
    rows = np.repeat(np.arange(len(lists)), counts)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(lists)))])
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), numbers.drop_null(), mask=lists.is_null()
    )


def _count_twins(images: pa.ChunkedArray, problems: Problems) -> None:
    """Count images that are listed twice, and names that differ only by case."""
    for column, kind in (
        (images, "image listed twice"),
        (pc.utf8_lower(pc.unique(images)), "image names that differ only by case"),
    ):
        counts = pc.value_counts(column)
        for twin in counts.filter(pc.greater(counts.field("counts"), 1)).to_pylist():
            for _ in range(twin["counts"] - 1):
                problems.add(kind, twin["values"])


def _count_names_alike(names: Sequence[str], problems: Problems) -> None:
    """Count classes whose names differ only by case or spaces."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(" ".join(name.casefold().split()), name)
        if other != name:
            problems.add("labels that differ only by case or spaces", f"{other!r} and {name!r}")


def below(root: Path, reference: str) -> str | None:
    """Return a path below `root` in its simplest form, None if it leads elsewhere.

    >>> below(Path("/data"), "a/./b.jpg"), below(Path("/data"), "/data/b.jpg")
    ('a/b.jpg', 'b.jpg')
    >>> below(Path("/data"), "a/../../etc/passwd") is None
    True
    """
    if is_stored(root):
        reference = reference.removeprefix(f"{root}/")
    path = PurePosixPath(reference.replace("\\", "/"))
    if path.is_absolute():
        if not path.is_relative_to(root.absolute().as_posix()):
            return None
        path = path.relative_to(root.absolute().as_posix())
    parts = [part for part in path.parts if part != "."]
    is_odd = ".." in parts or not parts or ":" in parts[0] or "\0" in reference
    return None if is_odd else "/".join(parts)


def read_class_list(classes: ClassList) -> list[str]:
    """Return class names: a sequence as it is, or the lines of a file.

    In a file, lines that start with ``#`` and whatever follows a wnid are left out.
    """
    if not isinstance(classes, str | Path):
        if not classes or len(set(classes)) < len(classes):
            raise InputError("classes must name each class once")
        return list(classes)
    path = Path(classes)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of classes: {error}") from error
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    names = [name.split()[0] if re.match(r"n\d{8}\b", name) else name for name in names]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path} must list each class once, one name or wnid per line")
    return names
