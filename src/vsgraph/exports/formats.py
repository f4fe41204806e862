"""The formats of :func:`export`, in one table."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vsgraph.common.checks import check_one_of
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports.cleanlab import write_cleanlab
from vsgraph.exports.coco import is_our_coco, write_coco
from vsgraph.exports.folders import write_imagefolder
from vsgraph.exports.hugging_face import write_hf
from vsgraph.exports.imglist import write_imglist
from vsgraph.exports.job import Job, select_rows
from vsgraph.exports.match import refuse_other_crawl
from vsgraph.exports.review_tools import write_fiftyone, write_labelstudio
from vsgraph.exports.shards import write_webdataset
from vsgraph.exports.tables import (
    is_our_csv,
    is_our_parquet,
    write_csv,
    write_parquet,
    write_soft,
)
from vsgraph.exports.targets import Exported, export_file, export_folder, write_record
from vsgraph.result.correction import Correction


class Format(NamedTuple):
    """How a format is written, and what it can hold."""

    write: Callable[..., None]  # takes a Job and the format's own options
    rejected: Literal["if asked", "always", "never"] = "if asked"  # whether it holds these images
    several: bool = True  # whether it holds several labels per image
    is_ours: Callable[[Path], bool] | None = None  # knows our own files; None if it is a folder


FORMATS = {
    "csv": Format(write_csv, rejected="always", is_ours=is_our_csv),
    "parquet": Format(write_parquet, rejected="always", is_ours=is_our_parquet),
    "soft": Format(write_soft, rejected="always"),
    "imagefolder": Format(write_imagefolder, several=False),
    "hf": Format(write_hf),
    "webdataset": Format(write_webdataset),
    "coco": Format(write_coco, is_ours=is_our_coco),
    "fiftyone": Format(write_fiftyone),
    "labelstudio": Format(write_labelstudio, rejected="always"),
    "cleanlab": Format(write_cleanlab, rejected="always"),
    "imglist": Format(write_imglist, rejected="never", several=False),
}


def export(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    to: str,
    overwrite: bool = False,
    rejected: bool = False,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> Exported:
    """Write the corrected data of a crawl in a format that other programs read.

    Parameters
    ----------
    crawl : Crawl
        The images that were corrected, n_images of them.
    correction : Correction
        Made from this crawl: labels of shape (n_images,), or (n_images, n_classes) where an image
        may have several.
    out : path
        A file for csv, parquet and coco, otherwise a folder. It appears only once it is complete.
    to : str
        The format, one of `FORMATS`; ``docs/exports.md`` describes each.
    overwrite : bool
        Replace an earlier export. Nothing else is ever replaced.
    rejected : bool
        Include rejected images, marked as such. csv, parquet, soft, labelstudio and cleanlab always
        include them; imglist never does.
    progress : bool
        Show a progress bar.
    **options
        The format's own options, such as ``mode="copy"`` of imagefolder.

    Returns
    -------
    exported : Exported
        Where it is, how many images it holds, and what was left out and why.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, tempfile, vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> correction = vsgraph.correct(
    ...     texts, texts, np.eye(2), [0, 1] * 4, class_names=["bat", "owl"],
    ...     settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> table = pa.table({"image": [f"{i}.jpg" for i in range(8)],
    ...                   "web_labels": pa.array([0, 1] * 4, pa.int32())})
    >>> crawl = Crawl("a table", Path(), table, ("bat", "owl"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = export(crawl, correction, Path(folder) / "list", to="imglist")
    ...     print((exported.out / "imglist.txt").read_text().splitlines()[:2])
    ['0.jpg 0', '1.jpg 1']
    """
    check_one_of("to", to, tuple(FORMATS))
    _check_options(to, options, rejected=rejected)
    refuse_other_crawl(crawl, correction)
    chosen, out = FORMATS[to], Path(out)
    if crawl.has_several_labels and not chosen.several:
        others = ", ".join(name for name, other in FORMATS.items() if other.several)
        raise InputError(f"{to} holds one label per image; these hold several: {others}")
    rows = select_rows(correction, rejected=rejected or chosen.rejected == "always")
    if chosen.is_ours is None:
        target = export_folder(out, crawl.root, overwrite=overwrite)
    else:
        target = export_file(out, overwrite=overwrite, is_ours=chosen.is_ours)
    with target as path:
        job = Job(crawl, correction, to, path, rows, progress)
        chosen.write(job, **options)
        exported = Exported(out, to, job.n_images, job.problems)
        if path.is_dir():
            write_record(exported, path)
    return exported


def _check_options(to: str, options: dict[str, Any], *, rejected: bool) -> None:
    """Refuse options that a format does not have."""
    known = sorted(set(inspect.signature(FORMATS[to].write).parameters) - {"job"})
    unknown = sorted(set(options) - set(known))
    if unknown:
        hint = f"its options are {', '.join(known)}" if known else "it has no options of its own"
        raise InputError(f"{to} has no option {unknown[0]}; {hint}")
    if rejected and FORMATS[to].rejected == "never":
        raise InputError(f"{to} cannot hold rejected images: they have no class number")
