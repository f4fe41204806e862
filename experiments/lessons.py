"""What each method would teach a classifier, on the photos of a trial."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

import vsgraph
from baselines import cleanlab_flags, neighbor_vote, propagate_labels, spread_labels
from doubted_labels import words_of
from peers import Lesson, curriculum, mentor, of_probs, one_hot, self_learning, verification
from simifeat import simifeat
from trials import Trial, Vectors
from vsgraph import Settings
from vsgraph.result.parts import NONE, UNANSWERED
from vsgraph.training import corrected_labels

PAPER = Settings(
    text_evidence=False, anchors_per_class=10, weight_decay=1e-6,
    solver="adam", epochs=500, learning_rate=0.01,
)  # fmt: skip
PAPER_50 = dataclasses.replace(PAPER, anchors_per_class=50)
PRINTED = Settings.google_500(epochs=500, unit_features=True)
K = 10  # neighbors of the simple methods
ASKED = 5  # answers per class, for methods that need a clean subset
WEB, CO_TEACHING, OURS = "web labels", "Co-teaching", "**vsgraph**"
CNN = "p_c, out of fold"
TRUTH = "the truth, which no method sees"
Rows = NDArray[np.intp]


def learnt_from(vectors: Vectors) -> tuple[Vectors, NDArray[np.intp]]:
    """Return the photos to learn from, and the rows of the others: ids divisible by 5."""
    held = np.array([int(path.stem) % 5 == 0 for path in vectors.data.images])
    rows = np.flatnonzero(~held)
    kept = Vectors(
        vectors.data.take(rows), vectors.features[rows], vectors.text[rows], vectors.meaning
    )
    return kept, np.flatnonzero(held)


def blind_lessons(trial: Trial) -> dict[str, Lesson]:
    """Return what methods teach that read no text and ask nobody."""
    web, n_classes = trial.data.web_labels, len(trial.meaning)
    plain, probe = one_hot(web, n_classes), trial.probe
    flagged = cleanlab_flags(web, probe)
    same = np.ones(len(web))
    return {
        WEB: Lesson(plain, web, same, same),
        CNN: of_probs(probe, web),
        "cleanlab, flagged photos removed": Lesson(
            np.where(flagged[:, None], 0, plain), web, probe[trial.own], probe[trial.own]
        ),
        CO_TEACHING: Lesson(plain, web, same, same),  # it chooses while it learns
        "CurriculumNet": curriculum(trial.unit, web, n_classes),
        "self-learning by prototypes": self_learning(trial.unit, web, n_classes),
        TRUTH: true_lesson(trial),
    }


def true_lesson(trial: Trial) -> Lesson:
    """Return what people marked: the web label where it is right, else the classes shown."""
    shown, web, clean = trial.data.truth, trial.data.web_labels, trial.data.clean
    table = np.where(clean[:, None], one_hot(web, len(trial.meaning)), shown).astype(np.float32)
    table /= np.maximum(table.sum(axis=1, keepdims=True), 1)
    return Lesson(table, table.argmax(axis=1), table.max(axis=1), clean.astype(float))


def simple_lessons(trial: Trial) -> dict[str, Lesson]:
    """Return what simple methods on neighbors say of the labels."""
    web, n_classes, probe = trial.data.web_labels, len(trial.meaning), trial.probe
    by_neighbors = simifeat(trial.features, web, n_classes=n_classes, k=K)
    return {
        "cleanlab, flagged labels replaced": replaced(cleanlab_flags(web, probe), probe, web),
        "SimiFeat-style, flagged labels replaced": dataclasses.replace(
            replaced(by_neighbors.flagged, by_neighbors.vote, web), quality=by_neighbors.score
        ),
        f"vote of {K} neighbors": of_probs(neighbor_vote(trial.features, web, k=K), web),
        "label spreading of web labels": of_probs(
            spread_labels(trial.unit, web, k=K, neighbors_share=0.2), web
        ),
    }


def replaced(flagged: NDArray[np.bool_], probs: NDArray[np.floating], web: Rows) -> Lesson:
    """Replace flagged web labels by the likeliest."""
    likeliest = of_probs(probs, web)
    labels = np.where(flagged, likeliest.labels, web)
    sure = probs[np.arange(len(web)), labels]
    return Lesson(one_hot(labels, probs.shape[1]), labels, sure, likeliest.quality)


def simple_text_lessons(trial: Trial) -> dict[str, Lesson]:
    """Return what simple methods that read the texts say of the labels."""
    web, anchors = trial.data.web_labels, trial.correct(cnn=trial.probe).anchors
    seeds = np.full(len(web), -1)
    seeds[anchors.rows] = anchors.classes
    printed = trial.correct(PRINTED, trial.fitted)
    return {
        "text alone: nearest label meaning": of_probs(trial.text @ trial.meaning.T, web),
        "label propagation from our anchors": of_probs(
            propagate_labels(trial.unit, seeds, k=K), web
        ),
        "p_f, of the paper as printed, m = 10": of(printed, "believed", trial),
    }


def asked(trial: Trial) -> NDArray[np.intp]:
    """Let the truth answer for a few random photos of each class, as a person would."""
    web, shown = trial.data.web_labels, trial.data.truth
    order = np.random.default_rng(trial.seed).permutation(len(web))
    rows = np.concatenate([order[web[order] == c][:ASKED] for c in range(len(trial.meaning))])
    answers = np.full(len(web), UNANSWERED)
    other = np.where(shown.any(axis=1), shown.argmax(axis=1), NONE)
    answers[rows] = np.where(trial.data.clean, web, other)[rows]
    return answers


def answered_lessons(trial: Trial) -> dict[str, Lesson]:
    """Return what methods teach that need a clean subset, and read no text."""
    web, n_classes, answers = trial.data.web_labels, len(trial.meaning), asked(trial)
    return {
        f"CleanNet-style verification, {ASKED} answers per class": verification(
            trial.unit, web, n_classes, answers
        ),
        f"MentorNet-style weights, {ASKED} answers per class": mentor(
            trial.probe, web, n_classes, answers
        ),
    }


def text_lessons(trial: Trial) -> dict[str, Lesson]:
    """Return what methods teach that read the texts: the paper's, and the default."""
    paper = trial.correct(PAPER_50, trial.fitted)
    words = words_of(trial)
    ours = trial.correct(cnn=trial.probe, words=words)
    taught = trial.correct(cnn=trial.probe, words=words, answers=asked(trial))
    return {
        "p_c, of the paper": of(paper, "cnn", trial),
        "p_g, of the paper": of(paper, "gnn", trial),
        "p_f, of the paper": of(paper, "believed", trial),
        OURS: of(ours, "believed", trial),
        "vsgraph, without rejected photos": of(ours, "final", trial),
        "vsgraph, decided labels": of(ours, "decided", trial),
        f"vsgraph, {ASKED} answers per class": of(taught, "believed", trial),
    }


def of(made: vsgraph.Correction, kind: str, trial: Trial) -> Lesson:
    """Return the labels of a correction as `vsgraph finetune --labels` takes them."""
    table = corrected_labels(made, kind).table
    dense = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
    scores = {"cnn": made.cnn_probs, "gnn": made.gnn_probs}.get(kind, made.final_probs)
    quality = made.label_quality if kind not in {"cnn", "gnn"} else dense[trial.own]
    return Lesson(dense.astype(np.float32), scores.argmax(axis=1), scores.max(axis=1), quality)
