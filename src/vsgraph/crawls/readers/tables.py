"""Tables of images: CSV, TSV, JSON lines, Parquet, and Hugging Face folders with metadata."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vsgraph.crawls.columns import (
    TEXT_FIELDS,
    ClassList,
    Gathered,
    below,
    read_class_list,
)
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.table_files import LISTS, header_of, raw_blocks
from vsgraph.errors import InputError, VSGraphWarning

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
PLAIN_PATH = r"^\w[\w .+@~-]*(/\w[\w .+@~-]*)*$"
METADATA = tuple(f"metadata{ending}" for ending in ENDINGS)
KNOWN = {
    "image": (
        "file_name", "filename", "image_path", "path", "file", "filepath", "file_path", "image",
        "img", "image_file",
    ),
    "label": (
        "web_label", "label", "labels", "query", "search_query", "class", "class_name", "category",
        "hashtag", "keyword", "wnid", "synset", "web_labels",
    ),
    "source": ("source", "engine", "origin", "platform"),
    "truth": ("truth", "true_label", "true_labels", "ground_truth", "gold", "clean_label"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which column holds what."""

    image: str
    label: str | None
    text: tuple[str, ...]
    source: str | None
    truth: str | None

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        named = [self.image, self.label, self.source, self.truth, *self.text]
        return list(dict.fromkeys(name for name in named if name))


def read_table(
    path: Path,
    *,
    images: Path | None = None,
    columns: Mapping[str, str] | None = None,
    label_separator: str | None = None,
    classes: ClassList | None = None,
    problems: Problems,
) -> Crawl:
    """Read a table, or a folder with ``metadata.csv``, ``.jsonl`` or ``.parquet`` beside images.

    Parameters
    ----------
    path : Path
        The table, or the folder.
    images : Path, optional
        What the paths in the table are relative to; by default the table's folder.
    columns : mapping, optional
        Which column holds the `image`, the `label`, the `text` (several: comma between), the
        `source`, the `truth`, where the names do not say it.
    label_separator : str, optional
        What stands between labels in a cell, if an image may have several.
    classes : Path or sequence of str, optional
        A file of classes, one a line; other rows are left out. Numbers in the label column count
        its lines from zero.
    problems : Problems
        Where to say what is wrong.

    Returns
    -------
    crawl : Crawl
        A row an image that has a path and a label.
    """
    files = table_files(path)
    root = images or (path if path.is_dir() else path.parent)
    gathered: Gathered | None = None
    for file in files:
        roles = find_roles(file, header_of(file), columns or {})
        gathered = gathered or Gathered(problems, roles.text)
        prefix = "" if images else file.parent.relative_to(root).as_posix()
        reader = _Blocks(file, roles, root, prefix.removeprefix("."), label_separator, problems)
        for block in reader.tables():
            gathered.add(_same_columns(block, gathered.text_fields))
    listed = read_class_list(classes) if classes is not None else None
    crawl = _named(gathered, listed).crawl(_kind(files), root, classes=listed)
    _hint_at_separator(crawl)
    return crawl


def read_truths(
    path: Path, column: str, *, images: Path, label_separator: str | None, problems: Problems
) -> pa.Table:
    """Return the images of a table and the names of what they show, null where it says nothing."""
    blocks: list[pa.Table] = []
    for file in table_files(path):
        image = find_roles(file, header_of(file), {}).image
        roles = Roles(image, None, (), None, column)
        blocks += _Blocks(file, roles, images, "", label_separator, problems).truths()
    return pa.concat_tables(blocks)


def _hint_at_separator(crawl: Crawl) -> None:
    """Say so where most names of classes look like several labels."""
    for mark in "" if crawl.has_several_labels else "|;,":
        joined = [name for name in crawl.class_names if mark in name]
        if len(joined) > max(1, len(crawl.class_names) / 2):
            warnings.warn(
                f"most labels have {mark!r} in them, as {joined[0][:60]!r}; if that stands between "
                f"several labels, say so (--label-separator {mark!r})",
                VSGraphWarning,
                stacklevel=4,
            )
            return


