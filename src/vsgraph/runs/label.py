"""Labels for new images by what a finished run has learned; the run is only read."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import label_matrix
from vsgraph.common.files import file_errors, mend_leftovers, whole_file
from vsgraph.common.stores import place
from vsgraph.crawls.crawl import OTHERS, Crawl
from vsgraph.crawls.newcomers import read_newcomers
from vsgraph.encoders import embed_images, embed_texts
from vsgraph.errors import InputError, MissingExtraError
from vsgraph.exports.names import free_names
from vsgraph.meanings.crawl_words import mentions_in
from vsgraph.meanings.table import read_unwanted
from vsgraph.method.decisions import decide_by_belief, least_kept
from vsgraph.method.inputs import Inputs
from vsgraph.method.newcomers import Learned, score_newcomers
from vsgraph.method.probe import learn_probe
from vsgraph.method.scoring import ImageScores
from vsgraph.neighbors.among import neighbors_among
from vsgraph.neighbors.known import known_neighbors
from vsgraph.result.parts import Decision, Decisions, Rule
from vsgraph.runs.job import RunJob, Tell
from vsgraph.runs.outputs import TABLE
from vsgraph.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 6
SURE = "the likeliest label is sure enough"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Labeled:
    """New images with their labels.

    Attributes
    ----------
    table : pyarrow.Table
        One row per image: `image`; `web_label`, if it has one that the run knows; `label`, null if
        none is sure enough; `decision` (label or none; keep, relabel or reject with a web label);
        `confidence` of the likeliest label, and that label as `likeliest`; `why`; `nearest`, the
        image of the run that it looks most like, and their `similarity`; then all columns of the
        new crawl.
    problems : list of str
        Pictures that cannot be read, and so on.

    Examples
    --------
    >>> Labeled(pa.table({"image": ["a.jpg"], "label": ["owl"]}), [])
    Labeled(1 images, 1 labeled)
    """

    table: pa.Table
    problems: list[str]

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"Labeled({len(self)} images, {len(self.table['label'].drop_null())} labeled)"

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table for pandas (needs the extra 'table')."""
        try:
            import pandas  # noqa: F401, ICN001
        except ImportError as error:
            raise MissingExtraError("a pandas table", "table") from error
        return self.table.to_pandas()

    @file_errors()
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table as CSV."""
        target = Path(path)
        if target.exists() and not overwrite:
            raise InputError(
                f"{target} exists already; choose another name, or pass --overwrite "
                "(overwrite=True)"
            )
        mend_leftovers(target.parent)
        with whole_file(target) as unfinished:
            pyarrow.csv.write_csv(self.table, unfinished)


@file_errors()
def label(
    run: Run | str | Path,
    new: str | Path | Sequence[str | Path],
    *,
    progress: bool = False,
    tell: Tell | None = None,
    **reading: Any,  # noqa: ANN401
) -> Labeled:
    """Label new images by what a finished run has learned, without changing the run.

    Parameters
    ----------
    run : Run or path
        A run of one label per image, whose encoders were not replaced by vectors of your own.
    new : path or sequence of paths
        Pictures, a folder of pictures without labels, or a crawl in any format; web labels and
        texts count where they are known.
    progress : bool
        Show progress bars.
    tell : callable, optional
        Called with lines of text.
    **reading
        Options of :func:`~vsgraph.crawls.read_crawl`.

    Returns
    -------
    labeled : Labeled
        A table of the new images. The label of an image does not depend on the others.

    Examples
    --------
    >>> vsgraph.label("run", "new-pictures").save("labels.csv")  # doctest: +SKIP
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    return Labeler(opened, progress=progress, tell=tell)(new, **reading)


