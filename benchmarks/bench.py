"""Measure vsgraph beside the alternatives and write docs/performance.md.

``python benchmarks/bench.py`` runs everything (an hour or two on two cores), each measurement
alone in a process of its own, one after the other, and keeps each result in
``benchmarks/results.json`` as it comes: started again, it goes on. ``--only PART`` repeats a part.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from made_up_crawl import write_crawl
from page import write_page
from real_features import grown_features
from vsgraph.method.estimate import flops

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SCRATCH = Path(os.environ.get("VSGRAPH_BENCH", Path.home() / ".cache" / "vsgraph-bench"))
LONGEST = 3000

EXACT = ("vsgraph-exact", "faiss-flat", "sklearn")
NEAR = (
    "vsgraph-approximate", "hnswlib-pca", "faiss-nndescent-pca", "faiss-ivf-pca", "faiss-hnsw-pca",
    "pynndescent-pca",
)  # fmt: skip
SEARCHES = {
    "real 20k": (*EXACT, "naive-dense", *NEAR, "hnswlib"),
    "real 100k": (*EXACT, *NEAR, "hnswlib", "pynndescent"),
    "made-up 500k": ("vsgraph-approximate", "pynndescent", "hnswlib-pca"),
}
READERS = {
    "csv": ("vsgraph", "vsgraph-inspect", "pandas"),
    "jsonl": ("vsgraph", "pandas"),
    "parquet": ("vsgraph", "pandas"),
    "folder": ("vsgraph", "datasets"),
    "shards": ("vsgraph", "webdataset"),
    "coco": ("vsgraph", "pycocotools"),
    "webvision": ("vsgraph",),
    "nus-wide": ("vsgraph",),
}
PHOTO_METHODS = (
    "plain", "plain, 2 workers", "plain, huge pages", "torch fp32", "onnxruntime fp32",
    "openvino fp32", "openvino int8", "decode, Pillow", "decode, simplejpeg",
)  # fmt: skip
TEXT_METHODS = (
    "sentence-transformers", "torch fp32", "onnxruntime fp32", "openvino fp32", "openvino int8",
)  # fmt: skip
TRAININGS = {
    "load": ("plain", "plain, 2 workers", "timm, 2 workers", "vsgraph"),
    "train": ("plain", "plain, 2 workers", "vsgraph"),
}
COCO_WEB = Path(os.environ.get("VSGRAPH_COCO_WEB", HERE.parents[1] / "shared/data/coco-web"))
CURVES = {
    "N": [(n, 512, 100, ()) for n in (12_500, 25_000, 50_000, 100_000, 200_000)],
    "d": [(50_000, d, 100, ()) for d in (128, 256, 512, 1024, 2048)],
    "C": [(50_000, 512, c, ()) for c in (25, 50, 100, 200, 400)],
    "k": [(50_000, 512, 100, (f"n_neighbors={k}",)) for k in (5, 10, 20)],
    "m": [(50_000, 512, 100, (f"anchors_per_class={m}",)) for m in (10, 50, 200)],
}


def child(script: str, *arguments: object) -> dict[str, Any]:
    """Run a script of this folder in a process of its own and return what it prints."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    if "plain, huge pages" in arguments:
        environment["THP_MEM_ALLOC_ENABLE"] = "1"
    if any(str(one).startswith("timm") for one in arguments):
        environment["PYTHONPATH"] = str(timm_folder())
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LONGEST} s"}
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(ran.stdout.strip().splitlines()[-1])


class Book:
    """Results by name, written as they come."""

    def __init__(self, only: str) -> None:
        self.results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self.only = only

    def measure(self, name: str, script: str, *arguments: object) -> None:
        """Measure what is not there yet, or what was asked for again."""
        if self.only and not name.startswith(self.only):
            return
        if name in self.results and not self.only:
            return
        click.echo(f"{name} ...", nl=False)
        found = child(script, *arguments) | {"cpu": processor()}
        click.echo(f" {json.dumps(found)[:300]}")
        self.results |= json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self.results[name] = found
        RESULTS.write_text(json.dumps(self.results, indent=1) + "\n")

    def wants(self, name: str) -> bool:
        """Return whether anything of a part is still to be measured."""
        return not self.only or name.startswith(self.only) or self.only.startswith(name)


def processor() -> str:
    """Name the processor, and the parts of it that matter for speed."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    told = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    flags = [flag for flag in ("avx2", "avx512f", "amx_tile") if flag in told.get("flags", "")]
    return " ".join([told.get("model name", platform.processor()), *flags])


def machine() -> dict[str, Any]:
    """Say what this ran on."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_gb": memory,
        "gflops": flops() / 1e9,
    }


def features_of(name: str) -> Path:
    """Return the features of a data set, made if they are not there yet."""
    if name == "made-up 500k":
        return crawl(500_000, 2048, 500) / "features.npy"
    n_rows = int(name.split()[1].removesuffix("k")) * 1000
    path = SCRATCH / f"real-{n_rows}.npy"
    if not path.exists():
        np.save(path, grown_features(n_rows))
    return path


def crawl(n_images: int, n_dims: int, n_classes: int, *, with_cnn: bool = True) -> Path:
    """Return a made-up crawl, made if it is not there yet."""
    folder = SCRATCH / f"crawl-{n_images}-{n_dims}-{n_classes}"
    return write_crawl(
        folder, n_images=n_images, n_dims=n_dims, n_classes=n_classes, with_cnn=with_cnn
    )


