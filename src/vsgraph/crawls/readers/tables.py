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
    LISTS,
    TEXT_FIELDS,
    UNLABELED,
    ClassList,
    Gathered,
    below,
    is_list,
    others_column,
    read_class_list,
    with_column,
)
from vsgraph.crawls.crawl import Crawl, own_files
from vsgraph.crawls.picture_tables import PLACE
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.table_files import ENDINGS, header_of, listed, raw_blocks
from vsgraph.crawls.readers.table_roles import Roles, find_roles
from vsgraph.errors import InputError, VSGraphWarning

TRIED = 20  # paths and folders that are tried to find the pictures
PLAIN_PATH = r"^\w[\w .+@~-]*(/\w[\w .+@~-]*)*$"
METADATA = tuple(f"metadata{ending}" for ending in ENDINGS)
SHARDS = ["*.parquet", "*.arrow"], ["data/*.parquet", "*/data-*.arrow"]  # as the hub has them


def read_table(
    path: Path,
    *,
    images: Path | None = None,
    columns: Mapping[str, str] | None = None,
    label_separator: str | None = None,
    classes: ClassList | None = None,
    unlabeled: bool = False,
    problems: Problems,
) -> Crawl:
    """Read a table, or a folder with ``metadata.csv``, ``.jsonl`` or ``.parquet`` beside images.

    With `unlabeled`, images need no label.
    """
    files = table_files(path)
    all_roles = [find_roles(file, header_of(file), columns or {}) for file in files]
    if any(roles.inside for roles in all_roles):
        images = None  # the pictures are in the table
    root = images or (path if path.is_dir() else path.parent)
    gathered, is_bare = Gathered(problems, all_roles[0].text), False
    for file, roles in zip(files, all_roles, strict=True):
        own = "" if images else file.parent.relative_to(root).as_posix().removeprefix(".")
        prefix = own if images else _folder_of_pictures(file, roles, root, own)
        is_bare |= prefix != own and roles.label is None and not unlabeled
        reader = _Blocks(file, roles, root, prefix, label_separator, problems, unlabeled)
        for block in reader.tables():
            gathered.add(_same_columns(block, gathered.text_fields))
    known = read_class_list(classes) if classes is not None else None
    if known is not None:
        gathered.blocks = [_with_names(block, known) for block in gathered.blocks]
    many = f" in {len(files)} files" if len(files) > 1 else ""
    kind = f"a table ({files[0].suffix.removeprefix('.')}{many})"
    crawl = gathered.crawl(kind, root, classes=known)
    if is_bare and len(crawl.class_names) == 1:
        raise InputError(
            f"{files[0]} has no column for the label, and all pictures lie in one folder, "
            f"{crawl.class_names[0]!r}; it has {listed(header_of(files[0]))}: name one with "
            "--column label=NAME"
        )
    _hint_at_separator(crawl)
    return crawl


def read_truths(
    path: Path, column: str, *, images: Path, label_separator: str | None, problems: Problems
) -> pa.Table:
    """Return the images of a table and the names of the classes they show, null if unknown."""
    blocks: list[pa.Table] = []
    for file in table_files(path):
        image = find_roles(file, header_of(file), {}).image
        roles = Roles(image, None, (), None, column)
        blocks += _Blocks(file, roles, images, "", label_separator, problems).truths()
    if not blocks:
        raise InputError(f"{path} lists no image")
    return pa.concat_tables(blocks)


def _hint_at_separator(crawl: Crawl) -> None:
    """Warn if most class names look like several labels joined."""
    for mark in "" if crawl.has_several_labels else "|;,":
        joined = [name for name in crawl.class_names if mark in name]
        if len(joined) > max(1, len(crawl.class_names) / 2):
            warnings.warn(
                f"most labels contain {mark!r}, such as {joined[0][:60]!r}; if it separates "
                f"several labels, pass --label-separator {mark!r}",
                VSGraphWarning,
                stacklevel=4,
            )
            return