class Labeler:
    """Labels new images by a run; what the run does not keep is learned again, once."""

    def __init__(self, run: Run, *, progress: bool = False, tell: Tell | None = None) -> None:
        self.run, self.progress = run, progress
        self.tell: Tell = tell or (lambda _: None)
        self._refuse_others()
        self.job = RunJob(
            run.folder, run.outputs.crawl(), run.settings, run.choices, progress, self.tell,
            dict(run.keys),
        )  # fmt: skip
        self._learned: tuple[Learned, Any, NDArray[np.float32], float] | None = None

    def _refuse_others(self) -> None:
        """Refuse runs that new images cannot be compared with."""
        run, choices = self.run, self.run.choices
        own = next((n for n in ("features", "text_embeddings", "graph") if getattr(choices, n)), "")
        if own:
            raise InputError(
                f"{run.path} was made with {own} of your own, which new images do not have; add "
                "them to the crawl and run vsgraph correct instead"
            )
        if not run.settings.text_evidence or self.run.found.web_labels.ndim != 1:
            raise InputError(
                f"{run.path} has several labels per image, or a form of the paper; new images can "
                "be labeled by runs of one label per image with the default form"
            )

    def __call__(self, new: str | Path | Sequence[str | Path], **reading: Any) -> Labeled:  # noqa: ANN401
        """Label new images, see :func:`label`."""
        paths = [place(new)] if isinstance(new, str | Path) else [place(path) for path in new]
        if not paths:
            raise InputError("give the images to label")
        given = {name: value for name, value in reading.items() if value is not None}
        crawl = read_newcomers(paths, self.job.crawl.class_names, **given)
        self.tell(f"{crawl.format}: {len(crawl):,} images")
        with tempfile.TemporaryDirectory(prefix="vsgraph-label-") as scratch:
            return self._label(crawl, Path(scratch))

    def _label(self, crawl: Crawl, scratch: Path) -> Labeled:
        """Label the images of a crawl; vectors go to a folder that is removed."""
        job, progress = self.job, self.progress
        pictures = embed_images(crawl, job.image_encoder, scratch / "pictures", progress=progress)
        texts = embed_texts(crawl, job.text_encoder, scratch / "texts", progress=progress)
        learned, probe, needed, least = self._learn()
        features = pictures.vectors
        cnn = pictures.probs
        if cnn is None and probe is not None:
            cnn = probe.judge(features, n_kept=job.settings.kept_scores)
        elif cnn is None and job.inputs.cnn_probs is not None:  # the user's own: not known of these
            cnn = np.zeros((len(crawl), len(job.crawl.class_names)), np.float32)
        new = self._inputs(crawl, features, texts.vectors, cnn)
        edges = neighbors_among(
            learned.inputs.features, features, n_neighbors=job.settings.n_neighbors,
            needed=needed, progress=progress,
        )  # fmt: skip
        scores = score_newcomers(learned, new, edges)
        unwanted = np.asarray(scores.unwanted)
        decisions = decide_by_belief(scores, unwanted, new.web_labels, least=least)
        table = _table(crawl, self.run, scores, decisions, edges)
        return Labeled(table, crawl.problems.lines())

    def _learn(self) -> tuple[Learned, Any, NDArray[np.float32], float]:
        """Read what the run keeps, and learn the rest again: evidence, doubt and probe."""
        if self._learned is not None:
            return self._learned
        job = self.job
        self.tell("learning again what the run does not keep: evidence, doubt, probe ...")
        names = ("graph", "smoothing", "trust", "network", "evidence", "doubt", "scores")
        graph, smoothed, trust, trained, weigher, doubt, scores = map(job.result, names)
        learned = Learned(
            job.inputs, graph.adjacency, smoothed, trust, trained, weigher, doubt, job.settings
        ).taught()
        probe = None
        if "probe" in job.keys:
            labels = job.crawl.web_labels
            probe = learn_probe(
                job.outputs.features(), labels, n_classes=len(job.crawl.class_names),
                progress=self.progress,
            )  # fmt: skip
        n_images = len(job.crawl)
        known = known_neighbors(
            graph.adjacency, np.arange(n_images, dtype=np.int32), n_images=n_images,
            n_neighbors=job.settings.n_neighbors, recall=graph.recall,
        )  # fmt: skip
        needed = np.maximum(known.similarities[:, -1], 0)
        least = least_kept(scores, job.inputs.web_labels, settings=job.settings)
        self._learned = learned, probe, needed, least
        return self._learned

    def _inputs(
        self,
        crawl: Crawl,
        features: NDArray[Any],
        texts: NDArray[Any],
        cnn: Any,  # noqa: ANN401
    ) -> Inputs:
        """Return the arrays of new images as the stages read them."""
        outputs, names = self.run.outputs, self.job.crawl.class_names
        zero_shot = self.job.inputs.zero_shot
        web_labels = crawl.web_labels.astype(np.intp)
        words = outputs.words(len(self.job.crawl))
        if words is not None:
            meanings = outputs.meanings(names)
            unwanted = read_unwanted(outputs["meanings"] / TABLE)
            name_rows, word_rows = mentions_in(crawl, meanings, unwanted)
            words = dataclasses.replace(words, names=name_rows, words=word_rows)
        return Inputs(
            features=features, text_embeddings=texts,
            label_embeddings=np.asarray(outputs.label_embeddings()), web_labels=web_labels,
            labels=label_matrix(web_labels, len(names)), cnn_probs=cnn, graph=None, sources=None,
            class_names=names, words=words,
            zero_shot=zero_shot and dataclasses.replace(zero_shot, features=features),
        ).with_words()  # fmt: skip


