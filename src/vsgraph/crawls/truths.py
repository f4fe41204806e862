"""What images really show, from a table beside the crawl."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.crawls.problems import Problems
from vsgraph.crawls.record import Crawl
from vsgraph.crawls.table_files import header_of
from vsgraph.crawls.tables import KNOWN, plain_name, read_table, table_files
from vsgraph.errors import InputError


def read_truth(
    path: Path, crawl: Crawl, *, label_separator: str | None = None
) -> tuple[csr_array, NDArray[np.bool_]]:
    """Read the truth of a crawl's images from a table of paths and classes.

    Parameters
    ----------
    path : Path
        A table as :func:`~vsgraph.crawls.tables.read_table` reads it, with a column `truth` (or
        `label`) of class names; a name that is no class of the crawl means none of them.
    crawl : Crawl
        Whose images are meant; rows are joined by the image's path.
    label_separator : str, optional
        What stands between several classes.

    Returns
    -------
    truth : bool csr_array of shape (n_images, n_classes)
        The classes that each image shows.
    known : bool array of shape (n_images,)
        Images that the table speaks of.
    """
    column = _truth_column(path)
    table = read_table(
        path, images=crawl.root, columns={"label": column}, label_separator=label_separator,
        problems=Problems(),
    )  # fmt: skip
    places = pc.index_in(crawl.table["image"], table.table["image"].combine_chunks())
    known = np.asarray(pc.is_valid(places).to_numpy(zero_copy_only=False), bool)
    if not known.any():
        raise InputError(f"{path} speaks of no image of the crawl; paths must be the same")
    rows = np.flatnonzero(known)
    shown = csr_array(table.take(places.drop_null().to_numpy()).labels_matrix())
    numbers = pc.index_in(pa.array(table.class_names), pa.array(crawl.class_names)).to_pylist()
    entries = shown.tocoo()
    classes = np.array([-1 if n is None else n for n in numbers])[entries.col]
    kept = classes >= 0
    truth = csr_array(
        (np.ones(int(kept.sum()), bool), (rows[entries.row[kept]], classes[kept])),
        shape=(len(crawl), len(crawl.class_names)),
    )
    return truth, known


def _truth_column(path: Path) -> str:
    """Return the column that holds the truth."""
    header = header_of(table_files(path)[0])
    lower = {plain_name(name): name for name in reversed(header)}
    for name in (*KNOWN["truth"], *KNOWN["label"]):
        if name in lower:
            return lower[name]
    raise InputError(f"{path} has no column for the truth; it has {', '.join(header)}")
