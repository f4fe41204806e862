"""How far labels can be believed, on two crawls: vsgraph beside web labels, cleanlab and 0.2.

    python experiments/doubted_labels.py ../shared/data/coco-web ../shared/data/coco-web-b \
        --write docs/results.md

Every method sees the same vectors; the default sees the words of the texts as well, as a run does.
"""

import dataclasses
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import vsgraph
from baselines import cleanlab_flags
from coco_web_data import read_coco_web
from encode import text_vectors
from keeping import keep
from pages import put
from ranked import auroc, calibration_error, coverage_at
from trials import TEXTS, Trial, draw, load_vectors, spread
from vsgraph import Settings, VSGraphWarning
from vsgraph.common.formatting import markdown_table
from vsgraph.meanings.mentions import Lexicon, find_mentions
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.unwanted import find_unwanted, unwanted_words
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method.algorithm import Solver
from vsgraph.method.decisions import decide_all
from vsgraph.method.inputs import Words, check_inputs
from vsgraph.method.scoring import Scorer
from vsgraph.result.scores import label_quality

Array = NDArray[np.floating]
PAPER = Settings(text_evidence=False, weight_decay=1e-6, solver="adam")
HEAD = [
    "labels", "coverage at 90 % right", "at 95 % right", "AUROC, label right",
    "AUROC, wrong web labels", "likeliest right, in set / ambiguous, %", "calibration error",
    "none of the classes: removed, %", "left, %", "right of those, %",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Labels:
    """What a method says: labels, how sure they are, how good web labels are, and who is left."""

    labels: NDArray[np.intp]
    confidence: Array | None
    quality: Array | None
    left: NDArray[np.bool_]
    final: NDArray[np.intp] | None = None  # labels of those left, if not the likeliest
    probable: bool = True  # whether the confidence is meant as a probability


def run(trial: Trial) -> dict[str, Any]:
    """Judge each method on one trial."""
    return {name: judge(labels, trial) for name, labels in methods(trial).items()}


def methods(trial: Trial) -> dict[str, Labels]:
    """Return the labels of each method."""
    web, probe, own = trial.data.web_labels, trial.probe, trial.own
    every = np.ones(len(web), bool)
    flagged = cleanlab_flags(web, probe)
    fixed = np.where(flagged, probe.argmax(axis=1), web)
    cosines = trial.text @ trial.meaning.T
    paper = np.asarray(trial.correct(PAPER, trial.fitted).final_probs)
    silent = trial.correct(cnn=probe, text_embeddings=np.zeros_like(trial.text))
    return {
        "web labels": Labels(web, None, None, every),
        "cleanlab, flagged labels replaced": Labels(
            fixed, probe[np.arange(len(web)), fixed], probe[own], every
        ),
        "cleanlab, flagged photos removed": Labels(web, probe[own], probe[own], ~flagged),
        "text alone: nearest label meaning": Labels(
            cosines.argmax(axis=1), cosines.max(axis=1), cosines[own], every, probable=False
        ),
        "p_f released, m = 50": Labels(paper.argmax(axis=1), paper.max(axis=1), paper[own], every),
        "vsgraph 0.2": former_default(trial),
        "vsgraph, all texts taken away": of(silent),
        "**vsgraph**": of(trial.correct(cnn=probe, words=words_of(trial))),
    }


def of(made: vsgraph.Correction) -> Labels:
    """Return what a correction says."""
    return Labels(
        made.final_probs.argmax(), made.final_probs.max(), made.label_quality,
        made.final_labels >= 0, made.final_labels,
    )  # fmt: skip


def former_default(trial: Trial) -> Labels:
    """Return the default of 0.2: the evidence, and images far from every class rejected."""
    web = trial.data.web_labels
    inputs = check_inputs(
        trial.features, trial.text, trial.meaning, web, trial.probe, graph=trial.graph
    )
    solver, settings = Solver(inputs), Settings(kept_scores=len(trial.meaning))
    trained, weigher, smoothed = map(solver.result, ("network", "evidence", "smoothing"))
    scores = Scorer(
        inputs, trained.network, weigher, None, smoothed, trained.anchors, settings
    ).score_all(progress=False)
    final = decide_all(scores, web, settings=settings).final_labels
    quality = label_quality(np.asarray(scores.final)[trial.own], np.asarray(scores.gnn)[trial.own])
    return Labels(scores.final.argmax(), scores.final.max(), quality, final >= 0, final)


def words_of(trial: Trial) -> Words:
    """Return what the texts of a trial say word by word, as a run finds it."""
    data, lexicon = trial.data, Lexicon(WordNet.open())
    texts = trial.texts
    meanings = [
        Meaning(name, wnid, WordNet.open().describe(wnid))
        for name, wnid in zip(data.class_names, data.wnids, strict=True)
    ]
    by_class = [
        [texts[row] for row in np.flatnonzero(data.web_labels == number) if texts[row]]
        for number in range(len(meanings))
    ]
    unwanted = find_unwanted(meanings, by_class, lexicon, text_vectors)
    other = [unwanted_words(meaning, lexicon) for meaning in unwanted]
    phrases = [*map(lexicon.names_of, meanings), *other, *map(lexicon.words_for, meanings), *other]
    both = find_mentions(texts, phrases, lexicon)
    n_columns = len(meanings) + len(unwanted)
    spoken = [meaning.description.partition(":")[0] for meaning in unwanted]
    described = [meaning.description for meaning in unwanted]
    return Words(
        text_vectors([*data.class_names, *spoken]),
        both[:, :n_columns],
        both[:, n_columns:],
        text_vectors(described) if described else np.empty((0, trial.text.shape[1]), np.float32),
        np.array([data.class_names.index(meaning.class_name) for meaning in unwanted], np.intp),
        tuple(spoken),
    )


def judge(labels: Labels, trial: Trial) -> dict[str, float | None]:
    """Measure what a method says; all photos count, unless a measure names others."""
    truth, rows = trial.data.truth, np.arange(len(trial.rows))
    right, in_set = truth[rows, labels.labels], trial.data.in_set
    final = labels.labels if labels.final is None else np.maximum(labels.final, 0)
    sure, good = labels.confidence, labels.quality
    return {
        "coverage 90": None if sure is None else coverage_at(sure, right, 0.9),
        "coverage 95": None if sure is None else coverage_at(sure, right, 0.95),
        "right": None if sure is None else auroc(sure, right),
        "wrong": None if good is None else auroc(good, trial.data.clean),
        "in set": float(right[in_set].mean()),
        "ambiguous": float(right[in_set & trial.data.ambiguous].mean()),
        "error": calibration_error(sure, right) if sure is not None and labels.probable else None,
        "none removed": float((~labels.left)[~in_set].mean()),
        "left": float(labels.left.mean()),
        "right of left": float(truth[rows, final][labels.left].mean()),
    }


def table(trials: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return one row per method, means and deviations over the trials."""

    def cell(name: str, key: str, **how: Any) -> str:  # noqa: ANN401
        return spread([trial[name][key] for trial in trials], **how)

    rows = [
        [
            name,
            *(cell(name, key, digits=2, scale=1) for key in ("coverage 90", "coverage 95")),
            *(cell(name, key, digits=3, scale=1) for key in ("right", "wrong")),
            f"{cell(name, 'in set')} / {cell(name, 'ambiguous')}",
            cell(name, "error", digits=3, scale=1),
            *(cell(name, key) for key in ("none removed", "left", "right of left")),
        ]
        for name in trials[0]
    ]
    return markdown_table(HEAD, rows).splitlines()


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--every", default=1, show_default=True, help="Use every so many-th photo only.")
@click.option("--seeds", default=5, show_default=True, help="Trials of each table.")
@click.option("--write", type=click.Path(exists=True, path_type=Path), help="Page for the tables.")
def main(folders: tuple[Path, ...], every: int, seeds: int, write: Path | None) -> None:
    """Judge the labels on the data sets in FOLDERS, with captions and with web-like text."""
    warnings.simplefilter("ignore", VSGraphWarning)
    module = sys.modules[__name__]
    for folder in folders:
        vectors = load_vectors(read_coco_web(folder, every=every))
        for kind in TEXTS:
            drawn = (draw(vectors, seed=seed, kind=kind) for seed in range(seeds))
            kept = [keep(module, trial.about, lambda t=trial: run(t)) for trial in drawn]
            commits = ", ".join(dict.fromkeys(trial["commit"] for trial in kept))
            minutes = sum(trial["seconds"] for trial in kept) / 60
            lines = table([trial["found"] for trial in kept])
            how = f"*`python experiments/doubted_labels.py` at {commits}; seeds 0 to {seeds - 1}; "
            lines += ["", f"{how}{minutes:.0f} min on one thread.*"]
            name = f"doubted labels, {folder.name}, {kind}"
            click.echo("\n".join(["", f"## {name}", "", *lines]))
            if write:
                page = write.read_text(encoding="utf-8")
                write.write_text(put(page, name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
