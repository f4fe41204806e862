"""What a cluster costs beside one machine: ``scale_out.py photos FOLDER`` or ``vectors FOLDER``.

``photos``: 20,000 photos made from COCO-Web, from files to labels. ``vectors``: a made-up crawl of
features and texts, from arrays to labels. Each is done once by the threads of this process, one per
core, and once by as many Ray workers of one core each. Prints a line of JSON with both: seconds and
processor seconds by stage, memory of the driver and of the largest worker without mapped files,
bytes that were read and written by calls (mapped files are not counted), and the files that workers
left for each other at most. `overhead` is how much longer the cluster took, from the first stage.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from PIL import Image, ImageOps

from made_up_crawl import write_crawl

COCO_WEB = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[2] / "shared" / "data" / "coco-web")
)
TICKS = os.sysconf("SC_CLK_TCK")
NODE = {"num_cpus": 1, "object_store_memory": 10**8}


def write_photos(folder: Path, n_images: int) -> Path:
    """Write photos of COCO-Web, then crops of them, every other one mirrored; all titles differ."""
    table = folder / f"photos-{n_images}.jsonl"
    if table.exists():
        return table
    (folder / "images").mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in (COCO_WEB / "metadata.jsonl").open(encoding="utf-8")]
    lines = []
    for number in range(n_images):
        turn, record = number // len(records), records[number % len(records)]
        path = folder / "images" / f"{turn}-{Path(record['file']).name}"
        if turn == 0:
            shutil.copyfile(COCO_WEB / record["file"], path)
        elif not path.exists():
            with Image.open(COCO_WEB / record["file"]) as photo:
                crop = random_crop(photo.convert("RGB"), np.random.default_rng(number))
                (ImageOps.mirror(crop) if turn % 2 else crop).save(path, quality=90)
        title = f"{record['title']} ({turn})" if turn else record["title"]
        lines.append(json.dumps({"image": f"images/{path.name}", "label": record["web_label"],
                                 "title": title}))  # fmt: skip
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return table


def random_crop(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return 70 to 95 % of each side of a photo, so that no two of its crops are the same."""
    sides = [round(share * side) for share, side in zip(random.uniform(0.7, 0.95, 2), photo.size,
                                                        strict=True)]  # fmt: skip
    left, top = (int(random.integers(side - own + 1)) for side, own in
                 zip(photo.size, sides, strict=True))  # fmt: skip
    return photo.crop((left, top, left + sides[0], top + sides[1]))


class Watch:
    """Watches processes: processor time and calls in all, memory of each at most."""

    def __init__(self, driver: int) -> None:
        self.driver = driver
        self.used: dict[int, tuple[float, int, int]] = {}  # of each process
        self.memory: dict[int, int] = {}
        self.parts, self.folder = 0, Path()
        self.is_over = False
        threading.Thread(target=self.look, daemon=True).start()

    def look(self) -> None:
        """Look at the driver and at workers a few times per second."""
        while not self.is_over:
            self.look_once()
            files = self.folder.glob("parts/**/*") if self.folder.name else ()
            self.parts = max(self.parts, sum(_size(path) for path in files))
            time.sleep(0.2)

    def look_once(self) -> None:
        """Look at the driver and at workers."""
        for place in Path("/proc").glob("[0-9]*"):
            try:
                is_worker = (place / "cmdline").read_bytes().startswith(b"ray::")
                if not is_worker and int(place.name) != self.driver:
                    continue
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                calls = dict(line.split(": ") for line in (place / "io").read_text().splitlines())
                status = (place / "status").read_text()
            except (OSError, ValueError):  # it has ended
                continue
            own = int(place.name)
            seconds = (int(fields[11]) + int(fields[12])) / TICKS
            self.used[own] = seconds, int(calls["rchar"]), int(calls["wchar"])
            held = int(status.partition("RssAnon:")[2].split()[0]) * 1024
            self.memory[own] = max(held, self.memory.get(own, 0))

    def totals(self) -> tuple[float, int, int]:
        """Return processor seconds, bytes read and bytes written until now."""
        self.look_once()
        seconds, read, written = zip(*self.used.values(), strict=True)
        return sum(seconds), sum(read), sum(written)


def _size(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0


def measure(kind: str, where: Path, out: Path, n_workers: int) -> dict[str, Any]:
    """Correct a crawl in a process of its own, and watch it."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, __file__, "correct", kind, str(where), str(out), str(n_workers)]
    stages: dict[str, dict[str, float]] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        watch = Watch(driver.pid)
        watch.folder = out
        last, started, before = "start", time.monotonic(), (0.0, 0, 0)
        for line in driver.stdout or ():
            now = watch.totals()
            spent = [round(b - a, 2) for a, b in zip(before, now, strict=True)]
            stages[last] = {"seconds": round(time.monotonic() - started, 1), "CPU s": spent[0],
                            "MB read": spent[1] / 1e6, "MB written": spent[2] / 1e6}  # fmt: skip
            last, started, before = line.strip(), time.monotonic(), now
        watch.is_over = True
    workers = [held for own, held in watch.memory.items() if own != driver.pid]
    return {
        "kind": kind, "workers": n_workers, "stages": stages,
        "seconds": round(sum(s["seconds"] for n, s in stages.items() if n != "start"), 1),
        "CPU s": round(sum(s["CPU s"] for n, s in stages.items() if n != "start"), 1),
        "driver MB": watch.memory[driver.pid] // 10**6,
        "worker MB": max(workers, default=0) // 10**6, "parts MB": watch.parts // 10**6,
    }  # fmt: skip


def correct(kind: str, where: Path, out: Path, n_workers: int) -> None:
    """Correct a crawl here or by workers, printing the name of each stage as it starts."""
    import vsgraph

    cluster = None
    if n_workers:
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        for _ in range(n_workers - 1):
            cluster.add_node(**NODE)
    options: dict[str, Any] = {"with_report": False}
    if kind == "vectors":
        names = {"features": "features", "text_embeddings": "texts", "label_embeddings": "meanings"}
        options |= {option: where / f"{name}.npy" for option, name in names.items()}
        where /= "web_labels.npy"

    def tell(line: str) -> None:
        if line.endswith(" ..."):
            print(line.removesuffix(" ..."), flush=True)

    vsgraph.run(where, out, tell=tell, cluster=cluster.address if cluster else None, **options)
    print("end", flush=True)
    if cluster:
        cluster.shutdown()


@click.command()
@click.argument("kind", type=click.Choice(["photos", "vectors", "correct"]))
@click.argument("rest", nargs=-1)
@click.option("--images", default=20_000)
@click.option("--dims", default=512)
def main(kind: str, rest: tuple[str, ...], *, images: int, dims: int) -> None:
    """Measure one machine beside a cluster of it."""
    if kind == "correct":
        correct(rest[0], Path(rest[1]), Path(rest[2]), int(rest[3]))
        return
    folder = Path(rest[0])
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "photos":
        where = write_photos(folder, images)
    else:
        size = {"n_images": images, "n_dims": dims, "n_classes": 100, "with_cnn": False}
        where = write_crawl(folder / f"vectors-{images}-{dims}", **size)
    here, there = (
        measure(kind, where, folder / f"run-{kind}-{n_workers}" / "run", n_workers)
        for n_workers in (0, len(os.sched_getaffinity(0)))
    )
    overhead = there["seconds"] / here["seconds"] - 1
    print(json.dumps({"images": images, "overhead": overhead, "here": here, "there": there}))


if __name__ == "__main__":
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    main()
