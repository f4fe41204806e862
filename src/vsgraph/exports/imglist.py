"""The list that training scripts read: a path and a class number a line."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.crawls.crawl import Crawl
from vsgraph.exports.rows import Corrected
from vsgraph.exports.tables import write_names
from vsgraph.exports.targets import Exported, export_folder
from vsgraph.result.correction import Correction


def to_imglist(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    soft: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Exported:
    """Write ``imglist.txt`` with lines ``path number``, for images that are kept or relabeled.

    The number is behind the last space of a line. ``class_names.txt`` has the names.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row; one label an image.
    out : path
        The folder.
    soft : bool
        Also write ``soft_labels.npy``, float32 of shape (n_lines, n_classes).
    overwrite : bool
        Replace an export that is there already.
    progress : bool
        Show a progress bar.

    Returns
    -------
    exported : Exported
        Images in the list; a path with a line break is left out and counted.
    """
    both = Corrected.join(crawl, correction)
    both.refuse_several("imglist")
    with export_folder(out, crawl, to="imglist", overwrite=overwrite) as (folder, made):
        listed = _listed(both, made)
        with (folder / "imglist.txt").open("w", encoding="utf-8", newline="\n") as file:
            for rows in both.blocks(title="imglist", progress=progress):
                images = both.column("image", rows).to_pylist()
                labels = correction.final_labels[rows].tolist()
                file.writelines(
                    f"{image} {label}\n"
                    for image, label, wanted in zip(images, labels, listed[rows], strict=True)
                    if wanted
                )
        write_names(folder / "class_names.txt", both.names)
        made.n_images = int(listed.sum())
        if soft:
            _write_soft(folder / "soft_labels.npy", correction, np.flatnonzero(listed))
    return made


def _listed(both: Corrected, made: Exported) -> NDArray[np.bool_]:
    """Tell which images can be listed; count paths that do not fit a line."""
    listed = ~both.rejected
    broken = pc.match_substring_regex(both.crawl.table["image"], r"[\r\n]").to_numpy()
    for row in np.flatnonzero(broken & listed):
        made.problems.add("path with a line break", f"row {row}")
    return np.asarray(listed & ~broken)


def _write_soft(path: Path, correction: Correction, rows: NDArray[np.intp]) -> None:
    """Write soft labels of some rows as a dense array."""
    soft = correction.soft_labels()
    dense = open_memmap(path, mode="w+", dtype=np.float32, shape=(len(rows), soft.n_classes))
    for block in row_blocks(len(rows), row_bytes=4 * soft.n_classes):
        dense[block] = soft[rows[block]]
    dense.flush()
