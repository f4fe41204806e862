"""A finished run, opened from disk: its crawl, meanings and correction."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.answers import Answers, read_answers
from vsgraph.common.notebook import Html
from vsgraph.common.stores import place
from vsgraph.crawls import Crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.crawls.truth_table import tell_others, with_truth
from vsgraph.encoders.runtimes.models import need
from vsgraph.errors import InputError, MissingExtraError
from vsgraph.exports import Exported, export
from vsgraph.exports.job import Job
from vsgraph.judge.since import Since
from vsgraph.meanings.senses import Meaning
from vsgraph.method.algorithm import assemble
from vsgraph.report import write_report
from vsgraph.result.answered import with_answers
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Anchors, count_decisions
from vsgraph.result.showing import correction_html
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder, recall_path
from vsgraph.runs.names import PAGE
from vsgraph.runs.outputs import Outputs
from vsgraph.runs.showing import explained, run_html, show
from vsgraph.runs.stage_files import load_choice, load_decisions, load_graph, load_scores
from vsgraph.screening import Screening
from vsgraph.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

    from vsgraph.runs.label import Labeled
    from vsgraph.training.torch_data import TorchDataset


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
    answers : Answers
        What people say that images show, when the run was opened.

    Examples
    --------
    >>> Run.open("run").correction.to_arrow()  # doctest: +SKIP
    """

    folder: RunFolder
    keys: Mapping[str, str]
    choices: Choices
    settings: Settings
    root: Path
    answers: Answers

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open a run that has corrected labels."""
        folder = RunFolder.open(place(path))
        if folder.made is None:
            raise InputError(
                f"{path} has no corrected labels yet, its stage decisions is missing; run vsgraph "
                "correct to the end"
            )
        asked, stages = folder.made["asked"], folder.made["stages"]
        for name, stage in stages.items():
            if folder.stage_record(name, stage["key"]) is None:
                raise InputError(f"{path} lacks its stage {name}; run vsgraph correct again")
        return cls(
            folder,
            {name: stage["key"] for name, stage in stages.items()},
            Choices.from_dict(asked["choices"]),
            Settings.from_dict(asked["settings"]),
            recall_path(folder.made["root"], folder.path),
            read_answers(folder.answers),
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"Run({str(self.folder.home)!r}: {counts})"

    def _repr_html_(self) -> str:
        correction, crawl = self.correction, self._shown_crawl()
        return run_html(crawl, correction, correction_html(correction))

    def show(
        self, class_name: str | None = None, decision: str | None = None, *, n: int = 24
    ) -> Html:
        """Return a grid of images for a notebook.

        Parameters
        ----------
        class_name : str, optional
            A class: images crawled under it, or relabeled to it.
        decision : str, optional
            ``kept``, ``relabeled`` or ``rejected``.
        n : int
            How many to show: the surest, or of the rejected those least like their label.
        """
        return show(self._shown_crawl(), self.correction, class_name, decision, n)

    def explain(self, row: int) -> Html:
        """Return why an image got its label: a small card in a notebook, text elsewhere."""
        return explained(self._shown_crawl(), self.correction, row)

    def as_torch_dataset(self, **options: Any) -> "TorchDataset":  # noqa: ANN401
        """Return the images left as a dataset of torch: pictures, soft labels, weights.

        Parameters
        ----------
        side : int
            Height and width of the pictures, 224 by default.
        labels : str
            'final' (soft labels, the default), 'believed' (those of rejected images, too),
            'decided' (hard ones), 'gnn', 'cnn' or 'web'.
        transform : callable, optional
            What to make of the pixels, uint8 (side, side, 3); floats in 0..1 by default.
        """
        need("a dataset of torch", "encoders", "torch")
        from vsgraph.training.torch_data import TorchDataset

        return TorchDataset(self.crawl, self.correction, **options)

    def _shown_crawl(self) -> Crawl:
        """Return the crawl; pictures are shown only if its folder is still there."""
        return dataclasses.replace(self._table, root=self.root)

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
    def _table(self) -> Crawl:
        """The crawl, loaded once."""
        return self.outputs.crawl()

    @functools.cached_property
    def crawl(self) -> Crawl:
        """The crawl as it was read, with all problems, also those of its pictures."""
        if not self.root.exists():
            raise InputError(
                f"the crawl's folder {self.root} is gone; put it back, or correct the crawl again "
                "from its new place"
            )
        crawl = dataclasses.replace(self._table, root=self.root)
        pictures = self.outputs.pictures()
        for row, kind, detail in pictures.problems() if pictures else ():
            crawl.problems.add(kind, image_name(crawl, row), detail)
        return crawl

    @functools.cached_property
    def correction(self) -> Correction:
        """The corrected labels and everything that led to them; answers of people count."""
        found, crawl = self.found, self._table
        if not self.answers.given:
            return found
        keys = self.outputs.picture_keys(crawl)
        if crawl.has_several_labels:
            return with_answers(found, *self.answers.matrix(keys, crawl.class_names))
        return with_answers(found, self.answers.labels(keys, crawl.class_names))

    @functools.cached_property
    def found(self) -> Correction:
        """What the method found, without the word of people on single images."""
        crawl = self._table
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
    def screening(self) -> Screening | None:
        """Copies, placeholders and flawed pictures; None in a run of an older version."""
        return self.outputs.screening()

    @functools.cached_property
    def meanings(self) -> list[Meaning]:
        """The meaning of each class."""
        return self.outputs.meanings(self._table.class_names)

    @functools.cached_property
    def features(self) -> NDArray[Any]:
        """The vectors of the pictures, mapped from disk, (n_images, n_dims)."""
        return self.outputs.features()

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that :func:`vsgraph.correct` takes, mapped from disk."""
        return self.outputs.arrays(self._table)

    def read_truth(
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

    def rows_in_common(self, other: "Run") -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of the images that two runs have, in the one and in the other.

        An image is the same if its path in the crawl and its web labels are.
        """
        places: dict[tuple[str, str], int] = {}
        for row, key in enumerate(_image_keys(other.outputs.crawl())):
            places.setdefault(key, row)
        pairs = [(row, place) for row, key in enumerate(_image_keys(self.outputs.crawl()))
                 if (place := places.pop(key, None)) is not None]  # fmt: skip
        first, second = np.array(pairs, np.intp).reshape(-1, 2).T
        return first, second

    def to_arrow(self) -> pa.Table:
        """Return one row per image: path, labels, decision, confidence, all columns of the crawl.

        The same table as of ``run.export(..., to="parquet")``.
        """
        rows = np.arange(len(self.correction))
        unused = Exported(self.path, "arrow", len(rows))
        job = Job(self.crawl, self.correction, unused, self.path, rows, screening=self.screening)
        return job.table(rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table of :meth:`to_arrow` for pandas (needs the extra 'table')."""
        try:
            import pandas  # noqa: F401, ICN001
        except ImportError as error:
            raise MissingExtraError("a pandas table", "table") from error
        return self.to_arrow().to_pandas()

    @property
    def counts(self) -> dict[str, int]:
        """How many images were kept, relabeled, rejected, or kept because they are unreadable."""
        counts: dict[str, int] = self.record["stages"]["decisions"]["counts"]
        if self.answers.given:
            unreadable = load_scores(self.outputs["scores"]).unreadable
            counts = count_decisions(self.correction.decisions, unreadable)
        return counts

    @property
    def since(self) -> Since | None:
        """What changed since the result before, if that was of another list of images."""
        return Since.load(self.outputs["since"]) if "since" in self.keys else None

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
        crawl = self.crawl
        if "meanings" not in self.keys:
            raise InputError(
                f"{self.path} has label embeddings of your own and no meanings for a report to "
                "name; write them with vsgraph describe CRAWL -o TABLE, then run vsgraph correct "
                f"-o {self.path} --meanings TABLE"
            )
        write_report(
            folder, crawl, self.correction, self.meanings, features=self.features,
            since=self.since, screening=self.screening, overwrite=True, progress=progress,
            heading=f"{heading}, corrected by vsgraph",
        )  # fmt: skip

    def label(self, new: Any, **options: Any) -> "Labeled":  # noqa: ANN401
        """Label new images by what this run has learned, see :func:`vsgraph.label`."""
        from vsgraph.runs.label import label

        return label(self, new, **options)

    def export(self, out: str | Path, *, to: str, **options: Any) -> Exported:  # noqa: ANN401
        """Write corrected data for other programs, see :func:`vsgraph.exports.export`."""
        return export(self.crawl, self.correction, out, to=to, screening=self.screening, **options)


def _image_keys(crawl: Crawl) -> Iterator[tuple[str, str]]:
    """Yield the path and the web labels of each image."""
    labels = crawl.labels_matrix()
    for row, image in enumerate(crawl.table["image"].to_pylist()):
        numbers = labels.indices[labels.indptr[row] : labels.indptr[row + 1]]
        yield image, "\0".join(crawl.class_names[number] for number in sorted(numbers))
