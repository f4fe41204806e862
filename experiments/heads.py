"""What corrected labels are worth: heads on frozen networks, trained on the labels of each method.

Labels are made from four fifths of the photos, with Lite0 features; a seed draws nine tenths of
them, as in trials.py. A head on Lite0 and one on ResNet50 learn each method's labels as `vsgraph
finetune --freeze` does, and are judged on the photos whose ids are divisible by 5, by what people
marked. head_tables.py runs all trials.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from coco_web_data import CocoWeb, read_coco_web
from encode import photo_features
from keeping import keep
from lessons import (
    CO_TEACHING,
    answered_lessons,
    blind_lessons,
    learnt_from,
    simple_lessons,
    simple_text_lessons,
    text_lessons,
)
from peers import Lesson, of_probs
from ranked import auroc, coverage_at
from trials import Trial, Vectors, draw, load_vectors
from vsgraph.judge.metrics import f1_at_top, top_k_accuracy
from vsgraph.result.scores import TopScores
from vsgraph.training import Labels, Recipe
from vsgraph.training.heads import Head, train_head

NETWORKS = ("lite0", "resnet50")
PURITIES = (0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)  # shares of right labels
Array = NDArray[np.floating]


@dataclasses.dataclass(frozen=True)
class Split:
    """A crawl's photos to learn from, those to judge by, and all features."""

    name: str
    learn: Vectors
    test: CocoWeb
    features: Mapping[str, tuple[Array, Array]]  # of the first and of the second, by network

    @classmethod
    def of(cls, folder: Path, networks: Sequence[str] = NETWORKS) -> "Split":
        """Read a crawl and encode it."""
        vectors = load_vectors(read_coco_web(folder))
        learn, held = learnt_from(vectors)
        rest = np.setdiff1d(np.arange(len(vectors.features)), held)
        by_network = {name: photo_features(vectors.data.images, name) for name in networks}
        features = {name: (table[rest], table[held]) for name, table in by_network.items()}
        return cls(folder.name, learn, vectors.data.take(held), features)


def train_on(lesson: Lesson, features: Array, recipe: Recipe) -> Head:
    """Train a head on a lesson; each stage goes on from the one before, for a whole recipe."""
    labels = Labels(TopScores.of(lesson.table, n_kept=lesson.table.shape[1]), several=False)
    head = None
    for shares in lesson.stages or (None,):
        stage = recipe if head is None else recipe.for_finetuning()
        head = train_head(features, labels, stage, start=head, shares=shares)
    return head


def judge_labels(lesson: Lesson, trial: Trial) -> dict[str, Any]:
    """Measure a method's labels, before any classifier learns them."""
    left, best, sure = lesson.table.sum(axis=1) > 0, lesson.labels, lesson.confidence
    right = trial.data.truth[np.arange(len(best)), best]
    in_set, ambiguous = trial.data.right(best)
    return {
        "in set": in_set,
        "ambiguous": ambiguous,
        "wrong": auroc(lesson.quality, trial.data.clean),
        "coverage 90": coverage_at(sure, right, 0.9),
        "coverage 95": coverage_at(sure, right, 0.95),
        "left": float(left.mean()),
        "right of left": float(right[left].mean()),
        "covered": [coverage_at(sure, right, share) for share in PURITIES],
    }


def judge_head(head: Head, features: Array, test: CocoWeb) -> dict[str, Any]:
    """Measure a head on the test photos that show one of the classes."""
    rows = np.flatnonzero(test.in_set)
    probs, shown = head.probs(features[rows]), test.truth[rows]
    hits = shown[np.arange(len(rows)), probs.argmax(axis=1)]
    return {
        "top_1": float(hits.mean()),
        "ambiguous": float(hits[test.ambiguous[rows]].mean()),
        "top_5": top_k_accuracy(probs, shown, k=5),
        "c_f1": f1_at_top(probs, shown, k=1).c_f1,
        "n": len(rows),
        "hits": np.packbits(hits).tobytes().hex(),
    }


def learn_all(lessons: Mapping[str, Lesson], trial: Trial, split: Split) -> dict[str, Any]:
    """Judge the labels of each method, and a head on each network that learned them."""
    found: dict[str, Any] = {}
    wrong = float((~trial.data.clean).mean())
    for name, lesson in lessons.items():
        recipe = Recipe(random_state=trial.seed)
        if name == CO_TEACHING:  # it knows how many labels are wrong
            recipe = dataclasses.replace(recipe, forget_rate=wrong)
        heads = {n: train_on(lesson, f[0][trial.rows], recipe) for n, f in split.features.items()}
        if name == CO_TEACHING:
            probs = heads["lite0"].probs(trial.features)
            lesson = of_probs(probs, trial.data.web_labels)  # noqa: PLW2901
        judged = {n: judge_head(h, split.features[n][1], split.test) for n, h in heads.items()}
        found[name] = {"labels": judge_labels(lesson, trial), **judged}
    return found


def judge_all(lessons: Mapping[str, Lesson], trial: Trial) -> dict[str, Any]:
    """Judge the labels of each method alone."""
    return {name: {"labels": judge_labels(lesson, trial)} for name, lesson in lessons.items()}


def run(split: Split, seed: int, kind: str) -> dict[str, Any]:
    """Judge all methods on one trial; those that read no text once for all kinds of text."""
    trial, module = draw(split.learn, seed=seed, kind=kind), sys.modules[__name__]
    own = {**trial.about, "crawl": split.name}
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "blind": lambda: learn_all(blind_lessons(trial) | answered_lessons(trial), trial, split),
        "simple": lambda: judge_all(simple_lessons(trial), trial),
        "text": lambda: learn_all(text_lessons(trial), trial, split),
        "simple text": lambda: judge_all(simple_text_lessons(trial), trial),
    }
    made = [
        keep(module, {**own, "part": part} | ({} if "text" in part else {"kind": ""}), find)
        for part, find in parts.items()
    ]
    seconds = sum(part["seconds"] for part in made)
    click.echo(f"{split.name}, {kind}, seed {seed}: {seconds:.0f} s", err=True)
    return {
        "commits": [part["commit"] for part in made],
        "seconds": seconds,
        "found": {name: judged for part in made for name, judged in part["found"].items()},
    }
