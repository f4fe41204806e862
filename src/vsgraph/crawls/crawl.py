"""A crawl as columns: one row per image, pictures left on disk until they are read."""

import dataclasses
import functools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.regular import is_regular, open_regular, read_regular
from vsgraph.common.stores import StorePath, ahead, is_stored
from vsgraph.crawls.arrow_files import is_arrow
from vsgraph.crawls.picture_tables import read_picture_cell
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError
from vsgraph.pictures.opener import MOST_BYTES

Rows = slice | NDArray[np.intp]
ALL = slice(None)
ARRAYS = "an array of web labels"  # the format of a crawl without pictures
OTHERS = "others"  # the column of columns that are only passed on


@dataclasses.dataclass(frozen=True, eq=False)
class Crawl:
    """Images found by query: where each lies, the queries that found it, the text beside it.

    Attributes
    ----------
    format : str
        The format it was read from, in words.
    root : Path
        The folder that the references to images are relative to.
    table : pyarrow.Table
        One row per image. `image`: string, the path below the root; within a tar, the path of the
        tar and the name in it. `web_labels`: int32, or list of int32 if images may have several.
        One string column per text field, null if there is no text. Optional: `source` (string);
        `truth` (list of int32: the classes it really shows, empty for none of them, null if
        unknown); `shard` (string), `offset` and `size` (int64) of images within tar shards;
        `others` (struct of strings): every other column of the crawl, as it is.
    class_names : tuple of str
        Names of the classes, in the order of their numbers.
    wnids : tuple of (str or None)
        The WordNet id of each class, if the crawl says it.
    text_fields : tuple of str
        The columns of text, in the order in which they are joined.
    problems : Problems
        The problems found, counted.
    other_truths : mapping of str to int
        Names in the truth that are no class, with their number of images.

    Examples
    --------
    >>> table = pa.table({"image": ["a.jpg"], "web_labels": pa.array([0], pa.int32()),
    ...                   "title": ["a crane"], "tags": ["bird marsh"]})
    >>> crawl = Crawl("a table", Path(), table, ("crane",), text_fields=("title", "tags"))
    >>> len(crawl), crawl.texts(), crawl.web_labels.tolist()
    (1, ['a crane bird marsh'], [0])
    """

    format: str
    root: Path
    table: pa.Table
    class_names: tuple[str, ...]
    wnids: tuple[str | None, ...] = ()
    text_fields: tuple[str, ...] = ()
    problems: Problems = dataclasses.field(default_factory=Problems)
    other_truths: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        return f"Crawl({self.format}: {len(self)} images, {len(self.class_names)} classes)"

    def _repr_html_(self) -> str:
        from vsgraph.crawls.showing import crawl_html

        return crawl_html(self)

    @property
    def has_several_labels(self) -> bool:
        """Whether an image may have several web labels."""
        return pa.types.is_list(self.table["web_labels"].type)

    @property
    def web_labels(self) -> Any:  # noqa: ANN401
        """The class number of each image, or a sparse boolean (n_images, n_classes) matrix."""
        column = self.table["web_labels"]
        return self._matrix(column) if self.has_several_labels else column.to_numpy()

    def labels_matrix(self) -> csr_array:
        """Return the web labels as a sparse boolean (n_images, n_classes) matrix."""
        return self._matrix(self.table["web_labels"])

    @property
    def truth(self) -> csr_array | None:
        """The classes that each image really shows, boolean (n_images, n_classes), if known."""
        return self._matrix(self.table["truth"]) if self._has("truth") else None

    @property
    def truth_known(self) -> NDArray[np.bool_]:
        """For each image, whether the truth is known, (n_images,)."""
        if not self._has("truth"):
            return np.zeros(len(self), bool)
        return np.asarray(self.table["truth"].is_valid().to_numpy(), bool)

    def judgeable(self) -> NDArray[np.intp]:
        """Return the rows to judge by: those of known truth, or all if the crawl has no truth."""
        return np.flatnonzero(self.truth_known) if self._has("truth") else np.arange(len(self))

    @property
    def sources(self) -> NDArray[Any] | None:
        """The source of each image, (n_images,), if the crawl says it."""
        if not self._has("source"):
            return None
        return np.asarray(self.table["source"].to_numpy(zero_copy_only=False))

    @property
    def other_columns(self) -> tuple[str, ...]:
        """Names of the columns that came along and are only passed on, such as `url`."""
        return tuple(field.name for field in self.table[OTHERS].type) if self._has(OTHERS) else ()

    def _has(self, column: str) -> bool:
        return column in self.table.column_names

    def _matrix(self, column: pa.ChunkedArray) -> csr_array:
        """Return class numbers, or lists of them, as a sparse boolean (n_images, n_classes)."""
        counts: Any = np.ones(len(column), np.int64)
        if pa.types.is_list(column.type):
            counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            column = pc.list_flatten(column)
        starts = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(counts), len(self.class_names))
        return csr_array((np.ones(len(column), bool), column.to_numpy(), starts), shape)

    def texts(self, rows: Rows = ALL, *, fields: Sequence[str] | None = None) -> list[str]:
        """Return the text of each image, its fields joined by a space; '' if it has none."""
        names = self.text_fields if fields is None else tuple(fields)
        unknown = sorted(set(names) - set(self.text_fields))
        if unknown:
            raise InputError(
                f"the crawl has no text field {unknown[0]!r}; it has {', '.join(self.text_fields)}"
            )
        part = _rows_of(self.table, rows)
        if not names:
            return [""] * len(part)
        columns = [pc.fill_null(part[name], "") for name in names]
        joined = pc.binary_join_element_wise(*columns, " ")
        single = pc.replace_substring_regex(joined, "  +", " ")  # a field was empty
        return pc.utf8_trim_whitespace(single).to_pylist()

    def take(self, rows: Rows) -> Self:
        """Return the images of some rows, in the order given."""
        return dataclasses.replace(self, table=_rows_of(self.table, rows))

    @functools.cached_property
    def _references(self) -> pa.Table:
        """Where the pictures lie, as one chunk: taking rows from many chunks is slow."""
        names = ["image", *(("shard", "offset", "size") if self.has_shards else ())]
        return self.table.select(names).combine_chunks()

    @property
    def has_pictures(self) -> bool:
        """Whether there are pictures at all; an array of web labels has none."""
        return self.format != ARRAYS

    @property
    def has_shards(self) -> bool:
        """Whether the pictures lie within tar shards or tables, not in files of their own."""
        return self._has("shard")

    @property
    def has_files(self) -> bool:
        """Whether each picture is a file of its own on this machine."""
        return not self.has_shards and not is_stored(self.root)

    def image_path(self, row: int) -> Path | None:
        """Return the path of a picture, None if it lies within a shard or an object store."""
        return None if not self.has_files else self.root / self.table["image"][row].as_py()

    def read_image(self, row: int) -> bytes:
        """Return the bytes of a picture's file."""
        return next(self.read_images(np.array([row])))

    def read_images(self, rows: Rows = ALL) -> Iterator[bytes]:
        """Yield the bytes of each picture, empty if its file cannot be read."""
        fence = Fence(self.root)
        for batch in _rows_of(self._references, rows).to_batches(1024):
            references = batch.to_pylist()
            read = functools.partial(_read, fence)
            alone = not is_stored(self.root) or any(map(_is_in_table, references))
            yield from map(read, references) if alone else ahead(read, references)


