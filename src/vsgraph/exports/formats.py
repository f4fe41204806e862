"""The formats of :func:`export`, in one table."""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_one_of, check_truth, label_matrix, name_rows
from vsgraph.common.files import file_errors
from vsgraph.common.stores import StorePath, place
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports import tables
from vsgraph.exports.card import write_card
from vsgraph.exports.cleanlab import write_cleanlab
from vsgraph.exports.folders import write_imagefolder
from vsgraph.exports.hf import write_hf
from vsgraph.exports.job import Job
from vsgraph.exports.json_formats import is_our_coco, write_coco, write_fiftyone, write_labelstudio
from vsgraph.exports.selection import Selection, Split, split_images, without
from vsgraph.exports.shards import write_webdataset
from vsgraph.exports.targets import (
    Exported,
    export_file,
    export_folder,
    stored_export,
    write_record,
)
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.screening.screened import Screening

ADVICE = "pass the crawl that the correction was made from"


class Format(NamedTuple):
    """How a format is written, and what it can hold."""

    write: Callable[..., None]  # takes a Job and the format's own options
    rejected: Literal["if asked", "always", "never"] = "if asked"  # whether it holds these images
    several: bool = True  # whether it holds several labels per image
    is_ours: Callable[[Path], bool] | None = None  # recognizes our files; None for a folder


FORMATS = {
    "csv": Format(tables.write_csv, rejected="always", is_ours=tables.is_our_csv),
    "parquet": Format(tables.write_parquet, rejected="always", is_ours=tables.is_our_parquet),
    "soft": Format(tables.write_soft, rejected="always"),
    "imagefolder": Format(write_imagefolder, several=False),
    "hf": Format(write_hf),
    "webdataset": Format(write_webdataset),
    "coco": Format(write_coco, is_ours=is_our_coco),
    "fiftyone": Format(write_fiftyone),
    "labelstudio": Format(write_labelstudio, rejected="always"),
    "cleanlab": Format(write_cleanlab, rejected="always"),
    "imglist": Format(tables.write_imglist, rejected="never", several=False),
}


