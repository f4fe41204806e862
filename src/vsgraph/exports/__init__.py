"""Corrected data out: one function a format, and :func:`export` for all of them."""

import inspect
from pathlib import Path
from typing import Any

from vsgraph.common.checks import check_one_of
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports.cleanlab import cleanlab_bytes, to_cleanlab
from vsgraph.exports.coco import to_coco
from vsgraph.exports.folders import to_hf, to_imagefolder
from vsgraph.exports.imglist import to_imglist
from vsgraph.exports.review_tools import to_fiftyone, to_labelstudio
from vsgraph.exports.shards import to_webdataset
from vsgraph.exports.tables import to_csv, to_parquet, to_soft
from vsgraph.exports.targets import Exported
from vsgraph.result.correction import Correction

__all__ = [
    "FORMATS",
    "Exported",
    "cleanlab_bytes",
    "export",
    "to_cleanlab",
    "to_coco",
    "to_csv",
    "to_fiftyone",
    "to_hf",
    "to_imagefolder",
    "to_imglist",
    "to_labelstudio",
    "to_parquet",
    "to_soft",
    "to_webdataset",
]

_WRITERS = {
    "csv": to_csv,
    "parquet": to_parquet,
    "soft": to_soft,
    "imagefolder": to_imagefolder,
    "hf": to_hf,
    "webdataset": to_webdataset,
    "coco": to_coco,
    "fiftyone": to_fiftyone,
    "labelstudio": to_labelstudio,
    "cleanlab": to_cleanlab,
    "imglist": to_imglist,
}
FORMATS = tuple(_WRITERS)


def export(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    to: str,
    overwrite: bool = False,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> Exported:
    """Write the corrected data of a crawl in a format that other programs read.

    Parameters
    ----------
    crawl, correction : Crawl and Correction
        The same images, row by row.
    out : path
        File for csv, parquet and coco, folder otherwise. It appears only when it is complete.
    to : str
        One of `FORMATS`.
    overwrite : bool
        Replace an export that is there already; nothing else is ever replaced.
    progress : bool
        Show a progress bar.
    **options
        What the format's own function takes, as ``mode="copy"`` of :func:`to_imagefolder`.

    Returns
    -------
    exported : Exported
        Where it is, how many images it has, and what was left out and why.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, tempfile, vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> made = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, class_names=["bat", "owl"],
    ...                        settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> table = pa.table({"image": [f"{i}.jpg" for i in range(8)],
    ...                   "web_labels": pa.array([0, 1] * 4, pa.int32())})
    >>> crawl = Crawl("a table", Path(), table, ("bat", "owl"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = export(crawl, made, Path(folder) / "list", to="imglist")
    ...     print((written.out / "imglist.txt").read_text().splitlines()[:2])
    ['0.jpg 0', '1.jpg 1']
    """
    check_one_of("to", to, FORMATS)
    known = set(inspect.signature(_WRITERS[to]).parameters)
    known -= {"crawl", "correction", "out", "overwrite", "progress"}
    unknown = sorted(set(options) - known)
    if unknown:
        has = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise InputError(f"{to} has no option {unknown[0]}; {has}")
    write: Any = _WRITERS[to]
    made: Exported = write(
        crawl, correction, out, overwrite=overwrite, progress=progress, **options
    )
    return made
