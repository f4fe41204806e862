"""A list for training scripts: one path and class number per line."""

from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from vsgraph.common.blocks import row_blocks
from vsgraph.exports.job import Job
from vsgraph.exports.names import write_class_names
from vsgraph.result.correction import Correction


def write_imglist(job: Job, *, soft: bool = False) -> None:
    """Write ``imglist.txt`` with lines ``path number``, and ``class_names.txt``.

    The number follows the last space of a line. A path with a line break is left out and counted.

    Parameters
    ----------
    job : Job
        What to write; one label per image.
    soft : bool
        Also write ``soft_labels.npy``, float32 of shape (n_lines, n_classes).
    """
    listed: list[int] = []
    with (job.path / "imglist.txt").open("w", encoding="utf-8", newline="\n") as file:
        for rows in job.blocks():
            images = job.column("image", rows).to_pylist()
            labels = job.correction.final_labels[rows]
            for row, image, label in zip(rows.tolist(), images, labels, strict=True):
                if "\n" in image or "\r" in image:
                    job.problems.add("path with a line break", f"row {row}")
                    continue
                file.write(f"{image} {label}\n")
                listed.append(row)
    write_class_names(job.path / "class_names.txt", job.class_names)
    job.n_images = len(listed)
    if soft:
        _write_soft(job.path / "soft_labels.npy", job.correction, np.array(listed, np.intp))


def _write_soft(path: Path, correction: Correction, rows: NDArray[np.intp]) -> None:
    """Write the soft labels of some rows as a dense array."""
    soft = correction.soft_labels()
    dense = open_memmap(path, mode="w+", dtype=np.float32, shape=(len(rows), soft.n_classes))
    for block in row_blocks(len(rows), row_bytes=4 * soft.n_classes):
        dense[block] = soft[rows[block]]
    dense.flush()