@file_errors()
def export(
    crawl: Crawl,
    correction: Correction,
    out: str | Path,
    *,
    to: str,
    overwrite: bool = False,
    progress: bool = False,
    screening: Screening | None = None,
    **options: Any,  # noqa: ANN401
) -> Exported:
    """Write the corrected data of a crawl in a format that other programs read.

    Parameters
    ----------
    crawl : Crawl
        The images that were corrected, n_images of them.
    correction : Correction
        Made from this crawl: labels of shape (n_images,), or (n_images, n_classes) if images have
        several.
    out : path
        A file for csv, parquet and coco, otherwise a folder. It appears only once it is complete.
        Or an address in an object store (``s3://bucket/clean``).
    to : str
        The format, one of `FORMATS`; ``docs/exports.md`` describes each.
    overwrite : bool
        Replace an earlier export. Nothing else is ever replaced.
    progress : bool
        Show a progress bar.
    rejected : bool
        Include rejected images, marked as such. csv, parquet, soft, labelstudio and cleanlab always
        include them, unless images are chosen by quality; imglist never does.
    min_confidence, top, purity : float, int, float, optional
        Only labels at least so probable; only so many images of each class, the most probable
        first; as many as can be had with this share right by estimate. They narrow what the run
        kept.
    screening : Screening, optional
        Copies and flawed pictures, as a run knows them; they become columns.
    drop : sequence of str, optional
        Leave out ``duplicates`` (of copies one stays), ``placeholders``, and pictures that are
        ``broken``, ``tiny``, ``dark``, ``blank``, ``blurred`` or ``text``.
    split : float or sequence of float, optional
        Divide into train and test, or train, validation and test, by these shares. Copies of a
        picture stay together, and an image stays where it is when the crawl grows.
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
    chosen_names = [field.name for field in dataclasses.fields(Selection)]
    selection = Selection(**{name: options.pop(name) for name in chosen_names if name in options})
    _check_options(to, options, selection)
    refuse_other_crawl(crawl, correction)
    refuse_contradictions(correction)
    chosen, out = FORMATS[to], place(out)
    if crawl.has_several_labels and not chosen.several:
        others = ", ".join(name for name, other in FORMATS.items() if other.several)
        raise InputError(f"{to} holds one label per image; these hold several: {others}")
    if chosen.rejected == "always" and not selection.by_quality:
        selection = dataclasses.replace(selection, rejected=True)
    chosen_rows = selection.rows(correction)
    rows = without(chosen_rows, selection.drop, screening, correction)
    shares = selection.shares
    split = split_images(crawl, rows, shares, screening) if shares else None
    exported = Exported(out, to, len(rows), right=estimated_right(correction, rows))
    exported.notes += _notes(correction, chosen_rows, split, rows)
    if isinstance(out, StorePath):
        target = stored_export(out, crawl.root, overwrite=overwrite, is_ours=chosen.is_ours)
    elif chosen.is_ours is None:
        target = export_folder(out, crawl.root, overwrite=overwrite)
    else:
        target = export_file(out, overwrite=overwrite, is_ours=chosen.is_ours)
    with target as path:
        job = Job(crawl, correction, exported, path, rows, progress, split, screening)
        chosen.write(job, **options)
        if path.is_dir():
            write_card(job)
            write_record(exported, path)
    return exported


def estimated_right(correction: Correction, rows: NDArray[np.intp]) -> float | None:
    """Return the estimated share of right labels among images; None if they are not doubted."""
    left = rows[correction.decisions[rows] != Decision.REJECT]
    if correction.unwanted is None or not len(left):
        return None
    return float(correction.confidence[left].mean(dtype=np.float64))


def _notes(
    correction: Correction,
    rows: NDArray[np.intp],
    split: Split | None,
    left: NDArray[np.intp],
) -> list[str]:
    """Return what a user should know: who is left out, how large the parts are."""
    out = np.delete(np.arange(len(correction)), rows)
    n_rejected = int((correction.decisions[out] == Decision.REJECT).sum())
    n_unsure, notes = len(out) - n_rejected, []
    if n_rejected:
        notes.append(f"rejected images left out: {n_rejected} (--rejected includes them)")
    if n_unsure:
        notes.append(f"other images left out by the choice made: {n_unsure}")
    if len(left) < len(rows):
        notes.append(f"copies and flawed pictures left out: {len(rows) - len(left)}")
    rows = left
    if split is not None:
        numbers = split.numbers[rows]
        sizes = [f"{name} {(numbers == i).sum()}" for i, name in enumerate(split.names)]
        given = label_matrix(correction.final_labels[rows], len(correction.class_names))
        lacks = np.zeros(given.shape[1], bool)
        for i in range(len(split.names)):
            lacks |= np.asarray(given[numbers == i].sum(axis=0)) == 0
        lacks &= np.asarray(given.sum(axis=0)) > 0
        few = f"; classes without an image in one of them: {lacks.sum()}" if lacks.any() else ""
        notes.append(f"split: {', '.join(sizes)}{few}")
    return notes


def refuse_contradictions(correction: Correction) -> None:
    """Refuse final labels that were changed without their decisions."""
    web, final = correction.web_labels, correction.final_labels
    pairs = (final, web) if final.ndim == 2 else (final[:, None], web[:, None])
    same = (pairs[0] == pairs[1]).all(axis=1)
    none = ~final.any(axis=1) if final.ndim == 2 else final < 0
    expected = np.where(same, Decision.KEEP, np.where(none, Decision.REJECT, Decision.RELABEL))
    wrong = (expected != correction.decisions) & ~(none & (correction.decisions == Decision.REJECT))
    if wrong.any():
        raise InputError(
            f"final labels and decisions contradict each other in {name_rows(wrong)}: a label that "
            "is the web label is kept, another one relabeled, none rejected; change both"
        )


def _check_options(to: str, options: dict[str, Any], selection: Selection) -> None:
    """Refuse options that a format does not have."""
    known = sorted(set(inspect.signature(FORMATS[to].write).parameters) - {"job"})
    unknown = sorted(set(options) - set(known))
    if unknown:
        hint = f"its options are {', '.join(known)}" if known else "it has no options of its own"
        raise InputError(f"{to} has no option {unknown[0]}; {hint}")
    if selection.rejected and FORMATS[to].rejected == "never":
        raise InputError(f"{to} cannot hold rejected images: they have no final label")
    if to == "cleanlab" and (selection.by_quality or selection.drop):
        raise InputError("cleanlab needs every image, since its graph connects them")


def refuse_other_crawl(crawl: Crawl, correction: Correction) -> None:
    """Refuse a correction of another crawl: its size, classes and web labels must be the same."""
    if len(crawl) != len(correction):
        raise InputError(
            f"the crawl has {len(crawl)} images and the correction {len(correction)}; {ADVICE}"
        )
    numbers = tuple(map(str, range(len(crawl.class_names))))  # of a correction without names
    if correction.class_names not in {crawl.class_names, numbers}:
        raise InputError(f"the classes of the crawl and of the correction differ; {ADVICE}")
    if crawl.has_several_labels != (correction.web_labels.ndim == 2):
        raise InputError(f"only one of crawl and correction has several labels per image; {ADVICE}")
    corrected = check_truth(
        "web_labels", correction.web_labels, n_rows=len(crawl), n_classes=len(numbers)
    )
    differs = np.asarray((crawl.labels_matrix() != corrected).sum(axis=1)) > 0
    if differs.any():
        raise InputError(
            f"the web labels of crawl and correction differ in {name_rows(differs)}; {ADVICE}"
        )
