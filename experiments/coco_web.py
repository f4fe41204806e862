"""Label quality on COCO-Web by method: ``python experiments/coco_web.py FOLDER``.

Prints two tables, captions as they are and web-like text (40 % missing, 20 % exchanged), and with
``--write FILE`` keeps them as Markdown. "Right" counts in-set photos / those of ambiguous queries.
"""

import dataclasses
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

import vsgraph
from baselines import cleanlab_labels, neighbor_vote, web_classifier
from coco_web_data import CocoWeb, read_coco_web, web_like
from encode import describe, photo_features, text_vectors
from vsgraph import Settings

Array = NDArray[np.floating]
PAPER = Settings(
    text_evidence=False, anchors_per_class=10, weight_decay=1e-6,
    solver="adam", epochs=500, learning_rate=0.01,
)  # fmt: skip
PRINTED = Settings.google_500(epochs=500, unit_features=True)


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Everything the methods may see of the photos."""

    features: Array
    text: Array
    meaning: Array
    cnn_in_sample: Array
    cnn_out_of_fold: Array


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; `quality` ranks web labels, high where they are right."""

    method: str
    labels: NDArray[np.intp] | None
    quality: Array | None = None


def load_vectors(data: CocoWeb) -> Vectors:
    """Encode photos, captions and label meanings, and train the classifier on web labels."""
    features = photo_features(data.images)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    in_sample, out_of_fold = web_classifier(unit, data.web_labels)
    return Vectors(
        features=features,
        text=text_vectors(data.texts),
        meaning=text_vectors(describe(data.wnids)),
        cnn_in_sample=in_sample,
        cnn_out_of_fold=out_of_fold,
    )


def blind_rows(data: CocoWeb, vectors: Vectors) -> list[Row]:
    """Return the methods that do not read the text."""
    own = np.arange(len(data.web_labels)), data.web_labels
    cnn = vectors.cnn_out_of_fold
    vote = neighbor_vote(vectors.features, data.web_labels, k=10)
    fixed, quality = cleanlab_labels(data.web_labels, cnn)
    return [
        Row("web labels", data.web_labels),
        Row("p_c, cross-validated", cnn.argmax(axis=1), cnn[own]),
        Row("k-NN vote of web labels, k = 10", vote.argmax(axis=1), vote[own]),
        Row("cleanlab: flagged labels replaced", fixed, quality),
    ]


def text_rows(data: CocoWeb, vectors: Vectors, text: Array) -> list[Row]:
    """Return the methods that read the text."""
    own = np.arange(len(text)), data.web_labels
    graph = vsgraph.visual_graph(vectors.features, n_neighbors=5)

    def run(settings: Settings, cnn: Array | None) -> vsgraph.Correction:
        return vsgraph.correct(
            vectors.features, text, vectors.meaning, data.web_labels, cnn,
            graph=graph, settings=settings,
        )  # fmt: skip

    cosines = text @ vectors.meaning.T
    in_sample, out_of_fold = vectors.cnn_in_sample, vectors.cnn_out_of_fold
    printed, m10 = run(PRINTED, in_sample), run(PAPER, in_sample)
    m50 = run(dataclasses.replace(PAPER, anchors_per_class=50), in_sample)
    sure = m50.gnn_probs.max(axis=1) >= PAPER.confidence_threshold
    kept = np.where(sure, m50.gnn_probs.argmax(axis=1), data.web_labels)
    raw = run(dataclasses.replace(PAPER, anchors_per_class=50, unit_features=False), in_sample)
    product = np.asarray(m50.final_probs) * softmax(cosines / 0.05, axis=1)
    rows = [
        Row("text alone: nearest label meaning", cosines.argmax(axis=1), cosines[own]),
        final_row("p_f printed, m = 10", printed, own),
        final_row("p_f released, m = 10", m10, own),
        final_row("p_f released, m = 50", m50, own),
        final_row("the same, features not scaled to unit length", raw, own),
        Row("p_g of it where >= 0.7, else web label", kept, np.asarray(m50.gnn_probs)[own]),
        Row("p_f of it x softmax(cos / 0.05)", product.argmax(axis=1), product[own]),
    ]
    for name, cnn in (
        ("vsgraph default, no CNN", None),
        ("vsgraph default, p_c of its training photos", in_sample),
        ("**vsgraph default, p_c out of fold**", out_of_fold),
    ):
        rows.append(final_row(name, run(Settings(), cnn), own))
    weak = run(Settings(weight_decay=1e-6), out_of_fold)
    rows.append(final_row("the same with the paper's weight decay, 1e-6", weak, own))
    return rows