def _table(
    crawl: Crawl, run: Run, scores: ImageScores, decisions: Decisions, edges: csr_array
) -> pa.Table:
    """Return the table of :class:`Labeled`."""
    names = pa.array(crawl.class_names, pa.string())

    def named(labels: NDArray[Any]) -> pa.Array:
        return names.take(pa.array(labels.astype(np.int64), mask=labels < 0))

    web, final = crawl.web_labels, np.asarray(decisions.final_labels)
    words = [
        Decision(code).name.lower() if label >= 0 else "label" if given >= 0 else "none"
        for code, label, given in zip(decisions.decisions, web, final, strict=True)
    ]
    belief, likeliest = scores.final.max(), scores.final.argmax()
    nearest, similarity = _nearest(edges)
    images = run.outputs.crawl().table["image"].combine_chunks()
    columns = {
        "image": crawl.table["image"],
        "web_label": named(web),
        "label": named(final),
        "decision": pa.array(words, pa.string()),
        "confidence": pa.array(belief.astype(np.float64).round(DIGITS)),
        "likeliest": named(np.where(belief > 0, likeliest, -1)),
        "why": pa.array(_reasons(run, scores, decisions, web), pa.string()),
        "nearest": images.take(pa.array(nearest, mask=nearest < 0)),
        "similarity": pa.array(similarity.round(DIGITS), mask=nearest < 0),
    }
    others = {name: crawl.table[name] for name in crawl.text_fields}
    for name in crawl.other_columns:
        others[name] = pc.struct_field(crawl.table[OTHERS], name)
    free = free_names(others, taken=list(columns))
    return pa.table(columns | {free[name]: column for name, column in others.items()})


def _reasons(run: Run, scores: ImageScores, decisions: Decisions, web: NDArray[Any]) -> list[str]:
    """Return the rule that decided on each image in words."""
    senses = run.found.unwanted_names
    reasons = []
    for row, code in enumerate(decisions.rules):
        sentence = Rule(code).sentence
        if code == Rule.CONFIDENT and web[row] < 0:
            sentence = SURE
        if code == Rule.UNWANTED and scores.unwanted is not None:
            sentence += f": {senses[int(scores.unwanted[row])]}"
        reasons.append(sentence)
    return reasons


def _nearest(edges: csr_array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most similar image of each new one, -1 if there is none, and their cosine."""
    rows, cosines = np.full(edges.shape[0], -1), np.zeros(edges.shape[0])
    for row in np.flatnonzero(np.diff(edges.indptr)):
        part = slice(edges.indptr[row], edges.indptr[row + 1])
        best = part.start + int(np.argmax(edges.data[part]))
        rows[row], cosines[row] = edges.indices[best], edges.data[best]
    return rows, cosines
