"""Measure the review on a made-up run: ``python benchmarks/review_speed.py FOLDER``.

The run has the files that ``vsgraph correct`` leaves, filled with made-up numbers. The server is
started as a user would start it; what is timed is its start, and its answers to requests.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from vsgraph.crawls import save_crawl
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.vectors import FORMAT
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import write_meanings
from vsgraph.method.algorithm import AnchorChoice, Graph
from vsgraph.method.scoring import ImageScores
from vsgraph.result.parts import Anchors, Decisions
from vsgraph.result.scores import TopScores
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder, key_of, remember_path
from vsgraph.runs.stage_files import FILES, save_result
from vsgraph.settings import Settings

N_NEAR, N_SUB, TEXT_DIMS, KEPT = 10, 4, 384, 32
WORDS = ("red", "wild", "market", "festival", "garden", "metal", "portrait", "winter", "toy", "old")


def make_run(folder: Path, n_images: int, n_classes: int) -> None:
    """Write a made-up run: each class has four kinds of images that look alike."""
    random = np.random.default_rng(0)
    labels = np.sort(random.integers(n_classes, size=n_images))
    kinds = random.integers(N_SUB, size=n_images)
    (folder / "crawl").mkdir(parents=True)
    names = tuple(f"class {number}" for number in range(n_classes))
    titles = [
        f"{WORDS[(c + k) % 10]} {WORDS[(3 * k) % 10]} class {c}"
        for c, k in zip(labels.tolist(), kinds.tolist(), strict=True)
    ]
    table = pa.table(
        {
            "image": [f"images/{row}.jpg" for row in range(n_images)],
            "web_labels": pa.array(labels, pa.int32()),
            "title": titles,
            "source": [("google", "flickr")[row % 2] for row in range(n_images)],
        }
    )
    crawl = Crawl("a made-up table", folder / "crawl", table, names, text_fields=("title",))
    run = RunFolder.open(folder / "run", create=True)
    stages = {}

    def stage(name: str) -> Path:
        stages[name] = {"key": key_of(name), "seconds": 0}
        path = run.stage_folder(name, key_of(name))
        path.mkdir(parents=True)
        return path

    save_crawl(crawl, stage("crawl"))
    _vectors(stage("pictures"), n_images, 64, random)
    _vectors(stage("texts"), n_images, TEXT_DIMS, random)
    write_meanings(
        stage("meanings") / "meanings.csv", [Meaning(n, None, n, chosen=True) for n in names]
    )
    FILES["graph"].save(Graph(_graph(labels, kinds, random), 1.0), stage("graph"))
    match = csr_array((np.ones(n_images), labels, np.arange(n_images + 1)), (n_images, n_classes))
    anchors = Anchors(np.arange(n_classes), np.arange(n_classes), np.ones(n_classes))
    FILES["anchors"].save(AnchorChoice(match, anchors), stage("anchors"))
    save_result({"anchors": anchors}, stage("network"))
    right = np.clip(random.beta(4, 1, n_images) - 0.5 * (kinds == 3), 0.01, 0.99)
    FILES["scores"].save(_scores(labels, right, n_classes, random), stage("scores"))
    reject = right < 0.4
    decided = Decisions(
        np.where(reject, -1, labels),
        (2 * reject).astype(np.uint8),
        np.where(reject, 5, 2).astype(np.uint8),
    )
    FILES["decisions"].save(decided, stage("decisions"))
    for name, record in stages.items():
        path = run.stage_folder(name, record["key"]) / "stage.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    counts = {
        "keep": int((~reject).sum()),
        "relabel": 0,
        "reject": int(reject.sum()),
        "unreadable": 0,
    }
    stages["decisions"]["counts"] = counts
    choices = Choices().to_dict()
    run.asked = {
        "crawl": {"name": "made up", **remember_path(folder / "crawl", run.path)},
        "reading": {},
        "settings": Settings().__dict__,
        "choices": choices,
        "paths": [],
        "again": {},
    }
    run.finish(stages, root=remember_path(folder / "crawl", run.path))


def _vectors(folder: Path, n_images: int, n_dims: int, random: np.random.Generator) -> None:
    """Write vectors in blocks, with keys of their content."""
    array = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float16, (n_images, n_dims))
    for start in range(0, n_images, 50_000):
        stop = min(n_images, start + 50_000)
        array[start:stop] = random.standard_normal((stop - start, n_dims), np.float32)
    np.save(folder / "keys.npy", random.integers(1, 256, (n_images, 16)).astype(np.uint8))
    record = {"format": FORMAT, "encoder": "made up", "checksums": {}, "problems": {}}
    (folder / "record.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "problems.jsonl").write_text("", encoding="utf-8")


def _graph(labels: np.ndarray, kinds: np.ndarray, random: np.random.Generator) -> csr_array:
    """Link each image to others of its class and kind."""
    n_images = len(labels)
    order = np.lexsort((kinds, labels))
    place = np.empty(n_images, np.intp)
    place[order] = np.arange(n_images)
    steps = random.integers(1, 40, (n_images, N_NEAR))
    near = order[np.minimum(place[:, None] + steps, n_images - 1)]
    data = random.uniform(0.4, 0.95, near.size).astype(np.float32)
    starts = np.arange(0, near.size + 1, N_NEAR)
    return csr_array(
        (data, np.sort(near, axis=1).ravel().astype(np.int32), starts), (n_images, n_images)
    )


def _scores(
    labels: np.ndarray, right: np.ndarray, n_classes: int, random: np.random.Generator
) -> ImageScores:
    """Give each image the probability of its label, and small ones of others."""
    n_images = len(labels)
    classes = (labels[:, None] + np.arange(KEPT)) % n_classes
    values = random.uniform(0, 0.02, (n_images, KEPT)).astype(np.float32)
    values[:, 0] = right
    scores = TopScores(classes.astype(np.uint16), values, np.zeros(n_images, np.float32), n_classes)
    fields = dict.fromkeys(
        ("graph_score", "own_nearness", "near_nearness", "sample_nearness"), np.empty(0)
    )
    false = np.zeros(n_images, bool)
    return ImageScores(
        final=scores,
        gnn=scores,
        cnn=None,
        text=None,
        unwanted=np.full(n_images, -1, np.int16),
        unreadable=false,
        silent=false,
        anchored=np.ones(n_classes, bool),
        confusion=None,
        weights={},
        **fields,
    )


def memory(pid: int) -> float:
    """Return the memory that a process holds for itself, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(n) for n in re.findall(r"Private_\w+:\s+(\d+) kB", text)) / 1000


