"""Where each array of a run is on disk, for its stages and for later readers."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, load_npz

from vsgraph.answers import picture_keys
from vsgraph.common.files import load_csr, open_array
from vsgraph.crawls import Crawl, load_crawl
from vsgraph.encoders import Embedding
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import read_meanings
from vsgraph.method.inputs import Words
from vsgraph.result.scores import TopScores
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder
from vsgraph.runs.stage_files import load_values
from vsgraph.screening import Screening

TABLE = "meanings.csv"


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The results of a run's stages, opened when they are needed."""

    folder: RunFolder
    keys: Mapping[str, str]  # of each stage
    choices: Choices  # with the user's own arrays

    def __getitem__(self, stage: str) -> Path:
        """Return the folder of a stage."""
        if stage not in self.keys:
            raise InputError(
                f"{self.folder.path} has no stage {stage!r} yet; run vsgraph correct to the end"
            )
        return self.folder.fetched(stage, self.keys[stage])

    def crawl(self, root: Path | None = None) -> Crawl:
        """Return the crawl as it was read; `root` is its folder now."""
        crawl = load_crawl(self["crawl"])
        return crawl if root is None else dataclasses.replace(crawl, root=root)

    def pictures(self) -> Embedding | None:
        """Return the vectors of the pictures with their record; None if they are the user's own."""
        return None if self.choices.features else Embedding.load(self["pictures"])

    def measures(self) -> Embedding | None:
        """Return the measures of the pictures; None if there are no pictures."""
        return Embedding.load(self["measures"]) if "measures" in self.keys else None

    def screening(self) -> Screening | None:
        """Return copies and flawed pictures; None if a run of an older version has none."""
        return Screening.load(self["screening"]) if "screening" in self.keys else None

    def features(self) -> NDArray[Any]:
        """Return the vectors of the pictures, (n_images, n_dims)."""
        return open_array(self.choices.features or self["pictures"] / "vectors.npy")

    def text_embeddings(self) -> NDArray[Any]:
        """Return the vectors of the texts, (n_images, n_text_dims)."""
        return open_array(self.choices.text_embeddings or self["texts"] / "vectors.npy")

    def label_embeddings(self) -> NDArray[Any]:
        """Return the vectors of the meanings, (n_classes, n_text_dims)."""
        return open_array(self.choices.label_embeddings or self["descriptions"] / "vectors.npy")

    def prompt_embeddings(self) -> NDArray[Any] | None:
        """Return the meanings in the space of the pictures, if the image encoder has such a one.

        Those of the classes, (n_classes, n_dims), then those of the senses that are not meant.
        """
        return open_array(self["prompts"] / "vectors.npy") if "prompts" in self.keys else None

    def cnn_probs(self, n_classes: int) -> NDArray[Any] | TopScores | None:
        """Return a classifier's probabilities: the user's own, the network's or the probe's."""
        if self.choices.cnn_probs is not None:
            return open_array(self.choices.cnn_probs)
        if self.choices.is_trained:
            return open_array(self["pictures"] / "probs.npy")
        return TopScores.load(self["probe"], n_classes) if "probe" in self.keys else None

    def own_graph(self) -> csr_array | None:
        """Return the graph that the user gave."""
        path = self.choices.graph
        if path is None:
            return None
        try:
            return load_npz(path)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"{path} is not a sparse matrix written by scipy.sparse.save_npz"
            ) from error

    def picture_keys(self, crawl: Crawl) -> NDArray[np.object_]:
        """Return the key by which each picture is answered, (n_images,)."""
        pictures = self.pictures()
        return picture_keys(crawl.table["image"].to_pylist(), pictures.keys if pictures else None)

    def answers(self) -> NDArray[Any] | None:
        """Return the answers that the labels were made with, (n_images,), if there were any."""
        return open_array(self["answers"] / "labels.npy") if "answers" in self.keys else None

    def copies(self) -> NDArray[np.intp] | None:
        """Return a number that copies share, (n_images,); None before they are looked for."""
        key = self.keys.get("screening")
        is_done = key is not None and self.folder.stage_record("screening", key) is not None
        return Screening.load(self["screening"]).groups if is_done else None

    def arrays(self, crawl: Crawl) -> dict[str, Any]:
        """Return the arrays that :func:`vsgraph.correct` takes, mapped from disk."""
        return {
            "features": self.features(),
            "text_embeddings": self.text_embeddings(),
            "label_embeddings": self.label_embeddings(),
            "web_labels": crawl.web_labels,
            "cnn_probs": self.cnn_probs(len(crawl.class_names)),
            "graph": self.own_graph(),
            "sources": crawl.sources,
            "words": self.words(len(crawl)),
            "answers": self.answers(),
            "copies": self.copies(),
            "prompt_embeddings": self.prompt_embeddings(),
        }

    def words(self, n_images: int) -> Words | None:
        """Return what the texts say word by word; None if that was not looked at."""
        if "words" not in self.keys:
            return None
        folder = self["words"]
        vectors = open_array(folder / "name_embeddings.npy")
        shape = (n_images, len(vectors))
        return Words(
            vectors,
            load_csr(folder, "names", shape),
            load_csr(folder, "words", shape),
            open_array(folder / "unwanted_embeddings.npy"),
            np.array(open_array(folder / "unwanted_of.npy")),
            tuple(load_values(folder)["unwanted_names"]),
        )

    def meanings(self, class_names: tuple[str, ...]) -> list[Meaning]:
        """Return the meaning of each class."""
        return read_meanings(self["meanings"] / TABLE, class_names)
