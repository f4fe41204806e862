"""Where an export goes: it appears whole or not at all, and replaces only earlier exports."""

import contextlib
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.common.files import EXPORT, RECORD, new_folder, refuse_taken
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError


@dataclasses.dataclass(eq=False)
class Exported:
    """What an export wrote.

    Attributes
    ----------
    out : Path
        The file or folder.
    to : str
        The format.
    n_images : int
        How many images it holds.
    problems : Problems
        Images that were left out, counted by reason; rejected ones are not among them.

    Examples
    --------
    >>> print(Exported(Path("out"), "hf", 3))
    3 images as hf in out
    """

    out: Path
    to: str
    n_images: int = 0
    problems: Problems = dataclasses.field(default_factory=Problems)

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.n_images} images as {self.to} in {self.out}", *self.problems.lines()]
        )


@contextmanager
def export_folder(out: Path, crawl_root: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a new folder to write to; it takes its final name when the block ends."""
    refuse_taken(out, overwrite=overwrite, written_as=EXPORT)
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
    _refuse_taken_file(out, overwrite=overwrite, is_ours=is_ours)
    with _no_empty_parents(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            yield scratch / out.name
            (scratch / out.name).replace(out)
        finally:
            shutil.rmtree(scratch)


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


def _refuse_taken_file(path: Path, *, overwrite: bool, is_ours: Callable[[Path], bool]) -> None:
    """Refuse an existing file, unless vsgraph wrote it and it may be replaced."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; choose the name of a file")
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} exists already; choose another file, or pass overwrite=True (--overwrite)"
        )
    if path.exists() and not is_ours(path):
        raise InputError(f"{path} was not written by vsgraph; left alone")