def worked(pid: int) -> float:
    """Return the time that a process has used of a processor, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pid: int) -> None:
    """Wait until a process does nothing in the background any more."""
    before = -1.0
    while worked(pid) > before:
        before = worked(pid)
        time.sleep(2)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--images", default=500_000)
@click.option("--classes", default=500)
def main(folder: Path, *, images: int, classes: int) -> None:
    """Make the run if it is not there, start its review and time it."""
    if not (folder / "run").exists():
        make_run(folder, images, classes)
    state = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    started = time.monotonic()
    command = [sys.executable, "-u", "-m", "vsgraph", "review", str(folder / "run"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=state) as server:
        address = next(line.split()[1] for line in server.stdout if line.startswith("open "))
        base, token = address.split("/?token=")
        cookie = f"vsgraph-{base.rpartition(':')[2]}={token}"

        def ask(path: str, body: dict | None = None) -> tuple[float, bytes]:
            headers = {"cookie": cookie, "origin": base, "content-type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            begun = time.perf_counter()
            request = urllib.request.Request(base + path, data, headers)  # noqa: S310
            with urllib.request.urlopen(request) as reply:  # noqa: S310
                text = reply.read()
            return 1000 * (time.perf_counter() - begun), text

        page = ask("/")[1].decode()
        print(
            f"open to first page: {time.monotonic() - started:.2f} s, "
            f"{worked(server.pid):.2f} s of a processor"
        )
        time.sleep(2)
        settle(server.pid)
        version = re.search(r'data-version="(\w+)"', page)[1]
        paths = {
            "classes": "/?{0}".format,
            "board": lambda i: f"/class/{i % classes}",
            "queue": "/queue?{0}".format,
            "find": lambda i: f"/find?decision=reject&page={i + 1}",
            "words": lambda i: f"/find?words=market&page={i + 1}",
            "why": lambda i: f"/why/{i * 997 % images}",
        }
        for name, path in paths.items():
            before = worked(server.pid)
            times = [ask(path(i))[0] for i in range(20)]
            each = 1000 * (worked(server.pid) - before) / 20
            print(
                f"{name}: median {np.median(times):.0f} ms, slowest {max(times):.0f} ms, "
                f"{each:.0f} ms of a processor"
            )
        times = []
        for i in range(200):
            body = {
                "version": version,
                "batch": f"speed-{os.getpid()}-{i}",
                "what": "reject",
                "rows": [i],
            }
            times.append(ask("/answer", body)[0])
        print(f"answer, on disk: median {np.median(times):.1f} ms, slowest {max(times):.0f} ms")
        before = memory(server.pid)
        for i in range(400):
            ask(f"/class/{i % classes}")
        print(f"memory: {before:.0f} MB before 400 boards, {memory(server.pid):.0f} MB after")
        server.terminate()


if __name__ == "__main__":
    main()
