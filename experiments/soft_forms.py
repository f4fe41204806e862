"""Which form of our labels a head learns best from, and what the errors of labels cost it.

    python experiments/soft_forms.py ../shared/data/coco-web ../shared/data/coco-web-b \
        --write docs/results.md

Forms are compared on the first crawl, with both texts, on all photos and on a quarter of them. What
is lost is measured on each crawl: some labels are put right by the truth, the others stay. Photos,
texts and judging are those of heads.py. Every trial is kept.
"""

import functools
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from doubted_labels import words_of
from heads import NETWORKS, Split, judge_head, train_on
from keeping import keep
from lessons import WEB, true_lesson
from pages import publish
from peers import Lesson, one_hot
from trials import TEXTS, Trial, draw, spread
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table
from vsgraph.training import Recipe

QUARTER = 0.25
Array = NDArray[np.floating]
Rows = NDArray[np.intp]


def shares(scores: Array) -> Array:
    """Return rows that sum to one, or to zero."""
    total = scores.sum(axis=1, keepdims=True)
    return (scores / np.where(total > 0, total, 1)).astype(np.float32)


def forms(trial: Trial, probs: Array) -> dict[str, tuple[Array, Array | None]]:
    """Return soft labels made of the same probabilities, and how much each photo counts."""
    best, web = one_hot(probs.argmax(axis=1), probs.shape[1]), trial.data.web_labels
    squares = shares(probs**2)
    return {
        "odds": (shares(probs / np.maximum(1 - probs, 1e-3)), None),
        "probabilities": (shares(probs), None),
        "**squares**": (squares, None),
        "cubes": (shares(probs**3), None),
        "fourth powers": (shares(probs**4), None),
        "the likeliest alone": (best, None),
        "squares, photos weighed by the likeliest": (squares, probs.max(axis=1)),
        "squares, a fifth for the web label": (
            0.8 * squares + 0.2 * one_hot(web, probs.shape[1]), None
        ),
    }  # fmt: skip


def mended(trial: Trial, probs: Array) -> dict[str, tuple[Array, Array | None]]:
    """Return our labels, and the same with some of them put right by the truth or taken away."""
    ours, truth = shares(probs**2), true_lesson(trial).table
    shown, web, clean = trial.data.truth, trial.data.web_labels, trial.data.clean
    wrong = ~shown[np.arange(len(web)), ours.argmax(axis=1)]
    plain, none = one_hot(web, shown.shape[1]), ~trial.data.in_set

    def where(rows: NDArray[np.bool_], labels: Array | float) -> tuple[Array, None]:
        return np.where(rows[:, None], labels, ours).astype(np.float32), None

    return {
        WEB: (plain, None),
        "**ours**": (ours, None),
        "without photos of none of the classes": where(none, 0),
        "without photos whose likeliest label is wrong": where(wrong, 0),
        "those photos with their right labels": where(wrong, truth),
        "right web labels never changed": where(clean, plain),
        "the truth": (truth, None),
    }


def run(split: Split, seed: int, kind: str, *, compare: bool) -> dict[str, Any]:
    """Train heads on mended labels, and on each form if they are compared; return their top-1."""
    trial = draw(split.learn, seed=seed, kind=kind)
    made = trial.correct(cnn=trial.probe, words=words_of(trial))
    probs = np.asarray(made.final_probs)  # each class judged by itself
    order = np.random.default_rng(seed).permutation(len(probs))
    every, few = np.arange(len(probs)), np.sort(order[: round(QUARTER * len(probs))])

    def top_1(lesson: tuple[Array, Array | None], rows: Rows, network: str) -> float:
        table, counts = lesson[0][rows], lesson[1]
        best, sure = table.argmax(axis=1), table.max(axis=1)
        learned = Lesson(table, best, sure, sure, () if counts is None else (counts[rows],))
        features, test = split.features[network]
        head = train_on(learned, features[trial.rows[rows]], Recipe(random_state=seed))
        return judge_head(head, test, split.test)["top_1"]

    found = {
        "mended": {name: top_1(of, every, "lite0") for name, of in mended(trial, probs).items()}
    }
    if compare:
        found["forms"] = {
            name: [top_1(of, rows, net) for net in NETWORKS for rows in (every, few)]
            for name, of in forms(trial, probs).items()
        }
    return found


def trials(split: Split, seeds: int, kind: str, *, compare: bool) -> list[Mapping[str, Any]]:
    """Run all seeds, or find them done."""
    kept = []
    for seed in range(seeds):
        about = {"crawl": split.name, "kind": kind, "seed": seed, "compare": compare}
        make = functools.partial(run, split, seed, kind, compare=compare)
        kept.append(keep(sys.modules[__name__], about, make))
        click.echo(f"{about}: {kept[-1]['seconds']:.0f} s", err=True)
    return kept


def form_rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return one row per form: means over seeds and texts, in percent."""
    return [
        [name, *(f"{100 * mean:.1f}" for mean in np.mean([t[name] for t in found], axis=0))]
        for name in found[0]
    ]


def lost_table(made: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return one row per way of mending our labels, one column per crawl and text."""
    found = {name: [trial["found"]["mended"] for trial in of] for name, of in made.items()}
    rows = [
        [way, *(spread([trial[way] for trial in of]) for of in found.values())]
        for way in next(iter(found.values()))[0]
    ]
    return markdown_table(["learned from", *found], rows).splitlines()


def stamp(kept: Sequence[Mapping[str, Any]], seeds: int) -> list[str]:
    """Say how a table was made."""
    commits = ", ".join(dict.fromkeys(trial["commit"] for trial in kept))
    minutes = sum(trial["seconds"] for trial in kept) / 60
    return ["", f"*`python experiments/soft_forms.py` at {commits}; seeds 0 to {seeds - 1}; "
            f"{minutes:.0f} min on one thread.*"]  # fmt: skip


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seeds", default=5, show_default=True, help="Trials of each table.")
@click.option(
    "--lost", "only_lost", is_flag=True, help="Only measure what is lost, without ResNet."
)
@click.option("--write", type=click.Path(exists=True, path_type=Path), help="Page for the tables.")
def main(folders: tuple[Path, ...], seeds: int, write: Path | None, *, only_lost: bool) -> None:
    """Compare forms on the first of FOLDERS, and measure what is lost on all."""
    warnings.simplefilter("ignore", VSGraphWarning)
    made = {}
    for number, folder in enumerate(folders):
        compare = number == 0 and not only_lost
        split = Split.of(folder, NETWORKS if compare else NETWORKS[:1])
        for kind in TEXTS:
            made[f"{split.name}, {kind}"] = trials(split, seeds, kind, compare=compare)
    how = stamp([trial for of in made.values() for trial in of], seeds)
    tables = {"what is lost": [*lost_table(made), *how]}
    if not only_lost:
        found = [t["found"]["forms"] for of in made.values() for t in of if "forms" in t["found"]]
        sizes = [f"{net}, {size}" for net in NETWORKS for size in ("all", "a quarter")]
        table = markdown_table(["soft labels", *sizes], form_rows(found))
        tables["forms of soft labels"] = [*table.splitlines(), *how]
    publish(tables, {}, write)


if __name__ == "__main__":
    main()
