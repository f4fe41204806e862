"""Time each stage of the core at growing sizes, beside its plain dense form.

``python benchmarks/core.py`` prints a table and writes ``benchmarks/core.json``. Read the
ratios of one run rather than the seconds.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import vsgraph
from vsgraph.checks import unit_rows

CLASSES, DIMS, TEXT_DIMS = 50, 256, 96


def crawl(n: int, seed: int = 0) -> dict[str, Any]:
    """Return clustered vectors of a crawl of n images."""
    random = np.random.default_rng(seed)
    shown = random.integers(CLASSES, size=n)
    wrong = random.uniform(size=n) < 0.3
    meaning = random.normal(size=(CLASSES, TEXT_DIMS)).astype(np.float32)
    centers = np.abs(random.normal(size=(CLASSES, DIMS))).astype(np.float32)
    return {
        "features": centers[shown] + 0.7 * random.normal(size=(n, DIMS)).astype(np.float32),
        "text": meaning[shown] + random.normal(size=(n, TEXT_DIMS)).astype(np.float32),
        "meaning": meaning,
        "web_labels": np.where(wrong, (shown + 1) % CLASSES, shown),
    }


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call takes, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def dense_graph(features: np.ndarray, k: int) -> np.ndarray:
    """Return Eq. 1 the plain way: all cosines at once, sorted whole."""
    unit = unit_rows(features)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    nearest = np.argsort(-cosines, axis=1)[:, :k]
    graph = np.zeros_like(cosines)
    np.put_along_axis(graph, nearest, np.take_along_axis(cosines, nearest, axis=1), axis=1)
    return np.maximum(graph, graph.T)


def measure(n: int) -> dict[str, float]:
    """Return the seconds of each stage, and of its dense form where that fits in memory."""
    given, settings = crawl(n), vsgraph.Settings(anchors_per_class=10)
    features = given["features"]
    took = {"n": float(n)}
    took["graph"], graph = seconds(lambda: vsgraph.visual_graph(features, n_neighbors=5))
    if n <= 20_000:
        took["graph, dense"], _ = seconds(lambda: dense_graph(features, 5))
    operator = vsgraph.propagation_matrix(graph, self_weight=0, form="released")
    took["smoothing"], smoothed = seconds(
        lambda: vsgraph.smooth_text(given["text"], graph, self_weight=0, form="released")
    )
    match = vsgraph.text_match(smoothed, given["meaning"], given["web_labels"])
    anchors = vsgraph.select_anchors(match, per_class=10)
    took["network"], gnn = seconds(
        lambda: vsgraph.label_by_graph(
            features, graph, anchors, given["web_labels"], n_classes=CLASSES, settings=settings
        )
    )
    weights = np.zeros((2 * DIMS, CLASSES), np.float32)
    took["inference"], _ = seconds(lambda: scores(features, operator, weights, settings=settings))
    took["inference, propagating features"], _ = seconds(
        lambda: np.hstack([features, operator @ features]) @ weights
    )
    took["evidence"], _ = seconds(
        lambda: vsgraph.weigh_evidence(
            gnn, None, given["text"], given["meaning"], given["web_labels"]
        )
    )
    return took


@click.command()
@click.option("--sizes", default="5000,10000,20000", show_default=True, help="Numbers of images.")
@click.option("--out", default=Path("benchmarks/core.json"), type=click.Path(path_type=Path))
def main(sizes: str, out: Path) -> None:
    """Measure the core."""
    runs = [measure(int(n)) for n in sizes.split(",")]
    click.echo(f"seconds; {CLASSES} classes, {DIMS} dimensions, {TEXT_DIMS} of text")
    for name in runs[0]:
        cells = "".join(f"{run[name]:>12.6g}" if name in run else f"{'-':>12}" for run in runs)
        click.echo(f"{name:<34}{cells}")
    out.write_text(json.dumps(runs, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
