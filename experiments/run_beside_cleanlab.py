"""Finished runs beside cleanlab: ``python experiments/run_beside_cleanlab.py RUN ...``.

A RUN is what ``vsgraph correct`` left of a crawl of known truth (its own, or ``--truth``), one
label an image. cleanlab gets the run's own web labels and probabilities of its linear probe, which
are out of fold. Nothing is trained or encoded again.
"""

import dataclasses
import os
import platform
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from baselines import cleanlab_flags
from coco_web_data import AMBIGUOUS
from vsgraph.common.formatting import markdown_table
from vsgraph.result.parts import Decision
from vsgraph.runs import Run

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
Array = NDArray[np.floating]
HEAD = ["labels", "images left", "right, %: in set / ambiguous", "right, % of all left", "AUROC"]
NOTE = """\
Right: the image shows the class. In set: images that show at least one of the classes; ambiguous:
those of them whose query has more than 10 % wrong labels. Of all left: images that show none of the
classes count as wrong. AUROC: how well the score of a web label tells whether it is right."""


@dataclasses.dataclass(frozen=True)
class Case:
    """The judged images of a run: which classes they show, which web label they had."""

    web: NDArray[np.intp]
    shown: NDArray[np.bool_]

    @property
    def clean(self) -> NDArray[np.bool_]:
        """Images whose web label is right."""
        return self.right(self.web)

    def right(self, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which labels are right; -1 is none."""
        return self.shown[np.arange(len(labels)), np.maximum(labels, 0)] & (labels >= 0)

    def ambiguous(self) -> NDArray[np.bool_]:
        """Images of the queries with many wrong labels."""
        wrong = np.bincount(self.web, weights=~self.clean)
        return (wrong / np.maximum(np.bincount(self.web), 1) > AMBIGUOUS)[self.web]

    def row(
        self, name: str, labels: NDArray[np.intp], left: NDArray[np.bool_], score: Array | None
    ) -> list[str]:
        """Return a line of the table."""
        right = self.right(labels)
        in_set = self.shown.any(axis=1) & left
        among = [in_set, in_set & self.ambiguous()]
        shares = " / ".join(f"{100 * right[rows].mean():.1f}" for rows in among)
        area = "-" if score is None else f"{roc_auc_score(self.clean, score):.3f}"
        return [name, f"{left.sum():,}", shares, f"{100 * right[left].mean():.1f}", area]


def table_of(run: Run, truth: Path | None = None) -> str:
    """Return the table as Markdown."""
    made = run.correction
    if made.web_labels.ndim == 2 or made.cnn_probs is None:
        raise click.ClickException(f"{run.path} has several labels an image, or no probabilities")
    shown, known = run.read_truth(truth)
    rows = np.flatnonzero(known)
    web = np.asarray(made.web_labels[rows])
    case = Case(web, shown[rows].toarray().astype(bool))
    probs = np.asarray(run.arrays()["cnn_probs"][rows], np.float64)
    probs /= probs.sum(axis=1, keepdims=True)
    fixed = np.where(cleanlab_flags(web, probs), probs.argmax(axis=1), web)
    quality = probs[np.arange(len(web)), web]
    final, decided = np.asarray(made.final_labels[rows]), made.decisions[rows]
    likeliest = made.final_probs.argmax(axis=1)[rows]
    score = made.label_quality[rows]
    every = np.ones(len(rows), bool)
    lines = [
        case.row("web labels", web, every, None),
        case.row("cleanlab, flagged labels replaced", fixed, every, quality),
        case.row("cleanlab, flagged images removed", web, fixed == web, quality),
        case.row("**the run**, likeliest class", likeliest, every, score),
        case.row("**the run**, rejected images removed", final, decided != Decision.REJECT, score),
        case.row("**the run**, only kept images left", final, decided == Decision.KEEP, score),
    ]
    return markdown_table(HEAD, lines)


def section(run: Run, truth: Path | None) -> list[str]:
    """Return the lines on one run: how it was made, and its table."""
    asked, stages = run.record["asked"], run.record["stages"]
    choices = asked["choices"]
    given = " --meanings meanings.csv" if choices["meanings"] else ""
    seconds = sum(stage["seconds"] for name, stage in stages.items() if name != "report")
    return [
        f"## `vsgraph correct {asked['crawl']['name']} -o run{given}`", "",
        f"{len(run.correction):,} images, {len(run.correction.class_names)} classes; vsgraph "
        f"{run.record['versions']['vsgraph']}, {choices['image_encoder']}, "
        f"{choices['text_encoder']}; {seconds / 60:.0f} min with the encoding and without the "
        "report.", "",
        table_of(run, truth), "",
    ]  # fmt: skip


@click.command()
@click.argument("runs", type=FOLDER, nargs=-1, required=True)
@click.option("--truth", type=click.Path(exists=True, path_type=Path), help="Table of the truth.")
@click.option("--note", default="", help="A sentence on the data, for the page.")
@click.option("--write", type=click.Path(path_type=Path), help="Keep the page as this file.")
def main(runs: tuple[Path, ...], truth: Path | None, note: str, write: Path | None) -> None:
    """Put the labels of RUNS beside cleanlab's on the same features."""
    import cleanlab

    lines = [
        "# Runs beside cleanlab", "",
        f"Made by `python experiments/run_beside_cleanlab.py RUN ...` on {platform.machine()}, "
        f"{os.cpu_count()} cores, from runs that the command made there, other work beside it. "
        f"cleanlab {cleanlab.__version__} has the same web labels, and the probabilities of the "
        f"run's own linear probe, out of fold. {note}".strip(), "",
        NOTE, "",
    ]  # fmt: skip
    for run in runs:
        lines += section(Run.open(run), truth)
    text = "\n".join(lines)
    click.echo(text)
    if write:
        write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
