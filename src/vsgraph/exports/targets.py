"""The file or folder of an export: it appears complete, and replaces only earlier exports."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.common.files import EXPORT, RECORD, mend_leftovers, new_folder, whole_file
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError


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