def measure_searches(book: Book) -> None:
    """Measure the search for neighbors, ours and others."""
    for name, methods in SEARCHES.items():
        if book.wants(f"search {name}"):
            path = features_of(name)
            for method in methods:
                book.measure(f"search {name} {method}", "searches.py", method, path)


def measure_readers(book: Book) -> None:
    """Measure the readers of crawls, ours and others."""
    for kind, readers in READERS.items():
        for who in readers:
            book.measure(f"reader {kind} {who}", "readers.py", who, kind, SCRATCH)


def measure_curves(book: Book) -> None:
    """Measure whole corrections as one number grows."""
    for axis, points in CURVES.items():
        if book.wants(f"curve {axis}"):
            for n, d, c, changes in points:
                name = f"curve {axis} {n} {d} {c} {' '.join(changes)}".strip()
                book.measure(name, "pipeline.py", crawl(n, d, c), *changes)


def measure_networks(book: Book) -> None:
    """Measure the solver beside the Adam loop."""
    if book.wants("network"):
        small, large = crawl(50_000, 512, 100), crawl(500_000, 2048, 500)
        book.measure("network 50k, 5000", "networks.py", small, 5000)
        book.measure("network 50k, 50000", "networks.py", small, 50_000)
        book.measure("network 500k, 1000", "networks.py", large, 1000)


def measure_whole(book: Book) -> None:
    """Measure whole corrections at the paper's sizes."""
    if book.wants("whole 500k"):
        where = crawl(500_000, 2048, 500)
        book.measure("whole 500k", "pipeline.py", where, "anchors_per_class=10")
    if book.wants("whole 2400k"):
        where = crawl(2_400_000, 2048, 1000, with_cnn=False)
        book.measure("whole 2400k", "pipeline.py", where, "anchors_per_class=10")


def measure_growth(book: Book) -> None:
    """Measure a correction after the crawl has grown by one percent."""
    if book.wants("growth 500k"):
        where = crawl(500_000, 2048, 500)
        book.measure("growth 500k", "growth.py", "vectors", where, SCRATCH)
    if (COCO_WEB / "metadata.jsonl").exists():
        for n in (8631, 20_000, 60_000):
            book.measure(f"growth photos {n}", "growth.py", "photos", SCRATCH / "scale-out",
                         "--images", n)  # fmt: skip


def measure_scale_out(book: Book) -> None:
    """Measure two workers of a cluster beside two threads, where COCO-Web is there."""
    book.measure("scale-out vectors", "scale_out.py", "vectors", SCRATCH)
    if (COCO_WEB / "metadata.jsonl").exists():
        book.measure("scale-out photos", "scale_out.py", "photos", SCRATCH / "scale-out")


def large_photos() -> Path:
    """Return photos of a size that the web has, made by enlarging small ones."""
    from PIL import Image

    folder = SCRATCH / "photos-500"
    if not folder.exists():
        new = folder.with_suffix(".new")
        new.mkdir(parents=True, exist_ok=True)
        for path in sorted((COCO_WEB / "images").glob("*.jpg"))[::8]:
            with Image.open(path) as image:
                large = image.convert("RGB").resize((500, 375), Image.Resampling.BICUBIC)
            large.save(new / path.name, quality=90)
        new.rename(folder)
    return folder


def measure_encoders(book: Book) -> None:
    """Measure encoders end to end, where COCO-Web is there."""
    if not (COCO_WEB / "metadata.jsonl").exists() or not book.wants("encode"):
        return
    for name, folder in (("192", COCO_WEB / "images"), ("500", large_photos())):
        for method in PHOTO_METHODS:
            book.measure(f"encode photos {name} {method}", "encoding.py", "photos", method, folder)
    for method in TEXT_METHODS:
        book.measure(f"encode texts {method}", "encoding.py", "texts", method, COCO_WEB)


def timm_folder() -> Path:
    """Return timm and torchvision beside the environment: installed in it, they break others."""
    folder = SCRATCH / "timm"
    if not folder.exists():
        target = ["--target", str(folder), "timm>=1.0", "torchvision==0.28.0"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *target]
        subprocess.run(command, check=True)
    return folder


def measure_training(book: Book) -> None:
    """Measure loading and training, where COCO-Web is there."""
    if not (COCO_WEB / "metadata.jsonl").exists() or not book.wants("training"):
        return
    for kind, methods in TRAININGS.items():
        for method in methods:
            name = f"training {kind} {method}"
            book.measure(name, "training_speed.py", kind, method, large_photos())


@click.command()
@click.option("--only", default="", help="Measure again what starts with this name.")
@click.option("--page-only", is_flag=True, help="Only write the page from the results.")
def main(only: str, *, page_only: bool) -> None:
    """Measure, then write the page."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    book = Book(only)
    book.results.setdefault("machine", machine())
    if not page_only:
        measure_readers(book)
        measure_searches(book)
        measure_curves(book)
        measure_whole(book)
        measure_growth(book)
        measure_scale_out(book)
        measure_networks(book)
        measure_encoders(book)
        measure_training(book)
    write_page(book.results, HERE.parent / "docs" / "performance.md")


if __name__ == "__main__":
    main()
