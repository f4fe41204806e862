"""What many images would take, by what was measured: ``scale_plan.py PHOTOS.json VECTORS.json``.

The files are what ``scale_out.py photos`` and ``scale_out.py vectors`` printed. Prints two tables:
what each stage costs for a million images, and what crawls of a million to a billion would take.
Everything grows with the number of images, but the graph, whose time for each image is taken to
grow with its square root from the size of the vectors' run on. Pictures and texts are those of the
photos' run, all else that of the vectors' run. Memory of the driver is what it holds for each image
beyond a run of few.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

SIZES = (10**6, 10**8, 10**9)
ENCODED = ("pictures", "measures", "texts")
PICTURE_BYTES, WIDTH, TEXT_WIDTH = 10**5, 1280, 384  # of a photo on the web; of vectors
SKETCH, PROBES = 1024, 10  # bytes of a row that the graph compares; lists that it is compared with
CORES = 160


def costs(photos: dict[str, Any], vectors: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return CPU seconds, megabytes read and written by calls for each image, by stage."""
    parts: dict[str, dict[str, float]] = {}
    for found, is_encoded in ((photos, True), (vectors, False)):
        for name, spent in found["there"]["stages"].items():
            if name != "start" and (name in ENCODED) == is_encoded:
                parts[name] = {what: spent[what] / found["images"] for what in spent}
    return parts


def main(photos_file: str, vectors_file: str) -> None:
    """Print both tables."""
    photos, vectors = (json.loads(Path(f).read_text()) for f in (photos_file, vectors_file))
    parts = costs(photos, vectors)
    print("| stage | processor hours | GB read by calls | GB written |\n|---|---|---|---|")
    for name, cost in parts.items():
        hours, read, written = cost["CPU s"] * 1e6 / 3600, cost["MB read"], cost["MB written"]
        print(f"| {name} | {hours:.2f} | {read * 1e3:.1f} | {written * 1e3:.1f} |")
    few, many = photos["there"], vectors["there"]
    beyond = (many["driver MB"] - few["driver MB"]) * 1e6
    each = max(beyond, 0) / (vectors["images"] - photos["images"])
    left = many["parts MB"] * 1e6 / vectors["images"]
    print("\n| images | " + " | ".join(f"{n:,}" for n in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    graph = {n: parts["graph"]["CPU s"] * n * math.sqrt(max(n / vectors["images"], 1)) / 3600
             for n in SIZES}  # fmt: skip
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
        "lists read by the graph, TB": {n: PROBES * n * SKETCH / 1e12 for n in SIZES},
        "driver, GB": {n: (few["driver MB"] / 1e3 + n * each / 1e9) for n in SIZES},
        "one worker beside mapped files, GB": dict.fromkeys(SIZES, few["worker MB"] / 1e3),
    }  # fmt: skip
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(f"{values[n]:,.3g}" for n in SIZES) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])
