"""A finished run, opened from disk: its crawl, meanings and correction."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.crawls import Crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.crawls.truth_table import tell_others, with_truth
from vsgraph.errors import InputError
from vsgraph.exports import Exported, export
from vsgraph.meanings.senses import Meaning
from vsgraph.method.algorithm import assemble
from vsgraph.report import write_report
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Anchors
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import PAGE, RunFolder, recall_path
from vsgraph.runs.outputs import STAGE_RECORD, Outputs
from vsgraph.runs.stage_files import load_choice, load_decisions, load_graph, load_scores
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run: one consistent set of results.

    Attributes
    ----------
    folder : RunFolder
        The folder of the run.
    keys : mapping of str to str
        The key of each stage.
    choices : Choices
        The inputs besides the settings.
    settings : Settings
        The settings of the correction.
    root : Path
        The folder of the crawl's pictures.

    Examples
    --------
    >>> Run.open("run").correction.to_arrow()  # doctest: +SKIP
    """

    folder: RunFolder
    keys: Mapping[str, str]
    choices: Choices
    settings: Settings
    root: Path

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open a run that has corrected labels."""
        folder = RunFolder.open(Path(path))
        if folder.made is None:
            raise InputError(
                f"{path} has no corrected labels yet, its stage decisions is missing; run vsgraph "
                "correct to the end"
            )
        asked, stages = folder.made["asked"], folder.made["stages"]
        for name, stage in stages.items():
            if not (folder.stage_folder(name, stage["key"]) / STAGE_RECORD).exists():
                raise InputError(f"{path} lacks its stage {name}; run vsgraph correct again")
        return cls(
            folder,
            {name: stage["key"] for name, stage in stages.items()},
            Choices.from_dict(asked["choices"]),
            Settings.from_dict(asked["settings"]),
            recall_path(folder.made["root"], folder.path),
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"Run({str(self.path)!r}: {counts})"

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.folder.path

    @property
    def record(self) -> dict[str, Any]:
        """The result in ``run.json``: options, versions, stages with their times."""
        return self.folder.made or {}

    @functools.cached_property
    def outputs(self) -> Outputs:
        """The arrays on disk."""
        return Outputs(self.folder, self.keys, self.choices)

    @functools.cached_property
    def crawl(self) -> Crawl:
        """The crawl as it was read, with all problems, also those of its pictures."""
        if not self.root.exists():
            raise InputError(
                f"the crawl's folder {self.root} is gone; put it back, or correct the crawl again "
                "from its new place"
            )
        crawl = self.outputs.crawl(self.root)
        pictures = self.outputs.pictures()
        for row, kind, detail in pictures.problems() if pictures else ():
            crawl.problems.add(kind, image_name(crawl, row), detail)
        return crawl

    @functools.cached_property
    def correction(self) -> Correction:
        """The corrected labels and everything that led to them."""
        crawl = self.outputs.crawl()
        labels, words = crawl.web_labels, self.outputs.words(len(crawl))
        return assemble(
            crawl.class_names,
            labels.toarray() if crawl.has_several_labels else labels.astype(np.intp),
            self.settings,
            load_graph(self.outputs["graph"]),
            load_choice(self.outputs["anchors"]),
            Anchors.load(self.outputs["network"]),
            load_scores(self.outputs["scores"]),
            load_decisions(self.outputs["decisions"]),
            words.unwanted_names if words else (),
        )

    @functools.cached_property
    def meanings(self) -> list[Meaning]:
        """The meaning of each class."""
        return self.outputs.meanings(self.outputs.crawl().class_names)

    @functools.cached_property
    def features(self) -> NDArray[Any]:
        """The vectors of the pictures, mapped from disk, (n_images, n_dims)."""
        return self.outputs.features()

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that :func:`vsgraph.correct` takes, mapped from disk."""
        return self.outputs.arrays(self.outputs.crawl())

    def truth(
        self, path: Path | None = None, *, label_separator: str | None = None
    ) -> tuple[csr_array, NDArray[np.bool_]]:
        """Return what the images show, from a table or from the crawl itself."""
        crawl = self.crawl
        if path is not None:
            crawl = with_truth(crawl, path, label_separator=label_separator)
        truth = crawl.truth
        if truth is None:
            raise InputError("the crawl has no truth for its images; give a table (--truth)")
        tell_others(crawl)
        return truth, crawl.truth_known

    @property
    def counts(self) -> dict[str, int]:
        """How many images were kept, relabeled, rejected, or kept because they are unreadable."""
        counts: dict[str, int] = self.record["stages"]["decisions"]["counts"]
        return counts

    @property
    def page(self) -> Path:
        """The report's first page."""
        return self.outputs["report"] / "index.html"

    @property
    def top_page(self) -> Path:
        """The page in the run's folder that leads to the current report."""
        return self.path / PAGE

    def write_report(self, folder: Path, *, heading: str, progress: bool = False) -> None:
        """Write the report's pages into a folder, which appears when it is complete."""
        if "meanings" not in self.keys:
            raise InputError(
                f"{self.path} has label embeddings of your own and no meanings for a report to "
                "name; write them with vsgraph describe CRAWL -o TABLE, then run vsgraph correct "
                f"-o {self.path} --meanings TABLE"
            )
        write_report(
            folder, self.crawl, self.correction, self.meanings, features=self.features,
            heading=f"{heading}, corrected by vsgraph", overwrite=True, progress=progress,
        )  # fmt: skip

    def export(self, out: str | Path, *, to: str, **options: Any) -> Exported:  # noqa: ANN401
        """Write corrected data for other programs, see :func:`vsgraph.exports.export`."""
        return export(self.crawl, self.correction, out, to=to, **options)
