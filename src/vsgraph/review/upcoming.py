"""The images that are worth an answer next, ranked ahead of time, and why each of them is."""

import threading

import numpy as np
from numpy.typing import NDArray

from vsgraph.method.queue import queue
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED
from vsgraph.review.session import Session
from vsgraph.review.view import View

AHEAD = 240  # images that are ranked at once
OLD = 24  # answers after which they are ranked again
UNSURE = 0.09  # p (1 - p) of a label that is 10 or 90 % probable


class Upcoming:
    """Ranks images in the background; a page takes those that are still open."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lock = threading.Lock()
        self._ranked: tuple[str, int, Rows] | None = None  # for which solution and n answers

    def take(self, view: View, n: int) -> Rows:
        """Return the next images to ask about."""
        answered = self.session.answered_labels()
        with self._lock:
            ranked = self._ranked
        if ranked is None or ranked[0] != view.solution:
            ranked = self.rank(view, answered)
        rows = ranked[2][answered[ranked[2]] == UNANSWERED]
        n_new = abs(int((answered != UNANSWERED).sum()) - ranked[1])
        if len(rows) < n and n_new:
            rows = self.rank(view, answered)[2]
        elif n_new >= OLD:
            threading.Thread(target=self.rank, args=(view, answered), daemon=True).start()
        return rows[:n]

    def rank(self, view: View, answered: NDArray[np.intp]) -> tuple[str, int, Rows]:
        """Rank the open images."""
        rows = queue(view.correction, answered, AHEAD)
        ranked = (view.solution, int((answered != UNANSWERED).sum()), rows)
        with self._lock:
            self._ranked = ranked
        return ranked


def reasons(correction: Correction, answered: NDArray[np.intp], rows: Rows) -> list[str]:
    """Return for each row in words why it is worth an answer."""
    graph, web, right = correction.adjacency, correction.web_labels, correction.label_quality
    told = []
    for row in rows.tolist():
        near = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        near = near[(near != row) & (answered[near] == UNANSWERED)]
        same = web[near] == web[row] if web.ndim == 1 else (web[near] & web[row]).any(axis=1)
        n_unsure = int((same & (right[near] * (1 - right[near]) > UNSURE)).sum())
        alike = f", {n_unsure} unsure look{'s' if n_unsure == 1 else ''} alike" if n_unsure else ""
        told.append(f"label {right[row]:.0%} probable{alike}")
    return told
