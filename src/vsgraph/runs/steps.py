"""The stages of a run: each does its work unless that is done, and keeps what it made."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vsgraph.common.files import open_array, replaced_folder
from vsgraph.crawls import Crawl, crawl_digest, save_crawl
from vsgraph.encoders import embed_images, embed_texts
from vsgraph.encoders.embed import open_image_encoder, open_text_encoder
from vsgraph.encoders.sources.checkpoints import is_checkpoint
from vsgraph.errors import InputError
from vsgraph.meanings.crawl_senses import describe_crawl
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import read_meanings, write_meanings
from vsgraph.method.correct import correct
from vsgraph.method.graph import adopt_graph
from vsgraph.method.probe import linear_probe
from vsgraph.neighbors.search import Neighbors, nearest_neighbors
from vsgraph.result.scores import TopScores
from vsgraph.runs.folder import RunFolder, key_of
from vsgraph.runs.result import Run
from vsgraph.settings import Settings

GRAPH_SETTINGS = ("n_neighbors", "neighbor_search", "neighbor_recall")
FEW = 20  # images; a probe learns nothing from fewer
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choices:
    """What a run is made with, beside the settings of the correction.

    Attributes
    ----------
    image_encoder, text_encoder, runtime, precision : str
        See :func:`~vsgraph.encoders.image_encoder` and :func:`~vsgraph.encoders.text_encoder`.
    meanings : Path, optional
        A table of the classes' meanings, as ``vsgraph describe`` writes it and you edit it.
    features, text_embeddings, label_embeddings, cnn_probs, graph : Path, optional
        Your own arrays (``.npy``; the graph ``.npz``), row by row as the crawl.
    probe : bool
        Train a linear probe on the web labels for ``p_c``, where `cnn_probs` is not given and the
        image encoder was not trained on the classes.
    """

    image_encoder: str = "lite0"
    text_encoder: str = "minilm"
    runtime: str = "auto"
    precision: str = "auto"
    meanings: Path | None = None
    features: Path | None = None
    text_embeddings: Path | None = None
    label_embeddings: Path | None = None
    cnn_probs: Path | None = None
    graph: Path | None = None
    probe: bool = True

    @property
    def is_trained(self) -> bool:
        """Whether the image encoder is a network trained on classes: it gives ``p_c``, too."""
        return self.features is None and is_checkpoint(Path(self.image_encoder))


def _load_graph(path: Path) -> Any:  # noqa: ANN401
    """Read a sparse matrix."""
    from scipy.sparse import load_npz

    try:
        return load_npz(path)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} is no sparse matrix, as scipy.sparse.save_npz writes it"
        ) from error


def file_key(path: Path) -> str:
    """Return a key of a file's content: its size, time and ends, since it may be very large."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(2**20)
        file.seek(max(0, size - 2**20))
        tail = file.read()
    return key_of(size, path.stat().st_mtime_ns, head.hex(), tail.hex())


