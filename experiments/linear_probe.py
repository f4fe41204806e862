"""The linear probe in place of a CNN: ``python experiments/linear_probe.py FOLDER``.

On COCO-Web in FOLDER: labels right with no p_c, with the experiments' own cross-validated
classifier and with ``vsgraph.linear_probe``. With ``--large N``: time and memory on N made-up
images, 1280 features in fp16, 500 classes.
"""

import resource
import time
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import vsgraph
from baselines import web_classifier
from coco_web_data import CocoWeb, read_coco_web, web_like
from encode import describe, photo_features, text_vectors

Array = NDArray[np.floating]
Probs = Array | vsgraph.TopScores | None


def surprise(probs: Array | vsgraph.TopScores, labels: NDArray[np.intp]) -> float:
    """Return how badly held-out web labels are predicted: their mean negative log probability."""
    own = np.asarray(probs)[np.arange(len(labels)), labels]
    return -float(np.log(np.maximum(own, 1e-12)).mean())


def judge(folder: Path, *, folds: tuple[int, ...], reference: bool) -> None:
    """Print a table: what p_c, how good it is, and labels right with it."""
    data = read_coco_web(folder)
    features, labels = photo_features(data.images), data.web_labels
    text, meaning = text_vectors(data.texts), text_vectors(describe(data.wnids))
    graph = vsgraph.visual_graph(features, n_neighbors=5)
    ways: list[tuple[str, Probs, float]] = [("none", None, 0.0)]
    if reference:
        started = time.perf_counter()
        unit = features / np.linalg.norm(features, axis=1, keepdims=True)
        probs = web_classifier(unit, labels)
        ways.append(("experiments' classifier", probs, time.perf_counter() - started))
    for n_folds in folds:
        for per_class in (None, 100):
            started = time.perf_counter()
            probe = vsgraph.linear_probe(
                features, labels, n_classes=len(meaning), n_folds=n_folds, per_class=per_class
            )
            name = f"probe, {n_folds} folds" + (f", {per_class} a class" if per_class else "")
            ways.append((name, probe, time.perf_counter() - started))
    print("| p_c | seconds | held-out surprise | captions | web-like, seed 0 | seed 1 |")
    print("|---|---|---|---|---|---|")
    for name, way, took in ways:
        said = f"{surprise(way, labels):.3f}" if way is not None else "-"
        cells = [
            right(data, vsgraph.correct(features, t, meaning, labels, way, graph=graph))
            for t in (text, web_like(text, seed=0), web_like(text, seed=1))
        ]
        print(f"| {name} | {took:.1f} | {said} | {' | '.join(cells)} |", flush=True)


def right(data: CocoWeb, made: vsgraph.Correction) -> str:
    """Return likeliest labels that are right: in-set photos / those of ambiguous queries."""
    everywhere, ambiguous = data.right(made.final_probs.argmax(axis=1))
    return f"{100 * everywhere:.2f} / {100 * ambiguous:.2f}"


def measure(n_images: int) -> None:
    """Print time and memory on made-up images."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(500, 1280)).astype(np.float32)
    labels = random.integers(500, size=n_images)
    features = np.empty((n_images, 1280), np.float16)
    for start in range(0, n_images, 10_000):
        rows = slice(start, start + 10_000)
        block = centers[labels[rows]] + 4 * random.normal(size=(len(labels[rows]), 1280))
        features[rows] = np.maximum(block, 0)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    made = vsgraph.linear_probe(features, labels, n_classes=500)
    took = time.perf_counter() - started
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
    agree = (made.argmax() == labels).mean()
    print(f"{n_images} images: {took:.0f} s, {more / 2**20:.2f} GB more, {agree:.1%} agree")


@click.command()
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--folds", multiple=True, type=int, default=(3, 5), show_default=True)
@click.option("--reference/--no-reference", default=True, help="Judge the other classifier too.")
@click.option("--large", type=int, help="Measure on so many made-up images.")
def main(
    folder: Path | None, folds: tuple[int, ...], large: int | None, *, reference: bool
) -> None:
    """Judge the linear probe on COCO-Web in FOLDER, or measure it."""
    if folder:
        judge(folder, folds=folds, reference=reference)
    if large:
        measure(large)


if __name__ == "__main__":
    main()
