"""The truth, the classes that images really show, from a table beside the crawl.

The same rule as for a truth within the crawl (:func:`~vsgraph.crawls.columns.numbered_truth`): an
empty cell means unknown, a name that is no class means none of the classes.
"""

import dataclasses
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.columns import NONE, numbered_truth
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems, one_line
from vsgraph.crawls.readers.table_files import header_of, listed
from vsgraph.crawls.readers.table_roles import KNOWN, named_like
from vsgraph.crawls.readers.tables import read_truths, table_files
from vsgraph.errors import InputError, VSGraphWarning, is_meant

N_SHOWN = 5
N_COMPARED = 200  # names that are compared with the classes to find misspelled ones


def with_truth(crawl: Crawl, path: Path, *, label_separator: str | None = None) -> Crawl:
    """Return a crawl with the truth from a table, joined by the paths of the images.

    The table has a column `truth` (or `label`) of class names. Images that it does not list, or
    with an empty cell, are unknown; a name that is no class, such as `none`, means none of them.
    Pictures in shards may be named without their shard, others by their file name alone if no two
    are called the same.
    """
    truths = read_truths(
        path, _truth_column(path), images=crawl.root, label_separator=label_separator,
        problems=Problems(),
    )  # fmt: skip
    listed_images = truths["image"].combine_chunks()
    _refuse_two_truths(path, truths)
    places = pc.index_in(crawl.table["image"], listed_images)
    if places.null_count == len(places):
        short = _members(crawl) if crawl.has_shards else _file_names(crawl)
        places = pc.index_in(short, listed_images)
    if places.null_count == len(places):
        raise InputError(
            f"{path} lists no image of the crawl; paths must be the same, but it has "
            f"{_first(truths['image'])} and the crawl {_first(crawl.table['image'])}"
        )
    truth = truths["truth"].take(places)
    if truth.null_count == len(truth):
        raise InputError(f"{path} has no truth for any image of the crawl: its cells are empty")
    images = crawl.table.select(["image"]).append_column("truth", truth)
    numbered, others = numbered_truth(images, crawl.class_names)
    rest = crawl.table.select([name for name in crawl.table.column_names if name != "truth"])
    table = rest.append_column("truth", numbered["truth"])
    return dataclasses.replace(crawl, table=table, other_truths=others)


def _refuse_two_truths(path: Path, truths: pa.Table) -> None:
    """Refuse a table that says different things of one image."""
    codes = truths["image"].combine_chunks().dictionary_encode().indices
    filled = codes.fill_null(-1).to_numpy()
    often = np.bincount(filled[filled >= 0]) > 1
    rows = np.flatnonzero((filled >= 0) & (often[filled] if len(often) else False))
    said: dict[str, set[str] | None] = {}
    for row in truths.take(pa.array(rows)).to_pylist():
        shown = None if row["truth"] is None else set(row["truth"])
        if said.setdefault(row["image"], shown) != shown:
            raise InputError(
                f"{path} lists {row['image'][:80]!r} more than once, with different truths; "
                "several classes of an image stand in one cell (--label-separator)"
            )


def _members(crawl: Crawl) -> pa.ChunkedArray:
    """Return the names of pictures within their shards; null if two shards have the same."""
    lengths = pc.add(pc.binary_length(crawl.table["shard"]), 1)
    names = [image[length:] for image, length in zip(
        crawl.table["image"].to_pylist(), lengths.to_pylist(), strict=True)]  # fmt: skip
    return _unique(names)


def _file_names(crawl: Crawl) -> pa.ChunkedArray:
    """Return the names of the pictures' files without their folders; null if two have the same."""
    return _unique([image.rpartition("/")[2] for image in crawl.table["image"].to_pylist()])


def _unique(names: Sequence[str]) -> pa.ChunkedArray:
    """Return names, null in place of those that occur more than once."""
    counts = Counter(names)
    return pa.chunked_array([[name if counts[name] == 1 else None for name in names]], pa.string())


def _first(images: pa.ChunkedArray) -> str:
    """Return the first path, for messages."""
    path = next((path for path in images.to_pylist() if path), "")
    return repr(one_line(path)[:80])


def truth_as_label(path: Path) -> dict[str, str]:
    """Return the column to take labels from, if a table has the truth but no label."""
    try:
        header = header_of(table_files(path)[0])
    except InputError:  # it is no table
        return {}
    truth = named_like(header, KNOWN["truth"])
    return {"label": truth} if truth and named_like(header, KNOWN["label"]) is None else {}


def tell_others(crawl: Crawl) -> None:
    """Warn of names in the truth that are no class, in case one is misspelled."""
    others = dict(crawl.other_truths)
    if not others:
        return
    meant = {name: is_meant(name, crawl.class_names) for name in list(others)[:N_COMPARED]}
    first = sorted(others, key=lambda name: meant.get(name) is None)[:N_SHOWN]
    listed = ", ".join(_described(name, others[name], meant.get(name)) for name in first)
    many = f"{len(others):,} names that are" if len(others) > 1 else "a name that is"
    more = ", ..." if len(others) > N_SHOWN else ""
    more += _hint_at_separator(list(meant), crawl.class_names)
    warnings.warn(
        f"the truth has {many} no class: {listed}{more}; an image with no other name counts as "
        f"showing none of the classes (write {NONE!r} to say so without this warning)",
        VSGraphWarning,
        stacklevel=3,
    )


def _hint_at_separator(names: Sequence[str], class_names: Sequence[str]) -> str:
    """Return a hint if names look like several classes in one cell.

    >>> _hint_at_separator(["cat|dog"], ["cat", "dog"])
    "; if '|' separates several classes, pass --label-separator '|'"
    """
    known = set(class_names)
    for mark in "|;,":
        if any({part.strip() for part in name.split(mark)} & known for name in names):
            return f"; if {mark!r} separates several classes, pass --label-separator {mark!r}"
    return ""


def _described(name: str, n_images: int, meant: str | None) -> str:
    """Return a name with its number of images, and the class that may be meant."""
    hint = f"; is {meant!r} meant?" if meant else ""
    return f"{name[:60]!r} ({n_images:,} image{'s' * (n_images > 1)}{hint})"


def _truth_column(path: Path) -> str:
    """Return the column that holds the truth."""
    header = header_of(table_files(path)[0])
    column = named_like(header, (*KNOWN["truth"], *KNOWN["label"]))
    if column is None:
        raise InputError(f"{path} has no column for the truth; it has {listed(header)}")
    return column
