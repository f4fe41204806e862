"""Which images are worth asking a person about next, and why.

An answer settles its own image and speaks for those that look like it. Its worth is the doubt that
it can remove: p (1 - p) of its web label, and of the look-alikes with the same web label, by how
alike they are. What is asked for earlier, or answered already, takes its share away.
"""

import functools

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED, Rule

POOL = 4096  # candidates beyond those asked for
UNSURE = 0.09  # p (1 - p) of a label that is 10 to 90 % probable
SETTLED = 0.7  # share of the doubt of a look-alike that one answer removes


def queue(
    correction: Correction, answered_labels: NDArray[np.intp] | None, n: int
) -> NDArray[np.intp]:
    """Return the rows of at most n images to ask about, the one worth most first.

    `answered_labels` has an entry for each image, -2 if it is not answered yet; None if none is.
    """
    doubt, links = _worth_parts(correction, answered_labels)
    gain = doubt + SETTLED * (links @ doubt)
    if answered_labels is not None:
        gain[np.asarray(answered_labels) != UNANSWERED] = 0
    open_rows = np.flatnonzero(gain > 0)
    n_pool = min(len(open_rows), n + POOL)
    if n_pool < len(open_rows):
        open_rows = open_rows[np.argpartition(-gain[open_rows], n_pool)[:n_pool]]
    pool = open_rows[np.lexsort((open_rows, -gain[open_rows]))]
    return _pick(pool, doubt, links, min(n, n_pool))


def _worth_parts(
    correction: Correction, answered_labels: NDArray[np.intp] | None
) -> tuple[Floats, csr_array]:
    """Return the doubt of each label, (n_images,), and the links among images of one label."""
    doubt, links = _own_doubt(correction), same_label_links(correction)
    if answered_labels is not None:
        answered = np.asarray(answered_labels) != UNANSWERED
        if answered.any():
            doubt = doubt * (1 - SETTLED) ** (links @ answered.astype(np.float32))
        doubt[answered] = 0
    return doubt, links


def _own_doubt(correction: Correction) -> Floats:
    """Return p (1 - p) of each web label, 0 where there is nothing to judge by."""
    right = np.clip(np.asarray(correction.label_quality, np.float64), 0, 1)
    return np.where(correction.rules == Rule.NOT_JUDGED, 0, right * (1 - right))


@functools.lru_cache(maxsize=1)
def same_label_links(correction: Correction) -> csr_array:
    """Return the links of the visual graph between images that share a web label."""
    graph, web = correction.adjacency, correction.web_labels
    sources = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    if web.ndim == 1:
        same = web[sources] == web[graph.indices]
    else:
        same = (web[sources] & web[graph.indices]).any(axis=1)
    data = np.where(same & (graph.indices != sources), np.clip(graph.data, 0, 1), 0)
    return csr_array((data.astype(np.float32), graph.indices, graph.indptr), graph.shape)


def _pick(pool: NDArray[np.intp], doubt: Floats, links: csr_array, n: int) -> NDArray[np.intp]:
    """Pick images one after another; each takes away doubt of those that look like it."""
    place = {int(row): i for i, row in enumerate(pool)}
    gain = doubt[pool] + SETTLED * (csr_array(links[pool]) @ doubt)
    picked: list[int] = []
    while len(picked) < n:
        best = int(gain.argmax())
        row = int(pool[best])
        gain[best] = -np.inf
        picked.append(row)
        near, weights = _row_of(links, row)
        fall = np.append(doubt[near] * (1 - (1 - SETTLED) ** weights), doubt[row])
        for other, less in zip([*near.tolist(), row], fall.tolist(), strict=True):
            doubt[other] -= less
            _lower(gain, place, links, other, less)
    return np.array(picked, np.intp)


def _lower(gain: Floats, place: dict[int, int], links: csr_array, row: int, less: float) -> None:
    """Take the doubt that is gone at a row from the gains of it and of its look-alikes."""
    if row in place:
        gain[place[row]] -= less
    near, weights = _row_of(links, row)
    for other, weight in zip(near.tolist(), weights.tolist(), strict=True):
        if other in place:
            gain[place[other]] -= SETTLED * weight * less


def _row_of(links: csr_array, row: int) -> tuple[NDArray[np.intp], Floats]:
    """Return the neighbors of a row and their weights."""
    part = slice(links.indptr[row], links.indptr[row + 1])
    return links.indices[part], links.data[part]


def reasons(
    correction: Correction, answered_labels: NDArray[np.intp] | None, rows: NDArray[np.intp]
) -> list[str]:
    """Return for each row in words why it is worth an answer."""
    doubt, links = _own_doubt(correction), same_label_links(correction)
    told = []
    for row in rows.tolist():
        near, weights = _row_of(links, row)
        is_open = (doubt[near] > UNSURE) & (weights > 0)
        if answered_labels is not None:
            is_open &= answered_labels[near] == UNANSWERED
        n_open = int(is_open.sum())
        alike = f", {n_open} unsure look{'s' if n_open == 1 else ''} alike" if n_open else ""
        told.append(f"label {correction.label_quality[row]:.0%} probable{alike}")
    return told
