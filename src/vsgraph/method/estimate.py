"""What a correction will take, before it starts: time, memory and disk.

Each stage's time is its count of operations times what one took on a machine of two cores (see
docs/performance.md), corrected by how fast this machine multiplies matrices. Expect a factor of two
either way: how far the search for neighbors must go depends on the features.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np

from vsgraph.common.checks import check_at_least, check_number
from vsgraph.common.formatting import say_span
from vsgraph.common.room import check_disk, say_bytes
from vsgraph.errors import InputError
from vsgraph.method.evidence import SAMPLE_CELLS
from vsgraph.neighbors.search import FEW_ROWS, is_exact
from vsgraph.settings import Settings

REFERENCE_FLOPS = 1.3e11  # of the machine that the costs below were measured on
GB = 1e9
WORKING_BYTES = 0.4 * GB  # code and blocks
BYTES_A_CELL = 170  # while the weights of the evidence are estimated
SKETCH = 256
CANDIDATES = 32
LISTS = 16  # next to each row, kept and sorted
IMAGE_DIMS, TEXT_DIMS = 1280, 384  # of the default encoders
ENCODER_BYTES = 1.5 * GB  # while a model is converted, once; half of it from then on
PICTURES_A_SECOND, TEXTS_A_SECOND = 120, 160  # by the defaults; docs/performance.md
MEASURED_A_SECOND, SCREENED_A_SECOND = 600, 2000
REPORT_SHOWN, SHOWN_A_SECOND = 60, 200  # pictures of a class in the report, and their speed


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a correction is expected to take.

    Attributes
    ----------
    seconds : dict of str to float
        By stage.
    memory : float
        Bytes held at most, without arrays mapped from disk, which the system may drop.
    disk : float
        Bytes of the saved correction.

    Examples
    --------
    >>> plan = estimate(Settings(), n_images=489_755, n_dims=2048, n_classes=500)
    >>> list(plan.seconds)
    ['reading', 'graph', 'trust', 'smoothing', 'network', 'evidence', 'doubt', 'scores']
    >>> 1e9 < plan.memory < 5e9
    True
    """

    seconds: dict[str, float]
    memory: float
    disk: float

    def only(self, stages: Collection[str], *, new: float = 1) -> "Estimate":
        """Return what some stages take, if only the share `new` of the contents is not known."""
        encoding = {"pictures", "measures", "texts"}
        reads = bool((set(self.seconds) - encoding) & set(stages))
        names = [n for n in self.seconds if n in stages or (n == "reading" and reads)]
        by_content = encoding | {"screening"}
        seconds = {n: self.seconds[n] * (new if n in by_content else 1) for n in names}
        return dataclasses.replace(self, seconds=seconds)

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        long = {name: took for name, took in self.seconds.items() if took >= total / 100}
        stages = ", ".join(f"{name} {say_span(took)}" for name, took in long.items())
        return (
            f"about {say_span(total)} ({stages}), {self.memory / GB:.1f} GB of memory beside the "
            f"mapped files, {self.disk / GB:.2f} GB of disk"
        )


def estimate(
    settings: Settings,
    *,
    n_images: int,
    n_dims: int,
    n_classes: int,
    n_text_dims: int = 384,
    with_cnn: bool = True,
    machine_flops: float | None = None,
) -> Estimate:
    """Estimate what a correction takes on this machine.

    Parameters
    ----------
    settings : Settings
        The numbers of the correction.
    n_images, n_dims, n_classes, n_text_dims : int
        Features have shape (n_images, n_dims), texts (n_images, n_text_dims).
    with_cnn : bool
        Probabilities of a CNN are given.
    machine_flops : float, optional
        Operations per second in a matrix product; measured if not given.

    Returns
    -------
    estimate : Estimate
        Print it, or read its fields.

    Examples
    --------
    >>> small = estimate(Settings(), n_images=1000, n_dims=64, n_classes=10)
    >>> large = estimate(Settings(), n_images=10**6, n_dims=64, n_classes=10)
    >>> sum(small.seconds.values()) < sum(large.seconds.values())
    True
    """
    sizes = {
        "n_images": n_images, "n_dims": n_dims, "n_classes": n_classes, "n_text_dims": n_text_dims
    }  # fmt: skip
    for name, size in sizes.items():
        check_at_least(name, check_number(name, size, int), 1)
    n, edges = n_images, 1.7 * settings.n_neighbors * n_images
    width = n_dims * (1 if settings.form == "printed" else 1 + settings.gnn_layers)
    reach = (1.7 * settings.n_neighbors) ** (settings.gnn_layers - 1)
    anchors = min(n, settings.anchors_per_class * n_classes)
    steps = settings.epochs if settings.solver == "adam" else 60
    cells = min(n * n_classes, SAMPLE_CELLS) if settings.text_evidence else 0
    seconds = {
        "reading": 2 + 6e-9 * n * (n_dims + n_text_dims + with_cnn * n_classes),
        "graph": _graph_seconds(settings, n, n_dims),
        "trust": settings.text_evidence * 2 * n * SKETCH * (n_dims + n_text_dims) / REFERENCE_FLOPS,
        "smoothing": 4e-9 * edges * n_text_dims / 2,
        "network": settings.rounds * steps * 4 * anchors * width * n_classes / REFERENCE_FLOPS
        + 2e-9 * anchors * reach * width,
        "evidence": 5.5e-6 * cells,
        "doubt": settings.text_evidence
        * (7e-5 * n + 4e-9 * n * n_text_dims * settings.n_neighbors),
        "scores": 2 * n * width * n_classes / REFERENCE_FLOPS
        + 1e-9 * edges * reach * n_dims
        + 2e-7 * n * n_classes,
    }
    slower = REFERENCE_FLOPS / (machine_flops or flops())
    kept = 3 + with_cnn
    scores = kept * n * (6 * min(settings.kept_scores, n_classes) + 4)
    graph = 12 * edges
    searched = n * (4 * min(SKETCH, n_dims) + 8 * (CANDIDATES + LISTS) + 12 * settings.n_neighbors)
    labeled = scores + 2 * graph + 2 * n * n_text_dims + 8 * anchors * width
    return Estimate(
        {name: slower * took for name, took in seconds.items()},
        WORKING_BYTES + max(searched, labeled + BYTES_A_CELL * cells),
        scores + graph + 24 * n,
    )


