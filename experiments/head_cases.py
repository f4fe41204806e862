"""Heads in more cases: flipped labels, an open set, several labels.

All on captions as they are and Lite0 features. Heads are judged on the photos whose ids are
divisible by 5. case_tables.py runs all cases.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vsgraph
from coco_web_data import CocoWeb
from doubted_labels import words_of
from heads import Split, judge_head, train_on
from lessons import CNN, CO_TEACHING, OURS, PAPER_50, TRUTH, WEB, blind_lessons, of
from peers import of_probs, one_hot
from several_labels import PAPER as PAPER_SEVERAL
from trials import CAPTIONS, Trial, draw
from vsgraph.judge.metrics import f1_at_top, macro_map, open_set
from vsgraph.training import Labels, Recipe, corrected_labels
from vsgraph.training.heads import train_head

FLIPPED = (0.2, 0.4, 0.6, 0.8)
Rows = NDArray[np.intp]


def narrowed(trial: Trial, rows: Rows, data: CocoWeb, meaning: NDArray[np.floating]) -> Trial:
    """Return a trial of some photos, with other labels or classes."""
    return dataclasses.replace(
        trial, rows=trial.rows[rows], data=data, features=trial.features[rows],
        text=trial.text[rows], meaning=meaning, texts=trial.texts[rows],
    )  # fmt: skip


def flipped(split: Split, seed: int, share: float) -> dict[str, Any]:
    """Take photos whose label is right, give some of them a wrong one, and train on that."""
    trial = draw(split.learn, seed=seed, kind=CAPTIONS)
    rows, n_classes = np.flatnonzero(trial.data.clean), len(trial.meaning)
    random = np.random.default_rng([seed, round(100 * share)])
    data = trial.data.take(rows)
    moved = (data.web_labels + random.integers(1, n_classes, len(rows))) % n_classes
    web = np.where(random.random(len(rows)) < share, moved, data.web_labels)
    given = narrowed(trial, rows, dataclasses.replace(data, web_labels=web), trial.meaning)
    lessons = blind_lessons(given)
    del lessons[TRUTH]
    lessons[OURS] = of(given.correct(cnn=given.probe, words=words_of(given)), "believed", given)
    found = {}
    for name, lesson in lessons.items():
        recipe = Recipe(random_state=seed, forget_rate=share if name == CO_TEACHING else None)
        head = train_on(lesson, given.features, recipe)
        found[name] = judge_head(head, split.features["lite0"][1], split.test)
    return found


def half_known(trial: Trial) -> tuple[Trial, Rows]:
    """Return the photos whose web label is one of half of the classes, and these classes."""
    order = np.random.default_rng(trial.seed).permutation(len(trial.meaning))
    known = np.sort(order[: len(order) // 2])
    number = np.full(len(order), -1)
    number[known] = np.arange(len(known))
    rows = np.flatnonzero(number[trial.data.web_labels] >= 0)
    data = trial.data.take(rows)
    data = dataclasses.replace(
        data, web_labels=number[data.web_labels], truth=data.truth[:, known],
        class_names=[data.class_names[c] for c in known], wnids=[data.wnids[c] for c in known],
        ambiguous_queries=data.ambiguous_queries[known],
    )  # fmt: skip
    return narrowed(trial, rows, data, trial.meaning[known]), known


def unknown_classes(split: Split, seed: int) -> dict[str, Any]:
    """Learn half of the classes, and judge on photos of all, as in the paper's table 4."""
    trial, known = half_known(draw(split.learn, seed=seed, kind=CAPTIONS))
    paper = trial.correct(PAPER_50, trial.fitted)
    web = trial.data.web_labels
    plain = of_probs(one_hot(web, len(known)), web)
    ours = trial.correct(cnn=trial.probe, words=words_of(trial))
    lessons = {
        WEB: plain,
        CO_TEACHING: plain,
        "p_c, of the paper": of(paper, "cnn", trial),
        "p_g, of the paper": of(paper, "gnn", trial),
        "p_f, of the paper": of(paper, "believed", trial),
        CNN: of_probs(trial.probe, web),
        OURS: of(ours, "believed", trial),
    }
    found = {}
    for name, lesson in lessons.items():
        wrong = float((~trial.data.clean).mean()) if name == CO_TEACHING else None
        recipe = Recipe(random_state=seed, loss="sigmoid", forget_rate=wrong)
        probs = train_on(lesson, trial.features, recipe).probs(split.features["lite0"][1])
        found[name] = measure_open(probs, split.test.truth[:, known])
    return found


def measure_open(probs: NDArray[np.floating], truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Return C-P, C-R and C-F1 in both readings, and how many unknown photos get no label."""
    inside = truth.any(axis=1)
    found: dict[str, Any] = {"silent": float((probs.max(axis=1) <= 0.2)[~inside].mean())}
    for reading in ("highest", "every"):
        counts = open_set(probs, truth, reading=reading)  # type: ignore[arg-type]
        found |= {f"{reading} {key}": getattr(counts, key) for key in ("c_p", "c_r", "c_f1")}
    return found


def several(split: Split, seed: int) -> dict[str, Any]:
    """Learn every query that hits a photo, as in the paper's table 3."""
    trial = draw(split.learn, seed=seed, kind=CAPTIONS)
    rows = np.flatnonzero(trial.data.query_hits.any(axis=1))
    web, n_classes = trial.data.query_hits[rows], len(trial.meaning)
    features = trial.features[rows]
    probe = vsgraph.linear_probe(
        features, web, n_classes=n_classes, n_kept=n_classes, random_state=seed
    )
    graph = vsgraph.visual_graph(features, n_neighbors=5)

    def correct(settings: vsgraph.Settings) -> vsgraph.Correction:
        return vsgraph.correct(
            features, trial.text[rows], trial.meaning, web, probe, graph=graph, settings=settings
        )

    paper, ours = correct(PAPER_SEVERAL), correct(vsgraph.Settings())
    lessons = {
        WEB: corrected_labels(ours, "web"),
        CNN: Labels(probe, several=True),
        "p_f, of the paper": corrected_labels(paper),
        OURS: corrected_labels(ours),
    }
    found = {}
    for name, labels in lessons.items():
        head = train_head(features, labels, Recipe(random_state=seed))
        inside = split.test.in_set
        probs, truth = head.probs(split.features["lite0"][1][inside]), split.test.truth[inside]
        top = f1_at_top(probs, truth)
        found[name] = {"c_f1": top.c_f1, "o_f1": top.o_f1, "map": macro_map(probs, truth)}
    return found