def _same_columns(block: pa.Table, fields: Sequence[str]) -> pa.Table:
    """Give every block of several files the same columns."""
    for name in fields:
        if name not in block.column_names:
            block = block.append_column(name, pa.nulls(block.num_rows, pa.string()))
    return block.select([n for n in block.column_names if n in fields or n not in TEXT_FIELDS])


def _with_names(block: pa.Table, classes: Sequence[str]) -> pa.Table:
    """Replace class numbers by the names in a list of classes, unless the block has names."""
    labels = block["web_labels"]
    if is_list(labels) or set(pc.unique(labels).to_pylist()) & set(classes):
        return block
    numbers = pa.array([str(i) for i in range(len(classes))])
    names = pa.array(list(classes), pa.string())
    return with_column(block, "web_labels", pc.take(names, pc.index_in(labels, numbers)))


def table_files(path: Path) -> list[Path]:
    """Return the tables of a path: the file; else metadata in it or its folders; else Parquet."""
    if path.is_file():
        if path.suffix.lower() not in ENDINGS:
            raise InputError(f"{path} is not a table; its ending must be {', '.join(ENDINGS)}")
        return [path]
    for patterns in (METADATA, [f"*/{name}" for name in METADATA], *SHARDS):
        if files := own_files(path, patterns):
            return files
    alone = own_files(path, [f"*{ending}" for ending in ENDINGS])
    if len(alone) == 1:
        return alone
    raise InputError(f"{path} holds no table: no {', '.join(METADATA)}, no Parquet files")


def _folder_of_pictures(file: Path, roles: Roles, root: Path, prefix: str) -> str:
    """Return the prefix of the paths in a table: its own, or a folder beside it that has them."""
    if roles.inside:
        return prefix
    first = next(raw_blocks(file, [roles.image], Problems()), None)
    names = [] if first is None else _joined(first[roles.image]).drop_null().to_pylist()[:TRIED]
    paths = [path for name in names if (path := below(root, name))]
    if not paths or any(_exists(root / prefix / path) for path in paths):
        return prefix
    folders = sorted(entry for entry in (root / prefix).iterdir() if entry.is_dir())[:TRIED]
    found = [f for f in folders if any(_exists(f / path) for path in paths)]
    return found[0].relative_to(root).as_posix() if len(found) == 1 else prefix