def _rows_of(table: pa.Table, rows: Rows) -> pa.Table:
    """Return rows of a table, a slice without copying."""
    if isinstance(rows, slice):
        start, stop, step = rows.indices(len(table))
        if step == 1:
            return table.slice(start, max(0, stop - start))
        rows = np.arange(start, stop, step)
    return table.take(pa.array(rows, pa.int64()))


class Fence:
    """Tells whether files lie within a folder, links followed; each folder is checked once."""

    def __init__(self, root: Path) -> None:
        self.root, self.real = root, root.resolve()
        self.inside: dict[str, bool] = {}

    def holds(self, name: str) -> bool:
        """Return whether a path below the root stays below it; no if it cannot be a path."""
        folder = name.rpartition("/")[0]
        try:
            if folder not in self.inside:
                self.inside[folder] = (self.root / folder).resolve().is_relative_to(self.real)
            is_safe = not self._is_link(name) or (
                (self.root / name).resolve().is_relative_to(self.real)
            )
        except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, links in a circle
            return False
        return self.inside[folder] and is_safe

    def _is_link(self, name: str) -> bool:
        """Return whether a path below the root is a link; no if there is no such path."""
        try:
            return stat.S_ISLNK(os.lstat(f"{self.root}/{name}").st_mode)  # a million times
        except (FileNotFoundError, NotADirectoryError):
            return False


def own_files(root: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the regular files that match, sorted; links out of the folder are left out."""
    fence = Fence(root)
    found = {path for pattern in patterns for path in root.glob(pattern) if is_regular(path)}
    return sorted(path for path in found if fence.holds(path.relative_to(root).as_posix()))


def _is_in_table(reference: dict[str, Any]) -> bool:
    """Return whether a picture is a cell of a table, which is read by groups of rows."""
    return is_arrow(Path(reference.get("shard", "")))


def _read(fence: Fence, reference: dict[str, Any]) -> bytes:
    """Read a picture from its file or from its place in a shard."""
    try:
        if "shard" not in reference:
            is_inside = fence.holds(reference["image"])
            return read_regular(fence.root / reference["image"], MOST_BYTES) if is_inside else b""
        path = fence.root / reference["shard"]
        if is_arrow(path):
            is_inside = fence.holds(reference["shard"]) and is_regular(path)
            return read_picture_cell(path, reference["offset"], MOST_BYTES) if is_inside else b""
        if isinstance(path, StorePath):
            return path.read_range(reference["offset"], min(reference["size"], MOST_BYTES))
        with open_regular(path) as shard:
            shard.seek(reference["offset"])
            return shard.read(min(reference["size"], MOST_BYTES))
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException):
        return b""