@dataclasses.dataclass
class Runner:
    """Does the stages in order; each returns what the next ones need, and its key.

    A dry one only tells which stages are done and which it would do; what it returns is not used.
    """

    folder: RunFolder
    crawl: Crawl
    settings: Settings
    choices: Choices
    progress: bool
    tell: Tell
    dry: bool = False

    def all(self, *, report: bool) -> None:
        """Do every stage that is not done."""
        self.read()
        features, seen = self.pictures()
        texts, told = self.texts()
        meanings = self.meanings()
        labels, described = self.descriptions(meanings)
        probs, judged = self.probe(features, seen)
        graph, connected = self.graph(features, seen)
        key = self.labels(
            (features, texts, labels, probs, graph), [seen, told, described, judged, connected]
        )
        if report:
            self.report(features, meanings, key)

    def do(self, stage: str, key: str, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Do a stage unless it is done with the same inputs and settings."""
        if self.folder.is_done(stage, key):
            self.tell(f"{stage}: done before")
            return
        if self.dry:
            again = " again: its inputs changed" if self.folder.was_done(stage) else ""
            self.tell(f"{stage}: would be done{again}")
            return
        again = ", again: its inputs changed" if self.folder.was_done(stage) else ""
        self.tell(f"{stage}{again} ...")
        started = time.monotonic()
        facts = work() or {}
        self.folder.finish(stage, key, time.monotonic() - started, **facts)

    def kept(self, stage: str, name: str = "vectors") -> Any:  # noqa: ANN401
        """Return an array that a stage left."""
        return None if self.dry else open_array(self.folder.path / stage / f"{name}.npy")

    def read(self) -> None:
        """Keep the crawl as it was read."""
        self.digest = crawl_digest(self.crawl)

        def keep() -> dict[str, Any]:
            with replaced_folder(self.folder.path / "crawl") as fresh:
                save_crawl(self.crawl, fresh)
            return {"images": len(self.crawl), "problems": dict(self.crawl.problems.counts)}

        self.do("crawl", self.digest, keep)

    def own(self, name: str, n_rows: int) -> tuple[NDArray[Any], str] | None:
        """Return an array that the user gave."""
        path: Path | None = getattr(self.choices, name)
        if path is None:
            return None
        array = open_array(path)
        if len(array) != n_rows:
            raise InputError(f"{path} has {len(array)} rows, but {n_rows} are needed")
        return array, file_key(path)

    def pictures(self) -> tuple[NDArray[Any], str]:
        """Encode the pictures."""
        own = self.own("features", len(self.crawl))
        if own is not None:
            return own
        encoder = open_image_encoder(
            self.crawl, self.choices.image_encoder, self.choices.runtime, self.choices.precision
        )
        key = key_of("pictures", encoder.fingerprint, self.digest)

        def embed() -> dict[str, Any]:
            made = embed_images(
                self.crawl, encoder, self.folder.path / "pictures", overwrite=True,
                progress=self.progress,
            )  # fmt: skip
            return {"encoder": made.record["encoder"], "problems": made.record["problems"]}

        self.do("pictures", key, embed)
        return self.kept("pictures"), key

    def texts(self) -> tuple[NDArray[Any], str]:
        """Encode the texts."""
        own = self.own("text_embeddings", len(self.crawl))
        if own is not None:
            return own
        self.text_encoder = open_text_encoder(
            self.crawl, self.choices.text_encoder, "truncate", self.choices.runtime,
            self.choices.precision,
        )  # fmt: skip
        key = key_of("texts", self.text_encoder.fingerprint, self.digest)

        def embed() -> dict[str, Any]:
            made = embed_texts(
                self.crawl, self.text_encoder, self.folder.path / "texts", overwrite=True,
                progress=self.progress,
            )  # fmt: skip
            return {"encoder": made.record["encoder"]}

        self.do("texts", key, embed)
        return self.kept("texts"), key

    def meanings(self) -> list[Meaning]:
        """Find what the classes mean, or read what the user says."""
        table = self.folder.path / "meanings.csv"
        given = self.choices.meanings
        key = key_of("meanings", self.digest, file_key(given) if given else "found")

        def find() -> None:
            if table.exists():
                table.replace(table.with_name("meanings-before.csv"))
                self.tell("meanings: the former table is kept as meanings-before.csv")
            if given is None:
                write_meanings(table, describe_crawl(self.crawl), overwrite=True)
            else:
                write_meanings(table, read_meanings(given, self.crawl.class_names), overwrite=True)

        if not table.exists():
            self.folder.forget(("meanings",), save=False)
        self.do("meanings", key, find)
        if self.folder.is_done("meanings", key):
            return read_meanings(table, self.crawl.class_names)
        return read_meanings(given, self.crawl.class_names) if given else []

    def descriptions(self, meanings: list[Meaning]) -> tuple[NDArray[Any], str]:
        """Encode the meanings; a table that was edited in the run's folder counts."""
        own = self.own("label_embeddings", len(self.crawl.class_names))
        if own is not None:
            return own
        words = [meaning.description for meaning in meanings]
        key = key_of("descriptions", self.text_encoder.fingerprint, words)

        def embed() -> None:
            vectors = self.text_encoder.encode(words)
            self.folder.keep_arrays("descriptions", {"vectors": vectors})

        self.do("descriptions", key, embed)
        return self.kept("descriptions"), key

    def probe(
        self, features: NDArray[Any], seen: str
    ) -> tuple[NDArray[Any] | TopScores | None, str]:
        """Ask the user's classifier, or a linear probe of the features where there is none."""
        own = self.own("cnn_probs", len(self.crawl))
        if own is not None:
            return own
        if self.choices.is_trained:
            return self.kept("pictures", "probs"), seen
        if not self.choices.probe or len(self.crawl) < FEW:
            return None, "none"
        key = key_of("probe", seen, self.digest, self.settings.kept_scores)

        def ask() -> None:
            scores = linear_probe(
                features, self.crawl.web_labels, n_classes=len(self.crawl.class_names),
                n_kept=self.settings.kept_scores, progress=self.progress,
            )  # fmt: skip
            self.folder.keep_arrays("probe", scores.parts())

        self.do("probe", key, ask)
        if self.dry:
            return None, key
        return TopScores.load(self.folder.path / "probe", len(self.crawl.class_names)), key

    def graph(self, features: NDArray[Any], seen: str) -> tuple[Any, str]:
        """Find the neighbors of every image."""
        own = self.choices.graph
        if own is not None:
            found = None if self.dry else adopt_graph(_load_graph(own), n_images=len(self.crawl))
            return found, file_key(own)
        numbers = {name: getattr(self.settings, name) for name in GRAPH_SETTINGS}
        key = key_of("graph", seen, numbers)

        def find() -> dict[str, Any]:
            found = nearest_neighbors(
                features, n_neighbors=self.settings.n_neighbors, progress=self.progress,
                search=self.settings.neighbor_search, recall=self.settings.neighbor_recall,
            )  # fmt: skip
            self.folder.keep_arrays(
                "graph", {"rows": found.rows, "similarities": found.similarities}
            )
            return {"recall": found.recall}

        self.do("graph", key, find)
        if self.dry:
            return None, key
        recall = self.folder.record["stages"]["graph"]["recall"]
        return Neighbors(
            self.kept("graph", "rows"), self.kept("graph", "similarities"), recall
        ), key

    def labels(self, given: tuple[Any, ...], keys: list[str]) -> str:
        """Choose anchors, train the network, fuse and decide."""
        key = key_of("labels", keys, dataclasses.asdict(self.settings), self.digest)
        features, texts, labels, probs, graph = given

        def decide() -> dict[str, Any]:
            made = correct(
                features, texts, labels, self.crawl.web_labels, probs, graph=graph,
                class_names=self.crawl.class_names, settings=self.settings, progress=self.progress,
            )  # fmt: skip
            made.save(self.folder.path / "correction", overwrite=True)
            return {"counts": made.counts_with(features)}

        self.do("labels", key, decide)
        return key

    def report(self, features: NDArray[Any], meanings: list[Meaning], key: str) -> None:
        """Write the pages."""
        words = [meaning.description for meaning in meanings]

        def write() -> None:
            Run.open(self.folder.path).write_report(features)

        self.do("report", key_of("report", key, words), write)
