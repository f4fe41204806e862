"""A crawl that grows by one percent: ``growth.py vectors CRAWL FOLDER`` or ``photos FOLDER``.

Corrects all of a crawl from nothing, and 99 % of it followed by all of it in the same run. Prints a
line of JSON: the seconds of each (of every stage, too), and the share of equal decisions.
``vectors`` is a made-up crawl of which nothing is encoded. ``photos`` are those of COCO-Web (and,
beyond 8,631, crops of them), from files to labels and report.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import vsgraph
from made_up_crawl import read_crawl
from memory import Memory
from scale_out import write_photos

NAMES = ("features", "texts", "meanings", "web_labels")
NEW = 100  # one image in so many is new


def write_vectors(given: dict[str, np.ndarray], rows: np.ndarray, folder: Path) -> Path:
    """Write some rows of a crawl of vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        np.save(folder / f"{name}.npy", given[name] if name == "meanings" else given[name][rows])
    return folder / "web_labels.npy"


def write_table(lines: list[str], rows: np.ndarray, table: Path) -> Path:
    """Write some rows of a crawl of photos."""
    table.write_text("\n".join(lines[row] for row in rows) + "\n", encoding="utf-8")
    return table


def vector_options(folder: Path) -> dict[str, Any]:
    """Return how a crawl of vectors is corrected."""
    files = {"features": "features", "text_embeddings": "texts", "label_embeddings": "meanings"}
    choices = vsgraph.Choices(**{name: folder / f"{file}.npy" for name, file in files.items()})
    classes = list(map(str, range(len(np.load(folder / "meanings.npy")))))
    return {"choices": choices, "classes": classes, "with_report": False, "anchors_per_class": 10}


def correct(crawl: Path, out: Path, options: dict[str, Any]) -> tuple[float, float, vsgraph.Run]:
    """Correct a crawl; return seconds, CPU seconds and the run."""
    started, busy = time.perf_counter(), time.process_time()
    run = vsgraph.run(
        crawl, out, anyway=True, tell=lambda line: print(line, file=sys.stderr), **options
    )
    return time.perf_counter() - started, time.process_time() - busy, run


def measure(
    write: Callable[[np.ndarray], Path], n_images: int, folder: Path, options: Callable[[], Any]
) -> dict[str, Any]:
    """Correct a whole crawl from nothing, then the crawl before it grew, and after.

    The crawl before it grew takes its vectors from the run beside it, which is then moved away.
    """
    every, memory = np.arange(n_images), Memory()
    beside, out = folder / "runs" / "fresh", folder / "runs" / "grown"
    nothing, cpu_nothing, fresh = correct(write(every), beside, options())
    stages = {"from nothing": stage_seconds(fresh)}
    labels, decisions = fresh.found.final_labels.copy(), fresh.found.decisions.copy()
    crawl = write(every[every % NEW != NEW - 1])
    correct(crawl, out, options())
    beside.rename(folder / "moved")
    update, cpu, grown = correct(write(every), out, options())
    same = (grown.found.final_labels == labels) & (grown.found.decisions == decisions)
    return {
        "n_images": n_images, "seconds": update,
        "seconds_from_nothing": nothing, "share": update / nothing,
        "cpu_seconds": cpu, "cpu_seconds_from_nothing": cpu_nothing,
        "same_decisions": float(same.mean()),
        "stages": {"update": stage_seconds(grown), **stages},
        "graph": grown.record["stages"]["graph"], "memory_gb": memory.held,
    }  # fmt: skip


def stage_seconds(run: vsgraph.Run) -> dict[str, float]:
    """Return how long each stage of a run took."""
    return {name: stage["seconds"] for name, stage in run.record["stages"].items()}


@click.command()
@click.argument("kind", type=click.Choice(["vectors", "photos"]))
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--images", default=20_000, help="Photos.")
def main(kind: str, places: tuple[Path, ...], *, images: int) -> None:
    """Run and report."""
    folder = places[-1].with_name(f"{places[-1].name}-growth")  # runs in a crawl are not trusted
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "vectors":
        given, now = read_crawl(places[0]), folder / "now"
        found = measure(
            lambda rows: write_vectors(given, rows, now), len(given["features"]), folder,
            lambda: vector_options(now),
        )  # fmt: skip
    else:
        lines = write_photos(places[0], images).read_text(encoding="utf-8").splitlines()
        table = places[0] / "growing.jsonl"
        found = measure(lambda rows: write_table(lines, rows, table), images, folder, dict)
    print(json.dumps(found))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
