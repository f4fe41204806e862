"""A run on disk, read back: its crawl, meanings, correction, and what can be done with them."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.files import open_array
from vsgraph.crawls import Crawl, load_crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.crawls.truth_table import tell_others, with_truth
from vsgraph.encoders import Embedding
from vsgraph.errors import InputError
from vsgraph.exports import Exported, export
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import read_meanings
from vsgraph.report import write_report
from vsgraph.result.correction import Correction
from vsgraph.result.scores import TopScores
from vsgraph.runs.folder import RunFolder
from vsgraph.settings import Settings


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
        """The crawl as it was read, with what was wrong, its pictures included."""
        crawl = load_crawl(self.path / "crawl")
        if not crawl.root.exists():
            raise InputError(
                f"the crawl's folder {crawl.root} is gone; put it back, or correct it again from "
                "where it is now"
            )
        if not self.record["choices"].get("features"):
            for row, kind, detail in Embedding.load(self.path / "pictures").problems():
                crawl.problems.add(kind, image_name(crawl, row), detail)
        return crawl

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

    def arrays(self) -> dict[str, Any]:
        """Return what :func:`vsgraph.correct` was given, mapped from disk."""
        places = {
            "text_embeddings": "texts",
            "label_embeddings": "descriptions",
        }
        own = self.record["choices"]
        found = {
            name: open_array(
                Path(own[name]) if own.get(name) else self.path / place / "vectors.npy"
            )
            for name, place in places.items()
        }
        return {
            "features": self.features,
            **found,
            "web_labels": self.crawl.web_labels,
            "cnn_probs": self._cnn_probs(),
        }

    def _cnn_probs(self) -> Any:  # noqa: ANN401
        """Return the classifier's probabilities: the user's own, the network's or the probe's."""
        own = self.record["choices"].get("cnn_probs")
        if own:
            return open_array(Path(own))
        network = self.path / "pictures" / "probs.npy"
        if network.exists() and not self.record["choices"].get("features"):
            return open_array(network)
        probe = self.path / "probe"
        asked = self.record["choices"]["probe"] and probe.exists()
        return TopScores.load(probe, len(self.crawl.class_names)) if asked else None

    @property
    def settings(self) -> Settings:
        """The numbers of the correction."""
        return Settings.from_dict(self.record["settings"])

    def truth(
        self, path: Path | None = None, *, label_separator: str | None = None
    ) -> tuple[csr_array, NDArray[np.bool_]]:
        """Return what the images show, from a table or from the crawl itself."""
        crawl = self.crawl
        if path is not None:
            crawl = with_truth(crawl, path, label_separator=label_separator)
        truth = crawl.truth
        if truth is None:
            raise InputError("the crawl does not say what its images show; give a table (--truth)")
        tell_others(crawl)
        return truth, crawl.truth_known

    @property
    def counts(self) -> dict[str, int]:
        """How many images were kept, relabeled, rejected; apart, those with unreadable pictures."""
        counted = self.record["stages"]["labels"]["counts"]
        return counted if "unreadable" in counted else self.correction.counts_with(self.features)

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
