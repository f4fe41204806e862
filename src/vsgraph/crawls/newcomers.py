"""New images to be labeled by what is known of other images: with labels and texts or without."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vsgraph.crawls.columns import UNLABELED, is_image, with_column
from vsgraph.crawls.crawl import Crawl, own_files
from vsgraph.crawls.formats import read_crawl, recognize
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.folders import read_pictures
from vsgraph.errors import InputError, VSGraphWarning

N_SHOWN = 5


def read_newcomers(
    paths: Sequence[Path],
    class_names: Sequence[str],
    **options: Any,  # noqa: ANN401
) -> Crawl:
    """Read new images: pictures, a folder of pictures, or a crawl in any format.

    Class numbers are those of `class_names`, -1 where an image has no label, or one that is not
    among them. `options` are those of :func:`~vsgraph.crawls.read_crawl`.
    """
    crawl = _read(paths, options)
    if crawl.has_several_labels:
        raise InputError("new images must have one web label each, or none; give one of them")
    if not crawl.has_pictures:
        raise InputError(f"{paths[0]} has no pictures, only labels; give the pictures")
    known = pa.array(list(class_names), pa.string())
    numbers = pc.index_in(pa.array(crawl.class_names, pa.string()), known)
    unknown = [name for name in crawl.class_names if name not in {*class_names, UNLABELED}]
    if unknown:
        listed = ", ".join(repr(name[:60]) for name in unknown[:N_SHOWN])
        warnings.warn(
            f"{len(unknown):,} labels are no class of the run and are left aside: {listed}",
            VSGraphWarning,
            stacklevel=3,
        )
    labels = pc.fill_null(numbers.take(crawl.table["web_labels"].combine_chunks()), -1)
    table = with_column(crawl.table, "web_labels", labels)
    return Crawl(
        crawl.format, crawl.root, table, tuple(class_names), text_fields=crawl.text_fields,
        problems=crawl.problems,
    )  # fmt: skip


def _read(paths: Sequence[Path], options: dict[str, Any]) -> Crawl:
    """Read new images with the names of their own labels."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise InputError(f"{missing} does not exist")
    problems = Problems(strict=bool(options.get("strict")))
    if all(path.is_file() and is_image(path.name) for path in paths):
        root = Path(os.path.commonpath([path.absolute().parent for path in paths]))
        names = [path.absolute().relative_to(root).as_posix() for path in paths]
        return read_pictures(root, names, problems=problems)
    if len(paths) > 1:
        raise InputError("give several pictures, or one folder, or one crawl")
    path, is_plain = paths[0], False
    if path.is_dir() and "format" not in options:
        is_plain = any(is_image(found.name) for found in own_files(path, ["*"]))
    try:
        name = options.get("format") or recognize(path)
    except InputError:
        if not is_plain:
            raise
        name = "folder"
    if is_plain and name == "folder":  # pictures that lie in no class's folder
        return read_pictures(path, problems=problems)
    more = {"unlabeled": True} if name == "table" else {}
    return read_crawl(path, **{**options, **more, "format": name})
