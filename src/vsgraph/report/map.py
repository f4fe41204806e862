"""The map of a crawl: a sample of its images on a plane, with their labels before and after."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vsgraph.common.blocks import as_floats
from vsgraph.common.checks import Floats, filled_rows, mean_ranks
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.report.map_layout import FEWEST, embed
from vsgraph.report.tallies import Labels, Rows, first_classes
from vsgraph.result.correction import Correction

LONGEST_TITLE = 90
GRID = 9999


class CrawlMap(NamedTuple):
    """Images and their places, or the reason why there is no map."""

    rows: Rows  # (n,), in ascending order
    places: Floats  # (n, 2), whole numbers in 0..9999
    note: str  # for the reader


def draw_map(features: ArrayLike | None, *, n_images: int, most: int = 5000) -> CrawlMap:
    """Place at most so many images on a plane by their features, (n_images, d).

    Only the sample is read. Without features the map is empty.

    >>> draw_map(None, n_images=3).note
    'There is no map: the report was written without the features of the images.'
    """
    nothing = np.empty(0, np.intp), np.empty((0, 2))
    if features is None:
        return CrawlMap(
            *nothing, "There is no map: the report was written without the features of the images."
        )
    table: Any = features if hasattr(features, "shape") else np.asarray(features)
    if len(table.shape) != 2 or table.shape[0] != n_images:
        raise InputError(f"features must have shape ({n_images}, d), got {table.shape}")
    rows = np.arange(n_images)
    if n_images > most:
        rows = np.sort(np.random.default_rng(0).choice(n_images, most, replace=False))
    vectors = np.nan_to_num(as_floats(np.asarray(table[rows])), posinf=0, neginf=0)
    rows, vectors = rows[filled_rows(vectors)], vectors[filled_rows(vectors)]
    if len(rows) < 2:
        return CrawlMap(*nothing, "There is no map: no image has features.")
    note = f"A sample of {len(rows):,} of {n_images:,} images. " if len(rows) < n_images else ""
    note += "Images that look alike lie together; distances between far groups say little."
    if len(rows) < FEWEST:
        note = "So few images are placed on their two principal axes."
    return CrawlMap(rows, _on_grid(embed(vectors)), note)


def _on_grid(places: Floats) -> Floats:
    """Return places as whole numbers, half by value and half by rank, which narrows gaps."""
    low, high = places.min(axis=0), places.max(axis=0)
    values = (places - low) / np.maximum(high - low, 1e-12)
    ranks = np.column_stack([mean_ranks(column) for column in places.T])
    return np.rint((values + (ranks - 1) / (len(places) - 1)) * (GRID / 2))


def map_data(
    drawn: CrawlMap,
    crawl: Crawl,
    correction: Correction,
    labels: Labels,
    *,
    pages: dict[int, str],
    pictures: frozenset[int],
) -> dict[str, Any]:
    """Return what the page's script draws: columns of numbers, titles, class names."""
    rows = drawn.rows
    titles = crawl.texts(rows, fields=crawl.text_fields[:1])
    return {
        "x": drawn.places[:, 0].astype(int).tolist(),
        "y": drawn.places[:, 1].astype(int).tolist(),
        "web": first_classes(labels.web, rows).tolist(),
        "final": first_classes(labels.final, rows).tolist(),
        "sure": np.rint(100 * np.clip(correction.confidence[rows], 0, 1)).astype(int).tolist(),
        "row": rows.tolist(),
        "picture": [int(row in pictures) for row in rows.tolist()],
        "title": [title[:LONGEST_TITLE] for title in titles],
        "names": [name[:LONGEST_TITLE] for name in correction.class_names],
        "pages": [pages.get(i, "") for i in range(len(correction.class_names))],
    }