def _kind(files: Sequence[Path]) -> str:
    """Name the format."""
    many = f" in {len(files)} files" if len(files) > 1 else ""
    return f"a table ({files[0].suffix.removeprefix('.')}{many})"


def _same_columns(block: pa.Table, fields: Sequence[str]) -> pa.Table:
    """Give every block of several files the same columns."""
    for name in fields:
        if name not in block.column_names:
            block = block.append_column(name, pa.nulls(block.num_rows, pa.string()))
    return block.select([n for n in block.column_names if n in fields or n not in TEXT_FIELDS])


def _named(gathered: Gathered | None, classes: Sequence[str] | None) -> Gathered:
    """Replace class numbers by names where a list of classes says them."""
    if gathered is None:
        raise InputError("no table was found")
    if classes is None:
        return gathered
    numbers = pa.array([str(i) for i in range(len(classes))])
    names = pa.array(list(classes), pa.string())
    for i, block in enumerate(gathered.blocks):
        labels = block["web_labels"]
        if pa.types.is_list(labels.type) or set(pc.unique(labels).to_pylist()) & set(classes):
            continue
        place = block.column_names.index("web_labels")
        named = pc.take(names, pc.index_in(labels, numbers))
        gathered.blocks[i] = block.set_column(place, "web_labels", named)
    return gathered


def table_files(path: Path) -> list[Path]:
    """Return the tables of a path: a file, metadata in a folder or its folders, Parquet."""
    if path.is_file():
        if path.suffix.lower() not in ENDINGS:
            raise InputError(f"{path} is no table; one of {', '.join(ENDINGS)} is read")
        return [path]
    for pattern in (METADATA, [f"*/{name}" for name in METADATA], ["*.parquet"]):
        found = sorted(file for name in pattern for file in path.glob(name))
        if found:
            return found
    raise InputError(f"{path} holds no table: no {', '.join(METADATA)}, no Parquet files")


def find_roles(file: Path, header: Sequence[str], told: Mapping[str, str]) -> Roles:
    """Find which column holds what, by name or as told."""
    unknown = sorted(set(told) - {*KNOWN, "text"})
    if unknown:
        raise InputError(f"no such role {unknown[0]!r}; roles are {', '.join([*KNOWN, 'text'])}")
    lower = {plain_name(name): name for name in reversed(header)}

    def told_column(name: str) -> str:
        if name in header:
            return name
        raise InputError(f"{file} has no column {name!r}; it has {', '.join(header)}")

    def column(role: str) -> str | None:
        if role in told:
            return told_column(told[role])
        return next((lower[name] for name in KNOWN[role] if name in lower), None)

    image, label = column("image"), column("label")
    if image is None:
        raise InputError(
            f"{file} has no column for the image; it has {', '.join(header)}: say which, as in "
            "--column image=NAME"
        )
    if "text" in told:
        text = tuple(map(told_column, told["text"].split(",")))
    else:
        text = tuple(lower[n] for n in TEXT_FIELDS if n in lower and lower[n] not in {image, label})
    return Roles(image, label, text, column("source"), column("truth"))


def plain_name(name: str) -> str:
    """Return the name of a column in small letters, with bars below between words.

    >>> plain_name(" Alt Text ")
    'alt_text'
    """
    return "_".join(name.replace("-", " ").replace("_", " ").lower().split())


