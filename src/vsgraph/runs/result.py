"""A run on disk, read back: its crawl, meanings, correction, and what can be done with them."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

from vsgraph.correction import Correction
from vsgraph.crawls import Crawl, load_crawl
from vsgraph.errors import InputError
from vsgraph.exports import Exported, export
from vsgraph.meaning_table import read_meanings
from vsgraph.meanings import Meaning
from vsgraph.report import write_report
from vsgraph.runs.folder import RunFolder
from vsgraph.storage import open_array


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What a run left.

    Attributes
    ----------
    path : Path
        Its folder.
    record : dict
        ``run.json``: settings, versions, inputs, stages with their times.
    """

    path: Path
    record: dict[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open a run that has come as far as its labels."""
        folder = RunFolder.open(Path(path))
        if not folder.was_done("labels"):
            raise InputError(f"{path} has no corrected labels yet; run vsgraph correct to its end")
        return cls(folder.path, folder.record)

    @functools.cached_property
    def crawl(self) -> Crawl:
        """The crawl as it was read."""
        return load_crawl(self.path / "crawl")

    @functools.cached_property
    def correction(self) -> Correction:
        """The corrected labels and all that led to them."""
        return Correction.load(self.path / "correction")

    @functools.cached_property
    def meanings(self) -> list[Meaning]:
        """The meaning of each class."""
        return read_meanings(self.path / "meanings.csv", self.crawl.class_names)

    @functools.cached_property
    def features(self) -> Any:  # noqa: ANN401
        """The vectors of the pictures, mapped from disk."""
        own = self.record["choices"].get("features")
        return open_array(Path(own) if own else self.path / "pictures" / "vectors.npy")

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.path / "report" / "index.html"

    def export(self, out: str | Path, *, to: str, **options: Any) -> Exported:  # noqa: ANN401
        """Write corrected data for other programs, see :func:`vsgraph.exports.export`."""
        return export(self.crawl, self.correction, out, to=to, **options)

    def write_report(self, features: Any, *, progress: bool = False) -> None:  # noqa: ANN401
        """Write the pages into the run's folder."""
        write_report(
            self.path / "report", self.crawl, self.correction, self.meanings, features=features,
            heading=f"{Path(self.record['crawl']).name}, corrected by vsgraph", overwrite=True,
            progress=progress,
        )  # fmt: skip