def final_row(
    name: str, correction: vsgraph.Correction, own: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> Row:
    """Return the likeliest labels of a correction, before any decision."""
    return Row(name, correction.final_probs.argmax(axis=1), np.asarray(correction.final_probs)[own])


def print_rows(data: CocoWeb, rows: Sequence[Row]) -> list[str]:
    """Return a Markdown table."""
    lines = ["| labels | right, % | finds wrong labels, AUROC |", "|---|---|---|"]
    for row in rows:
        all_photos, ambiguous = data.right(row.labels)
        area = f"{roc_auc_score(data.clean, row.quality):.3f}" if row.quality is not None else "-"
        lines.append(f"| {row.method} | {100 * all_photos:.1f} / {100 * ambiguous:.1f} | {area} |")
    return lines


def decision_lines(data: CocoWeb, vectors: Vectors, text: Array) -> list[str]:
    """Say what the default decides and how right that is."""
    made = vsgraph.correct(
        vectors.features, text, vectors.meaning, data.web_labels, vectors.cnn_out_of_fold
    )
    rejected = made.final_labels < 0
    likeliest = made.final_probs.argmax(axis=1)
    wrong = ~data.truth[np.arange(len(likeliest)), likeliest]
    right = data.truth[np.arange(len(rejected)), np.maximum(made.final_labels, 0)]
    moved = made.decisions == vsgraph.Decision.RELABEL
    weights = ", ".join(f"{name} {value:.2f}" for name, value in made.evidence_weights.items())
    counts = made.counts
    return [
        f"{counts['keep']} kept, {counts['relabel']} relabeled ({right[moved].mean():.0%} of the "
        f"new labels right), {counts['reject']} rejected (the likeliest label of "
        f"{wrong[rejected].mean():.0%} of them was wrong). Labels right among all photos not "
        f"rejected: {right[~rejected].mean():.1%} (web labels: {data.clean.mean():.1%} of all).",
        f"Estimated weights: {weights}.",
    ]


def anchor_lines(data: CocoWeb, vectors: Vectors, text: Array) -> list[str]:
    """Say how many anchors are right, by how they are chosen."""
    graph = vsgraph.visual_graph(vectors.features, n_neighbors=5)
    smoothed = vsgraph.smooth_text(text, graph, self_weight=0, form="released")
    confidence = vectors.cnn_in_sample[np.arange(len(text)), data.web_labels]
    by_confidence = vsgraph.text_match(text, vectors.meaning, data.web_labels)
    by_confidence.data = confidence
    ways = {
        "p_c confidence": by_confidence,
        "own text": vsgraph.text_match(text, vectors.meaning, data.web_labels),
        "graph-smoothed text": vsgraph.text_match(smoothed, vectors.meaning, data.web_labels),
    }
    lines = ["| anchors by | m = 10 | m = 50 |", "|---|---|---|"]
    for name, match in ways.items():
        cells = [right_anchors(data, vsgraph.select_anchors(match, per_class=m)) for m in (10, 50)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return lines


def right_anchors(data: CocoWeb, anchors: vsgraph.Anchors) -> str:
    """Return the share of right anchors: all classes / ambiguous ones."""
    right = data.truth[anchors.rows, anchors.classes]
    return f"{right.mean():.1%} / {right[data.ambiguous[anchors.rows]].mean():.1%}"


def multi_label_lines(data: CocoWeb, vectors: Vectors, text: Array) -> list[str]:
    """Judge the same photos with every query that hits as a web label, by mean precision."""
    keep = data.query_hits.any(axis=1)
    made = vsgraph.correct(
        vectors.features[keep], text[keep], vectors.meaning, data.query_hits[keep]
    )
    truth = data.truth[keep]
    lines = ["| scores | mAP | micro F1 | right sets |", "|---|---|---|---|"]
    for name, scores, chosen in (
        ("web labels", data.query_hits[keep].astype(float), data.query_hits[keep]),
        ("p_g", np.asarray(made.gnn_probs), np.asarray(made.gnn_probs) >= 0.5),
        ("vsgraph default", np.asarray(made.final_probs), made.final_labels),
    ):
        area = average_precision_score(truth, scores, average="macro")
        micro = f1_score(truth, chosen, average="micro")
        exact = (chosen == truth).all(axis=1).mean()
        lines.append(f"| {name} | {area:.3f} | {micro:.3f} | {exact:.1%} |")
    return lines


def page(data: CocoWeb, vectors: Vectors, seeds: int) -> list[str]:
    """Return both tables and what goes with them."""
    lines = [*print_rows(data, blind_rows(data, vectors))]
    parts: list[tuple[str, Callable[[CocoWeb, Vectors, Array], list[str]]]] = [
        ("Decisions", decision_lines),
        ("Anchors that are right: all classes / ambiguous queries", anchor_lines),
        ("Multi-label: every query that hits is a web label", multi_label_lines),
    ]
    variants = [("captions as they are", vectors.text)]
    variants += [(f"web-like text, seed {s}", web_like(vectors.text, seed=s)) for s in range(seeds)]
    for name, text in variants:
        lines += ["", f"## With {name}", "", *print_rows(data, text_rows(data, vectors, text))]
        for heading, part in parts:
            lines += ["", f"### {heading}", "", *part(data, vectors, text)]
    return lines


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--every", default=1, show_default=True, help="Use every so many-th photo only.")
@click.option("--seeds", default=2, show_default=True, help="Web-like variants to judge.")
@click.option("--write", type=click.Path(path_type=Path), help="Keep the page as this file.")
def main(folder: Path, every: int, seeds: int, write: Path | None) -> None:
    """Judge label quality on COCO-Web in FOLDER, by method."""
    started = time.time()
    data = read_coco_web(folder, every=every)
    lines = page(data, load_vectors(data), seeds)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    head = [
        "# Label quality on COCO-Web",
        "",
        f"{len(data.images)} photos, {len(data.class_names)} classes, "
        f"{1 - data.clean.mean():.1%} of the web labels wrong. EfficientNet-Lite0 features, MiniLM "
        "text, WordNet descriptions. Right: all in-set photos / those of ambiguous queries.",
        "Eq. 8 takes p_c of the photos it was trained on, as in the paper.",
        f"Made by `make labels` at {commit or 'an unknown commit'} in "
        f"{(time.time() - started) / 60:.0f} min on {platform.machine()}, "
        f"{os.cpu_count()} cores.",
        "",
        "## Without text",
        "",
    ]
    text = "\n".join([*head, *lines, ""])
    click.echo(text)
    if write:
        write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