def _exists(path: Path) -> bool:
    """Return whether a file exists; no if it cannot be a path."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


@dataclasses.dataclass(frozen=True)
class _Blocks:
    """Reads one table into blocks with the columns of a crawl."""

    file: Path
    roles: Roles
    root: Path
    prefix: str
    label_separator: str | None
    problems: Problems
    unlabeled: bool = False  # whether images need no label

    def tables(self) -> Iterator[pa.Table]:
        """Yield blocks: image, web_labels (names), text fields, source, truth."""
        for block, images, numbers in self._blocks():
            yield self._crawl_block(block, images, numbers)

    def truths(self) -> Iterator[pa.Table]:
        """Yield blocks of image and truth (names) alone."""
        for block, images, _ in self._blocks():
            yield pa.table({"image": images, "truth": self._truth(block)})

    def _blocks(self) -> Iterator[tuple[pa.Table, pa.ChunkedArray, NDArray[np.intp]]]:
        """Yield blocks as they are, with the paths of their images and their row numbers."""
        first = 1
        named, others = self.roles.names, self.roles.others
        inside = (self.roles.image, self.root) if self.roles.inside else None
        for block in raw_blocks(self.file, named, self.problems, others=others, inside=inside):
            numbers = np.arange(first, first + block.num_rows)
            if self.roles.inside:
                yield block, block[self.roles.image], numbers
            else:
                yield block, self._images(block[self.roles.image], numbers), numbers
            first += block.num_rows

    def _truth(self, block: pa.Table) -> pa.ChunkedArray:
        """Return lists of the classes that images really show, null if a cell is empty."""
        column = block[self.roles.truth]
        lists = _as_lists(column, self.label_separator)
        if is_list(column):
            return lists
        return pc.if_else(pc.equal(pc.list_value_length(lists), 0), pa.scalar(None, LISTS), lists)

    def _crawl_block(
        self, block: pa.Table, images: pa.ChunkedArray, numbers: NDArray[np.intp]
    ) -> pa.Table:
        """Return a block with the columns of a crawl, without rows that lack image or label."""
        labels = self._labels(block, images)
        columns = {"image": images, "web_labels": labels}
        if self.roles.inside:
            columns |= {name: block[name] for name in PLACE}
        columns |= {name: _joined(block[name]) for name in self.roles.text}
        if self.roles.source:
            columns["source"] = _joined(block[self.roles.source])
        if self.roles.truth:
            columns["truth"] = self._truth(block)
        columns |= others_column({name: _filled(block[name]) for name in self.roles.others})
        unlabeled = pc.and_not(pc.is_valid(images), pc.is_valid(labels))
        for row in np.flatnonzero(unlabeled.to_numpy()):
            self.problems.add("no label", f"{self.file}, row {numbers[row]}")
        return pa.table(columns).filter(pc.and_(pc.is_valid(images), pc.is_valid(labels)))

    def _images(self, column: pa.ChunkedArray, numbers: NDArray[np.intp]) -> pa.ChunkedArray:
        """Return paths below the root; null, with a problem added, if there is none."""
        joined = _joined(column)
        simple = pc.fill_null(pc.match_substring_regex(joined, PLAIN_PATH), pa.scalar(value=False))
        if pc.all(simple).as_py() and not self.prefix:
            return joined
        pairs = zip(joined.to_pylist(), numbers, strict=True)
        paths = [self._image(path, f"{self.file}, row {number}") for path, number in pairs]
        return pa.chunked_array([pa.array(paths, pa.string())])

    def _image(self, path: str | None, where: str) -> str | None:
        """Return a path below the root, or None with a problem added."""
        if path is None:
            self.problems.add("no image", where)
            return None
        if path.startswith(("http://", "https://", "data:")):
            self.problems.add("image is a web address", where, "fetch the pictures first")
            return None
        inside = below(self.root, path)
        if inside is None:
            self.problems.add("image path leads out of the folder", where, path[:200])
        elif self.prefix and not Path(path).is_absolute():
            return f"{self.prefix}/{inside}"
        return inside

    def _single_labels(self, block: pa.Table) -> pa.ChunkedArray:
        """Return the label of each image, null if it has none."""
        if self.roles.label is None:
            return pa.chunked_array([pa.nulls(block.num_rows, pa.string())])
        return _joined(block[self.roles.label])

    def _labels(self, block: pa.Table, images: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return names of labels; without a column, the name of the folder of each image."""
        if self.unlabeled:
            return pc.fill_null(self._single_labels(block), UNLABELED)
        if self.roles.label is None:
            folders = pc.extract_regex(images, r"(?P<folder>[^/]+)/[^/]*$")
            labels = pc.struct_field(folders, [0])
            if labels.null_count == len(labels) or self.roles.inside:
                raise InputError(
                    f"{self.file} has no column for the label; name one with --column label=NAME"
                )
            return labels
        column = block[self.roles.label]
        if self.label_separator is None and not is_list(column):
            return _joined(column)
        lists = _as_lists(column, self.label_separator)
        empty = pc.equal(pc.fill_null(pc.list_value_length(lists), 0), 0)
        return pc.if_else(empty, pa.scalar(None, LISTS), lists)


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text: lists joined by a space, empty cells null."""
    if is_list(column):
        column = pc.binary_join(column, " ")
    return _filled(pc.utf8_trim_whitespace(column))


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text with empty cells null."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _as_lists(column: pa.ChunkedArray, separator: str | None) -> pa.ChunkedArray:
    """Return lists of names; cells are split at the separator if there is one."""
    if is_list(column):
        return column.cast(LISTS)
    cells = [
        None if cell is None else
        [part.strip() for part in (cell.split(separator) if separator else [cell]) if part.strip()]
        for cell in column.to_pylist()
    ]  # fmt: skip
    return pa.chunked_array([pa.array(cells, LISTS)])
