"""A whole correction of a crawl on disk, each stage timed: ``pipeline.py CRAWL [NAME=VALUE ...]``.

Prints a line of JSON: seconds by stage, memory held (with and without mapped files), accuracy.
"""

import dataclasses
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import vsgraph
from made_up_crawl import read_crawl
from memory import Memory
from vsgraph.method import algorithm

COLUMNS = {"smoothing": "text", "anchors": "text", "scores": "labels", "decisions": "labels"}


def timed(name: str, work: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    """Add what a function takes to its stage."""

    def call(*args: object, **options: object) -> object:
        started = time.perf_counter()
        result = work(*args, **options)
        seconds[name] = seconds.get(name, 0) + time.perf_counter() - started
        return result

    return call


def main(folder: str, *changes: str) -> None:
    """Run and report."""
    module = importlib.import_module("vsgraph.method.correct")
    seconds: dict[str, float] = {}
    module.check_inputs = timed("reading", module.check_inputs, seconds)
    for name, stage in algorithm.STAGE.items():
        work = timed(COLUMNS.get(name, name), stage.work, seconds)
        algorithm.STAGE[name] = dataclasses.replace(stage, work=work)
    given = read_crawl(Path(folder))
    settings = vsgraph.Settings.from_dict(
        {name: json.loads(value) for name, value in (change.split("=") for change in changes)}
    )
    few = np.arange(20).repeat(10), np.eye(20, dtype=np.float32).repeat(10, axis=0)
    vsgraph.nearest_neighbors(np.random.default_rng(0).normal(size=(9000, 32)), n_neighbors=5)
    module.correct(few[1], few[1], np.eye(20), few[0], settings=settings)  # compiled, warm
    seconds.clear()
    memory, started, busy = Memory(), time.perf_counter(), time.process_time()
    result = module.correct(
        given["features"], given["texts"], given["meanings"], given["web_labels"],
        given.get("cnn_probs"), settings=settings,
    )  # fmt: skip
    total, cpu = time.perf_counter() - started, time.process_time() - busy
    n_images, n_dims = given["features"].shape
    left = result.final_labels >= 0
    print(json.dumps({
        "n_images": n_images, "n_dims": n_dims, "n_classes": len(given["meanings"]),
        "changes": list(changes), "seconds": total, "cpu_seconds": cpu, "stages": seconds,
        "memory_gb": memory.held, "with_files_gb": memory.with_files,
        "recall": result.graph_recall, "counts": result.counts,
        "right_before": float((given["web_labels"] == given["truth"]).mean()),
        "left": float(left.mean()),
        "right_after": float((result.final_labels == given["truth"])[left].mean()),
        "expected_seconds": sum(vsgraph.estimate(
            settings, n_images=n_images, n_dims=n_dims, n_classes=len(given["meanings"]),
            n_text_dims=given["texts"].shape[1], with_cnn="cnn_probs" in given,
        ).seconds.values()),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
