"""The file or folder of an export: it appears complete, and replaces only earlier exports."""

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.common.files import (
    EXPORT,
    RECORD,
    mend_leftovers,
    new_folder,
    replaced_folder,
    whole_file,
)
from vsgraph.common.store_files import (
    objects_below,
    put_bytes,
    put_file,
    put_folder,
    remove_file,
)
from vsgraph.common.stores import StorePath, is_stored
from vsgraph.crawls.problems import Problems
from vsgraph.encoders.runtimes.models import cache_folder
from vsgraph.errors import InputError

UNFINISHED = ".vsgraph-unfinished"  # an object beside those of an export that is not whole


@dataclasses.dataclass(eq=False)
class Exported:
    """What an export wrote.

    >>> print(Exported(Path("out"), "hf", 3))
    3 images as hf in out
    """

    out: Path  # the file or folder
    to: str  # the format
    n_images: int
    problems: Problems = dataclasses.field(default_factory=Problems)  # images left out, by reason
    right: float | None = None  # estimated share of right labels, if they are doubted
    notes: list[str] = dataclasses.field(default_factory=list)  # what a user should know of it

    def __str__(self) -> str:
        line = f"{self.n_images} images as {self.to} in {self.out}"
        if self.right is not None:
            line += f"; estimated: {self.right:.1%} of the labels are right"
        return "\n".join([line, *self.notes, *self.problems.lines()])


@contextmanager
def export_folder(out: Path, crawl_root: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a new folder to write to; it takes its final name when the block ends."""
    mend_leftovers(out.parent)
    if out.exists() and crawl_root.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{out} holds the crawl itself; choose another folder")
    with (
        _no_empty_parents(out),
        new_folder(out, overwrite=overwrite, written_as=EXPORT) as unfinished,
    ):
        yield unfinished


def write_record(exported: Exported, folder: Path) -> None:
    """Write what an export is, and its problems, into its folder."""
    if len(exported.problems):
        exported.problems.save(folder / "problems.tsv")
    record = {"format": EXPORT, "to": exported.to, "images": exported.n_images}
    (folder / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")


@contextmanager
def export_file(out: Path, *, overwrite: bool, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Give a new file to write to; it takes its final name when the block ends."""
    mend_leftovers(out.parent)
    if out.is_dir():
        raise InputError(f"{out} is a folder; choose the name of a file")
    if out.exists() and not overwrite:
        raise InputError(
            f"{out} exists already; choose another file, or pass overwrite=True (--overwrite)"
        )
    if out.exists() and not is_ours(out):
        raise InputError(f"{out} was not written by vsgraph; left alone")
    with _no_empty_parents(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(out) as unfinished:
            yield unfinished


@contextmanager
def stored_export(
    out: StorePath,
    crawl_root: Path,
    *,
    overwrite: bool,
    is_ours: Callable[[Path], bool] | None,
) -> Iterator[Path]:
    """Give a new file or folder on this machine, which is uploaded when the block ends.

    An object appears whole. A folder is whole when its record is there, which goes up last; until
    then it is marked as unfinished, so that the same export may be started again.
    """
    is_folder = is_ours is None
    if out.exists() and not (is_folder and (out / UNFINISHED).exists()):
        what = "folder" if is_folder else "file"
        if not overwrite:
            raise InputError(
                f"{out} exists already; choose another {what}, or pass overwrite (--overwrite)"
            )
        if out.is_dir() != is_folder or not (is_ours or _is_export)(out):
            raise InputError(f"{out} was not written by vsgraph; left alone")
    if is_stored(crawl_root) and crawl_root.is_relative_to(out):
        raise InputError(f"{out} holds the crawl itself; choose another folder")
    name = hashlib.blake2b(str(out).encode(), digest_size=6).hexdigest()
    scratch = cache_folder() / "exports" / name
    with replaced_folder(scratch) as fresh:
        yield fresh if is_folder else fresh / out.name
    try:
        _upload_folder(scratch, out) if is_folder else put_file(scratch / out.name, out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_export(folder: Path) -> bool:
    """Return whether a folder in a store is an export of vsgraph, by its record."""
    try:
        written = json.loads((folder / RECORD).read_text())["format"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(written).rpartition("-")[0] == EXPORT.rpartition("-")[0]


def _upload_folder(folder: Path, out: StorePath) -> None:
    """Upload an export in the place of a former one."""
    put_bytes(b"", out / UNFINISHED)
    former = set(objects_below(out)) - {UNFINISHED}
    for name in sorted(former, key=lambda name: name != RECORD):
        remove_file(out / name)
    put_folder(folder, out, last=RECORD)
    remove_file(out / UNFINISHED)


@contextmanager
def _no_empty_parents(out: Path) -> Iterator[None]:
    """Remove the parent folders that a failed export made."""
    missing = [parent for parent in out.parents if not parent.exists()]
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # another program may have put something there
            for parent in missing:
                parent.rmdir()
        raise