def estimate_run(settings: Settings, *, n_images: int, n_texts: int, n_classes: int) -> Estimate:
    """Estimate a whole run on a crawl with the default encoders; `n_texts` images have text."""
    core = estimate(
        settings, n_images=n_images, n_dims=IMAGE_DIMS, n_classes=n_classes, n_text_dims=TEXT_DIMS
    )
    slower = REFERENCE_FLOPS / flops()
    embedding = {
        "pictures": slower * n_images / PICTURES_A_SECOND,
        "measures": slower * n_images / MEASURED_A_SECOND,
        "texts": slower * n_texts / TEXTS_A_SECOND,
        "probe": slower * 1.5e-4 * n_images,
    }
    pages = {
        "screening": slower * n_images / SCREENED_A_SECOND,
        "report": slower * (2 + min(n_images, REPORT_SHOWN * n_classes) / SHOWN_A_SECOND),
    }
    vectors = 2 * n_images * (IMAGE_DIMS + TEXT_DIMS)
    memory = max(core.memory, ENCODER_BYTES)
    return Estimate(embedding | core.seconds | pages, memory, core.disk + 2 * vectors)


def _graph_seconds(settings: Settings, n: int, n_dims: int) -> float:
    """Return the time that the search for neighbors takes on the reference machine."""
    if n <= FEW_ROWS:
        return 2 * n * n * n_dims / REFERENCE_FLOPS + 4e-9 * n * n
    sketched = 4 * n * n_dims * SKETCH / REFERENCE_FLOPS + 2e-9 * n * n_dims
    sampled = 2 * 512 * n * n_dims / REFERENCE_FLOPS
    scanned = 25 * n * np.sqrt(n) * 2 * SKETCH / REFERENCE_FLOPS
    ranked = 2e-5 * n + 4e-10 * CANDIDATES * n * n_dims
    near = float(sketched + sampled + scanned + ranked)
    if is_exact(n, settings.neighbor_search, settings.neighbor_recall):
        return near + n * n * (min(n_dims, 320) / REFERENCE_FLOPS + 3e-10)
    return near


@functools.cache
def flops() -> float:
    """Measure how many operations per second this machine does in a matrix product."""
    one = np.ones((1024, 512), np.float32)
    times = []
    for _ in range(40):  # the fastest counts, so that other programs do not
        started = time.perf_counter()
        one @ one.T
        times.append(time.perf_counter() - started)
    return 2 * 1024 * 1024 * 512 / min(times)


def check_room(plan: Estimate, folder: Path) -> None:
    """Raise an error if memory or disk cannot hold a correction, before it starts."""
    check_disk(folder, plan.disk)
    memory = available_memory()
    if memory is not None and plan.memory > memory:
        raise InputError(
            f"the correction needs {say_bytes(plan.memory)} of memory, but {say_bytes(memory)} "
            "are free; close other programs, or lower kept_scores"
        )


def available_memory() -> float | None:
    """Return the bytes of memory that are free, or None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * float(line.split()[1]) for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):
        names = ("SC_AVPHYS_PAGES", "SC_PAGE_SIZE")
        known = hasattr(os, "sysconf") and set(names) <= set(os.sysconf_names)
        return float(os.sysconf(names[0]) * os.sysconf(names[1])) if known else None
