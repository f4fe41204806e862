"""A crawl as a notebook shows it: its classes, its text, and some of its pictures."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.notebook import grid, heading, line, table
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.inspection import text_coverage
from vsgraph.pictures.opener import quiet_pillow, small_jpeg

SIDE, QUALITY = 96, 70
MOST_CLASSES = 12  # listed, the largest first
N_PICTURES = 8


def crawl_html(crawl: Crawl) -> str:
    """Return the counts of a crawl and pictures spread over it."""
    counts = np.asarray(crawl.labels_matrix().sum(axis=0)).ravel()
    largest = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    rows = [(crawl.class_names[c], f"{counts[c]:,}") for c in largest]
    more = len(counts) - len(rows)
    parts = [
        heading(f"{crawl.format}: {len(crawl):,} images, {len(counts):,} classes"),
        line(f"text: {text_coverage(crawl)['any']:.0%} of the images; truth: {_truth(crawl)}"),
        table(rows, ["class", "images"]),
        line(f"and {more:,} more classes") if more > 0 else "",
        *map(line, crawl.problems.lines()),
    ]
    some = evenly_spread(len(crawl), N_PICTURES)
    return "".join(parts) + pictures_html(crawl, some, web_names(crawl, some))


def pictures_html(crawl: Crawl, rows: NDArray[np.intp], captions: Iterable[str]) -> str:
    """Return small pictures of some rows, each with its caption; nothing without pictures."""
    if not crawl.has_pictures or not crawl.root.exists():
        return ""
    with quiet_pillow():
        small = [small_jpeg(d, side=SIDE, quality=QUALITY) for d in crawl.read_images(rows)]
    return grid(zip(small, captions, strict=True))


def web_names(crawl: Crawl, rows: Sequence[int] | NDArray[np.intp]) -> list[str]:
    """Return the web labels of some images as text."""
    labels = crawl.take(np.asarray(rows, np.intp)).labels_matrix()
    ends = zip(labels.indptr[:-1], labels.indptr[1:], strict=True)
    return [", ".join(crawl.class_names[c] for c in labels.indices[a:b]) for a, b in ends]


def _truth(crawl: Crawl) -> str:
    known = int(crawl.truth_known.sum())
    return f"known of {known:,}" if known else "not known"
