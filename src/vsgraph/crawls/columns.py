"""Rows gathered into the columns of a crawl, a block at a time."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import plain_column
from vsgraph.errors import InputError

BLOCK = 32_768
IMAGE_ENDINGS = frozenset(
    (
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".webp",
        ".gif",
        ".bmp",
        ".tif",
        ".tiff",
        ".ppm",
        ".pgm",
        ".avif",
        ".heic",
    )
)
TEXT_FIELDS = (
    "title", "caption", "text", "alt", "alt_text", "tags", "keywords", "hashtags", "description",
    "snippet",
)  # fmt: skip
NONE = "none"  # in a truth: none of the classes
PLACE = {"shard": pa.string(), "offset": pa.int64(), "size": pa.int64()}
ClassList = Path | Sequence[str]  # a file of class names, or the names
Item = TypeVar("Item")


def is_image(name: str) -> bool:
    """Return whether a name ends like that of a picture.

    >>> is_image("a/b.JPG"), is_image("b.txt")
    (True, False)
    """
    return PurePosixPath(name).suffix.lower() in IMAGE_ENDINGS


def in_blocks(items: Iterable[Item], size: int = BLOCK) -> Iterator[list[Item]]:
    """Yield items in lists of at most `size`."""
    iterator = iter(items)
    while block := list(itertools.islice(iterator, size)):
        yield block


def as_text(value: object) -> str | None:
    """Return a value of a JSON file as text; lists are joined, nothing is None.

    >>> as_text(["sea", "bird"]), as_text(3.0), as_text("  ")
    ('sea bird', '3', None)
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        value = " ".join(filter(None, map(as_text, value)))
    if value is None:
        return None
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as 5 and 5.0 are one class
    text = str(value).encode("utf-8", "replace").decode("utf-8").strip()
    return text or None


def as_names(value: object) -> list[str] | None:
    """Return names from a value of a JSON file: those of a list, or one; None if there is nothing.

    >>> as_names(["sea", 5]), as_names("sea"), as_names([]), as_names("")
    (['sea', '5'], ['sea'], [], None)
    """
    if isinstance(value, list):
        return [text for entry in value if (text := as_text(entry))]
    text = as_text(value)
    return None if text is None else [text]


