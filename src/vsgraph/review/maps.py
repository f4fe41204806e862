"""The map of a run's images, drawn once in the background and kept in the run's folder."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.common.files import open_array, whole_file
from vsgraph.report.map import LONGEST_TITLE, CrawlMap, draw_map
from vsgraph.report.tallies import Rows
from vsgraph.review.pictures import FOLDER
from vsgraph.review.view import View

MOST_POINTS = 5000


class Maps:
    """Draws the map of a result; one thread at most is at work."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER
        self._lock = threading.Lock()
        self._drawing: str | None = None
        self._drawn: tuple[str, CrawlMap] | None = None

    def get(self, view: View) -> CrawlMap | None:
        """Return the map, or None while it is being drawn."""
        key = view.run.keys.get("pictures", view.run.keys["crawl"])
        with self._lock:
            if self._drawn is not None and self._drawn[0] == key:
                return self._drawn[1]
            if self._drawing != key:
                self._drawing = key
                draw = threading.Thread(target=self._draw, args=(view, key), daemon=True)
                draw.start()
        return None

    def _draw(self, view: View, key: str) -> None:
        """Draw the map, or read the one that was drawn before."""
        path = self.folder / f"map-{key}.npy"
        drawn = None
        with contextlib.suppress(Exception):  # damaged, or not there yet
            drawn = _unpacked(np.array(open_array(path)))
        if drawn is None:
            drawn = draw_map(view.run.features, n_images=len(view), most=MOST_POINTS)
            with contextlib.suppress(OSError):
                self.folder.mkdir(exist_ok=True)
                with whole_file(path) as unfinished, unfinished.open("wb") as file:
                    np.save(file, np.column_stack([drawn.rows, drawn.places]).astype(np.int64))
        with self._lock:
            self._drawn, self._drawing = (key, drawn), None


def _unpacked(table: Any) -> CrawlMap:  # noqa: ANN401
    rows, places = table[:, 0].astype(np.intp), table[:, 1:].astype(np.float64)
    return CrawlMap(rows, places, "Images that look alike lie together.")


def map_columns(view: View, drawn: CrawlMap) -> dict[str, Any]:
    """Return what the page draws: places, labels and titles of the sample."""
    rows = drawn.rows
    texts = view.crawl.texts(rows, fields=view.crawl.text_fields[:1])
    return {
        "row": rows.tolist(),
        "x": drawn.places[:, 0].astype(int).tolist(),
        "y": drawn.places[:, 1].astype(int).tolist(),
        "web": _first(view.correction.web_labels, rows),
        "final": _first(view.correction.final_labels, rows),
        "sure": np.rint(100 * np.clip(view.confidence[rows], 0, 1)).astype(int).tolist(),
        "title": [title[:LONGEST_TITLE] for title in texts],
        "note": drawn.note,
    }


def _first(labels: Any, rows: Rows) -> list[int]:  # noqa: ANN401
    part = np.asarray(labels[rows])
    if part.ndim == 2:
        part = np.where(part.any(axis=1), part.argmax(axis=1), -1)
    return part.astype(int).tolist()
