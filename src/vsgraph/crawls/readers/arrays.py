"""Web labels as a ``.npy`` file: a crawl whose pictures and texts are given as vectors."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from vsgraph.common.checks import check_labels
from vsgraph.common.files import open_array
from vsgraph.crawls.columns import ClassList, read_class_list
from vsgraph.crawls.crawl import ARRAYS, Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError


def read_arrays(path: Path, *, classes: ClassList | None = None, problems: Problems) -> Crawl:
    """Read web labels, (n_images,) or boolean (n_images, n_classes); images are their rows.

    Classes are named by numbers if not given; of (n_images,) labels, the highest is the last class.
    """
    labels = open_array(path)
    is_numbers = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not labels.size or not (is_numbers or labels.ndim == 2):
        raise InputError(
            f"{path} must hold web labels, (n_images,) whole numbers or (n_images, n_classes) "
            f"booleans, got {labels.dtype} {labels.shape}"
        )
    n_classes = int(labels.max()) + 1 if is_numbers else labels.shape[1]
    names = list(map(str, range(n_classes))) if classes is None else read_class_list(classes)
    matrix = check_labels("web_labels", labels, n_rows=len(labels), n_classes=len(names))
    numbers = pa.array(matrix.indices, pa.int32())
    if labels.ndim == 2:
        numbers = pa.ListArray.from_arrays(pa.array(matrix.indptr, pa.int32()), numbers)
    images = pa.array(np.arange(len(labels)).astype(str), pa.string())
    table = pa.table({"image": images, "web_labels": numbers})
    return Crawl(ARRAYS, path.parent, table, tuple(names), problems=problems)
