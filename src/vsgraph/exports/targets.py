"""Where an export goes: it appears whole or not at all, and replaces only what an export wrote."""

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.common.files import EXPORT, RECORD, new_folder, refuse_taken
from vsgraph.crawls.crawl import Crawl
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
        Images in it.
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
def export_folder(
    out: str | Path, crawl: Crawl, *, to: str, overwrite: bool
) -> Iterator[tuple[Path, Exported]]:
    """Give a folder to write to and the record to fill; both are in place when the block ends."""
    folder, made = Path(out), Exported(Path(out), to)
    refuse_taken(folder, overwrite=overwrite, written_as=EXPORT)
    _refuse_home(folder, crawl)
    with new_folder(folder, overwrite=overwrite, written_as=EXPORT) as fresh:
        yield fresh, made
        if len(made.problems):
            made.problems.save(fresh / "problems.tsv")
        record = {"format": EXPORT, "to": to, "images": made.n_images}
        (fresh / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")


def _refuse_home(out: Path, crawl: Crawl) -> None:
    """Refuse to replace a folder that the crawl's own pictures lie in."""
    if out.exists() and crawl.root.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{out} holds the crawl itself; choose another folder")


@contextmanager
def export_file(
    out: str | Path, *, to: str, overwrite: bool, is_ours: Callable[[Path], bool]
) -> Iterator[tuple[Path, Exported]]:
    """Give a file to write to and the record to fill; it takes its name when the block ends."""
    path, made = Path(out), Exported(Path(out), to)
    _refuse_taken_file(path, overwrite=overwrite, is_ours=is_ours)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield scratch / path.name, made
        (scratch / path.name).replace(path)
    finally:
        shutil.rmtree(scratch)


def _refuse_taken_file(path: Path, *, overwrite: bool, is_ours: Callable[[Path], bool]) -> None:
    """Refuse a file that is there already, unless it is ours and may be replaced."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; choose the name of a file")
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} exists already; choose another file, or say overwrite (--overwrite)"
        )
    if path.exists() and not is_ours(path):
        raise InputError(f"{path} was not written by vsgraph; left alone")
