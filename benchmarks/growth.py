"""A crawl that grows by one percent: ``growth.py CRAWL FOLDER``, one line of JSON.

Corrects 99 % of a made-up crawl, then all of it in the same run, then all of it from nothing.
Prints the seconds of each (of every stage, too), and the share of equal decisions. Nothing is
encoded: `with_encoding` adds what `encoding.py` measured for as many photos and texts.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import vsgraph
from made_up_crawl import read_crawl
from memory import Memory

NAMES = ("features", "texts", "meanings", "web_labels")
TEXTS = 2 / 3  # of the images have one
RATES = ("encode photos 192 openvino int8", "encode texts openvino fp32")


def write_part(given: dict[str, np.ndarray], n_images: int, folder: Path) -> None:
    """Write the first rows of a crawl."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        rows = given[name] if name == "meanings" else given[name][:n_images]
        np.save(folder / f"{name}.npy", rows)


def correct(folder: Path, out: Path) -> tuple[float, float, vsgraph.Run]:
    """Correct the crawl in a folder; return seconds, CPU seconds and the run."""
    choices = vsgraph.Choices(
        features=folder / "features.npy", text_embeddings=folder / "texts.npy",
        label_embeddings=folder / "meanings.npy",
    )  # fmt: skip
    classes = list(map(str, range(len(np.load(folder / "meanings.npy")))))
    started, busy = time.perf_counter(), time.process_time()
    run = vsgraph.run(
        folder / "web_labels.npy", out, choices=choices, classes=classes, with_report=False,
        anchors_per_class=10, anyway=True, tell=lambda line: print(line, file=sys.stderr),
    )  # fmt: skip
    return time.perf_counter() - started, time.process_time() - busy, run


def encoding_seconds(n_images: int) -> float | None:
    """Return how long so many photos and texts would take, by what was measured before."""
    path = Path(__file__).parent / "results.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    rates = [results.get(name, {}).get("per_second") for name in RATES]
    if None in rates:
        return None
    return n_images / rates[0] + TEXTS * n_images / rates[1]


def main(crawl: str, where: str) -> None:
    """Run and report."""
    given, folder = read_crawl(Path(crawl)), Path(where)
    shutil.rmtree(folder, ignore_errors=True)
    n_images = len(given["features"])
    n_before = n_images - n_images // 100
    write_part(given, n_before, folder / "now")
    memory = Memory()
    before, _, _ = correct(folder / "now", folder / "run")
    write_part(given, n_images, folder / "now")
    update, cpu, grown = correct(folder / "now", folder / "run")
    nothing, cpu_nothing, fresh = correct(folder / "now", folder / "fresh")
    same = grown.found.final_labels == fresh.found.final_labels
    same &= grown.found.decisions == fresh.found.decisions
    encoding = encoding_seconds(n_images)
    stages = {
        name: {n: stage["seconds"] for n, stage in run.record["stages"].items()}
        for name, run in (("update", grown), ("from nothing", fresh))
    }
    print(json.dumps({
        "n_images": n_images, "seconds_before": before, "seconds": update,
        "seconds_from_nothing": nothing, "share": update / nothing,
        "cpu_seconds": cpu, "cpu_seconds_from_nothing": cpu_nothing,
        "share_with_encoding": encoding and (update + encoding / 100) / (nothing + encoding),
        "encoding_seconds": encoding, "same_decisions": float(same.mean()), "stages": stages,
        "graph": grown.record["stages"]["graph"], "memory_gb": memory.held,
    }))  # fmt: skip
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