def table_of(rows: Sequence[dict[str, Any]], types: dict[str, pa.DataType]) -> pa.Table:
    """Return rows as a table with the columns and types asked for."""
    return pa.table(
        {name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    )


@dataclasses.dataclass
class Gathered:
    """Blocks of a crawl whose labels are still names.

    Attributes
    ----------
    problems : Problems
        Where to say what is wrong.
    text_fields : tuple of str
        Columns of text.
    """

    problems: Problems
    text_fields: tuple[str, ...]
    blocks: list[pa.Table] = dataclasses.field(default_factory=list)

    def add(self, block: pa.Table) -> None:
        """Add a block; its text is made plain."""
        for name in self.text_fields:
            place = block.column_names.index(name)
            block = block.set_column(place, name, plain_column(block[name]))
        self.blocks.append(block)

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
            told = f"; {'; '.join(self.problems.lines())}" if self.problems else ""
            raise InputError(f"{root} holds no image with a label, read as {kind}{told}")
        table = pa.concat_tables(self.blocks)
        self.blocks.clear()
        names = list(classes) if classes is not None else label_names(table["web_labels"])
        table = numbered(table, names)
        others: dict[str, int] = {}
        if "truth" in table.column_names:
            table, others = numbered_truth(table, names)
        used = tuple(n for n in self.text_fields if table[n].null_count < len(table))
        table = table.drop_columns([n for n in self.text_fields if n not in used])
        tell_twins(table["image"], self.problems)
        tell_names_alike(names, self.problems)
        return Crawl(kind, root, table, tuple(names), tuple(wnids), used, self.problems, others)


def label_names(column: pa.ChunkedArray) -> list[str]:
    """Return the names in a column of labels, sorted; numbers by size.

    >>> label_names(pa.chunked_array([["10", "9"]])), label_names(pa.chunked_array([["b", "a"]]))
    (['9', '10'], ['a', 'b'])
    """
    flat = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    names = [name for name in pc.unique(flat).to_pylist() if name is not None]
    if all(re.fullmatch(r"\d{1,18}", name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def numbered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Replace names of classes by their numbers; rows left without a label go."""
    if pa.types.is_list(table["web_labels"].type):
        labels = _numbered_lists(table["web_labels"], names)
        known = pc.greater(pc.list_value_length(labels), 0)
    else:
        labels = pc.index_in(table["web_labels"], pa.array(names, pa.string()))
        known = pc.is_valid(labels)
    table = _with_column(table, "web_labels", labels)
    return table if pc.all(known, skip_nulls=False).as_py() else table.filter(known)


def numbered_truth(table: pa.Table, names: Sequence[str]) -> tuple[pa.Table, dict[str, int]]:
    """Replace names in the column `truth` by numbers; nothing known of any image, it goes.

    Null stays null: unknown. A name that is no class goes, so that an image without any other has
    an empty list: it shows none of the classes.

    Returns
    -------
    table : pyarrow.Table
        With numbers.
    others : dict of str to int
        Names that are no class, the most frequent first, and of how many images; without `NONE`,
        the word for it.
    """
    truth = table["truth"]
    if truth.null_count == len(truth):
        return table.drop_columns(["truth"]), {}
    counts = pc.value_counts(pc.list_flatten(truth)).to_pylist()
    unlisted = {entry["values"]: entry["counts"] for entry in counts}
    for name in (*names, NONE, None):
        unlisted.pop(name, None)
    others = dict(sorted(unlisted.items(), key=lambda entry: (-entry[1], entry[0])))
    return _with_column(table, "truth", _numbered_lists(truth, names)), others


def _with_column(table: pa.Table, name: str, column: Any) -> pa.Table:  # noqa: ANN401
    return table.set_column(table.column_names.index(name), name, column)


def _numbered_lists(lists: pa.ChunkedArray, names: Sequence[str]) -> pa.ChunkedArray:
    """Return lists of names as lists of numbers, without the names that are no class."""
    known = pa.array(names, pa.string())
    return pa.chunked_array([_number_lists(chunk, known) for chunk in lists.chunks] or [[]],
                            pa.list_(pa.int32()))  # fmt: skip


def _number_lists(lists: pa.ListArray, names: pa.Array) -> pa.ListArray:
    """Return one chunk of lists of names as lists of numbers."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    numbers = pc.index_in(pc.list_flatten(lists), names)
    kept = np.asarray(pc.is_valid(numbers).to_numpy(zero_copy_only=False), bool)
    rows = np.repeat(np.arange(len(lists)), counts)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(lists)))])
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), numbers.drop_null(), mask=lists.is_null()
    )


def tell_twins(images: pa.ChunkedArray, problems: Problems) -> None:
    """Count images that are listed twice, and names that differ only by case."""
    for column, kind in (
        (images, "image listed twice"),
        (pc.utf8_lower(pc.unique(images)), "image names that differ only by case"),
    ):
        codes = pc.dictionary_encode(column)
        codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        numbers = codes.indices.to_numpy()
        if len(codes.dictionary) == len(numbers):
            continue
        first = np.full(len(codes.dictionary), -1)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        for row in np.flatnonzero(first[numbers] != np.arange(len(numbers))):
            problems.add(kind, codes[int(row)].as_py())


def tell_names_alike(names: Sequence[str], problems: Problems) -> None:
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
    path = PurePosixPath(reference.replace("\\", "/"))
    if path.is_absolute():
        if not path.is_relative_to(root.absolute().as_posix()):
            return None
        path = path.relative_to(root.absolute().as_posix())
    parts = [part for part in path.parts if part != "."]
    return None if ".." in parts or not parts or ":" in parts[0] else "/".join(parts)


def read_class_list(classes: ClassList) -> list[str]:
    r"""Return class names: a sequence as it is, or those of a file.

    A file has one name or wnid per line. What follows a wnid is left out, and so are lines that
    start with ``#``.

    >>> import tempfile; file = Path(tempfile.mkdtemp()) / "google-500.txt"
    >>> _ = file.write_text("n01440764 tench, Tinca tinca\nn01443537\n")
    >>> read_class_list(file)
    ['n01440764', 'n01443537']
    >>> read_class_list(["#cat", "n01440764 tench"])
    ['#cat', 'n01440764 tench']
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
        raise InputError(f"{path} must list each class once, a name or wnid a line")
    return names
