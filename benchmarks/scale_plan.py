"""What many images would take, by what was measured: ``scale_plan.py PHOTOS.json VECTORS.json``.

The files are what ``scale_out.py photos`` and ``scale_out.py vectors`` printed. Prints two tables:
what each stage costs for a million images, and what crawls of a million to a billion would take.
Pictures, texts and copies are those of the photos' run, the graph is the approximate search among
500,000 rows of 2048 numbers (``make bench``), all else is of the vectors' run; the start of the
workers is part of it. Everything grows with the number of images, but the graph, whose time for
each image is taken to grow with the square root of their number. Memory of the driver is counted,
not measured.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

SIZES = (10**6, 10**8, 10**9)
ENCODED = ("pictures", "measures", "texts")
OF_PICTURES = (*ENCODED, "screening")  # stages that need pictures: those of the photos' run
PICTURE_BYTES, WIDTH, TEXT_WIDTH = 10**5, 1280, 384  # of a photo on the web; of vectors
SKETCH, PROBES = 1024, 10  # bytes of a row that the graph compares; lists that it is compared with
CORES = 160
N_SEARCHED = 500_000
DRIVER_BYTES = {  # of an image; not all at once
    "the crawl's table": 300, "neighbors and their cosines, twice": 80,
    "friends and fans while they are joined": 400, "the graph while it is made symmetric": 320,
}  # fmt: skip


def costs(photos: dict[str, Any], vectors: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return CPU seconds and megabytes written for each image, by stage; the graph at a million."""
    parts: dict[str, dict[str, float]] = {}
    for found, has_pictures in ((photos, True), (vectors, False)):
        for name, spent in found["there"]["stages"].items():
            if name != "start" and (name in OF_PICTURES) == has_pictures:
                parts[name] = {what: spent[what] / found["images"] for what in spent}
    book = json.loads((Path(__file__).parent / "results.json").read_text())
    search = book["search made-up 500k vsgraph-approximate"]["cpu_seconds"] / N_SEARCHED
    parts["graph"]["CPU s"] = search * math.sqrt(10**6 / N_SEARCHED)
    return parts


def said(value: float) -> str:
    """Return a number in three digits or as a whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def main(photos_file: str, vectors_file: str) -> None:
    """Print both tables."""
    photos, vectors = (json.loads(Path(f).read_text()) for f in (photos_file, vectors_file))
    parts = costs(photos, vectors)
    print("| stage | processor hours | GB written |\n|---|---|---|")
    for name, cost in parts.items():
        hours, written = cost["CPU s"] * 1e6 / 3600, cost["MB written"] * 1e3
        print(f"| {name} | {hours:.2f} | {written:.1f} |")
    few, many = photos["there"], vectors["there"]
    table, neighbors, *phases = DRIVER_BYTES.values()
    each = table + neighbors + max(phases)
    left = many["parts MB"] * 1e6 / vectors["images"]
    print("\n| images | " + " | ".join(f"{n:,}" for n in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    graph = {n: parts["graph"]["CPU s"] * n * math.sqrt(n / 10**6) / 3600 for n in SIZES}
    encoded = {n: sum(parts[s]["CPU s"] for s in ENCODED if s in parts) * n / 3600 for n in SIZES}
    others = [s for s in parts if s not in {*ENCODED, "graph"}]
    rest = {n: sum(parts[s]["CPU s"] for s in others) * n / 3600 for n in SIZES}
    total = {n: encoded[n] + graph[n] + rest[n] for n in SIZES}
    rows = {
        "encoding, processor hours": encoded, "graph, processor hours": graph,
        "all else, processor hours": rest,
        f"hours with {CORES} cores": {n: total[n] / CORES for n in SIZES},
        "pictures to read, TB": {n: n * PICTURE_BYTES / 1e12 for n in SIZES},
        "vectors on disk, TB": {n: n * 2 * (WIDTH + TEXT_WIDTH) / 1e12 for n in SIZES},
        "parts on disk at most, TB": {n: n * left / 1e12 for n in SIZES},
        "lists read by the graph at least, TB": {n: PROBES * n * SKETCH / 1e12 for n in SIZES},
        "driver, GB": {n: (few["driver MB"] / 1e3 + n * each / 1e9) for n in SIZES},
        "one worker beside mapped files, GB": dict.fromkeys(SIZES, few["worker MB"] / 1e3),
    }  # fmt: skip
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(map(said, (values[n] for n in SIZES))) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])