@dataclasses.dataclass(frozen=True)
class _Blocks:
    """Reads one table into blocks with the columns of a crawl."""

    file: Path
    roles: Roles
    root: Path
    prefix: str
    label_separator: str | None
    problems: Problems

    def tables(self) -> Iterator[pa.Table]:
        """Yield blocks: image, web_labels (names), text fields, source, truth."""
        first = 1
        for block in raw_blocks(self.file, self.roles.names, self.problems):
            n_rows = block.num_rows
            yield self._crawl_block(block, np.arange(first, first + n_rows))
            first += n_rows

    def truths(self) -> Iterator[pa.Table]:
        """Yield blocks of image and truth (names) alone."""
        first = 1
        for block in raw_blocks(self.file, self.roles.names, self.problems):
            numbers = np.arange(first, first + block.num_rows)
            images = self._images(block[self.roles.image], numbers)
            yield pa.table({"image": images, "truth": self._truth(block)})
            first += block.num_rows

    def _truth(self, block: pa.Table) -> pa.ChunkedArray:
        """Return lists of the names that images really show, null where a cell says nothing."""
        column = block[self.roles.truth]
        lists = _as_lists(column, self.label_separator)
        if pa.types.is_list(column.type):
            return lists
        return pc.if_else(pc.equal(pc.list_value_length(lists), 0), pa.scalar(None, LISTS), lists)

    def _crawl_block(self, block: pa.Table, numbers: NDArray[np.intp]) -> pa.Table:
        """Return a block with the columns of a crawl, without rows that lack image or label."""
        images = self._images(block[self.roles.image], numbers)
        labels = self._labels(block, images)
        made = {"image": images, "web_labels": labels}
        for name in self.roles.text:
            made[name] = _joined(block[name])
        if self.roles.source:
            made["source"] = _joined(block[self.roles.source])
        if self.roles.truth:
            made["truth"] = self._truth(block)
        usable = pc.and_(pc.is_valid(images), pc.is_valid(labels))
        unlabeled = pc.and_not(pc.is_valid(images), pc.is_valid(labels))
        for row in np.flatnonzero(unlabeled.to_numpy()):
            self.problems.add("no label", f"{self.file}, row {numbers[row]}")
        return pa.table(made).filter(usable)

    def _images(self, column: pa.ChunkedArray, numbers: NDArray[np.intp]) -> pa.ChunkedArray:
        """Return paths below the root; None, counted, where there is none."""
        joined = _joined(column)
        prefix = f"{self.prefix}/" if self.prefix else ""
        simple = pc.fill_null(pc.match_substring_regex(joined, PLAIN_PATH), pa.scalar(value=False))
        if pc.all(simple).as_py() and not prefix:
            return joined
        paths: list[str | None] = []
        for path, number in zip(joined.to_pylist(), numbers, strict=True):
            paths.append(self._image(path, prefix, int(number)))
        return pa.chunked_array([pa.array(paths, pa.string())])

    def _image(self, path: str | None, prefix: str, number: int) -> str | None:
        """Return a path below the root, or say why there is none."""
        where = f"{self.file}, row {number}"
        if path is None:
            self.problems.add("no image", where)
        elif path.startswith(("http://", "https://", "data:")):
            self.problems.add("image is a web address", where, "fetch the pictures first")
            return None
        inside = None if path is None else below(self.root, path)
        if path is not None and inside is None:
            self.problems.add("image path leads out of the folder", where, path[:200])
        return inside if inside is None or Path(path or "").is_absolute() else prefix + inside

    def _labels(self, block: pa.Table, images: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return names of labels; without a column, the folder that an image lies in."""
        if self.roles.label is None:
            folders = pc.extract_regex(images, r"(?P<folder>[^/]+)/[^/]*$")
            labels = pc.struct_field(folders, [0])
            if labels.null_count == len(labels):
                raise InputError(
                    f"{self.file} has no column for the label; say which, as in --column label=NAME"
                )
            return labels
        column = block[self.roles.label]
        if self.label_separator is None and not pa.types.is_list(column.type):
            return _joined(column)
        lists = _as_lists(column, self.label_separator)
        empty = pc.equal(pc.fill_null(pc.list_value_length(lists), 0), 0)
        return pc.if_else(empty, pa.scalar(None, LISTS), lists)


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text, lists joined by a space, nothing as None."""
    if pa.types.is_list(column.type):
        column = pc.binary_join(column, " ")
    trimmed = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _as_lists(column: pa.ChunkedArray, separator: str | None) -> pa.ChunkedArray:
    """Return lists of names; a cell is split where a separator is given."""
    if pa.types.is_list(column.type):
        return column.cast(LISTS)
    cells = [
        None if cell is None else
        [part.strip() for part in (cell.split(separator) if separator else [cell]) if part.strip()]
        for cell in column.to_pylist()
    ]  # fmt: skip
    return pa.chunked_array([pa.array(cells, LISTS)])
