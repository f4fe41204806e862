"""Which images are worth asking a person about next, and why.

An answer settles its own image and speaks for those that look like it. Its worth is the doubt that
it can remove: p (1 - p) of its web label, and of the look-alikes with the same web label, by how
alike they are. What is asked for earlier, or answered already, takes its share away.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Rule

POOL = 4096  # candidates beyond those asked for
SETTLED = 0.7  # share of the doubt of a look-alike that one answer removes


def queue(
    correction: Correction, answered_labels: NDArray[np.intp] | None, n: int
) -> NDArray[np.intp]:
    """Return the rows of at most n images to ask about, the one worth most first.

    `answered_labels` has an entry for each image, -2 if it is not answered yet; None if none is.
    """
    doubt, links = worth_parts(correction, answered_labels)
    gain = doubt + SETTLED * (links @ doubt)
    is_open = gain > 0
    if answered_labels is not None:
        is_open &= np.asarray(answered_labels) == -2
    open_rows = np.flatnonzero(is_open)
    n_pool = min(len(open_rows), n + POOL)
    pool = open_rows[np.argsort(-gain[open_rows], kind="stable")[:n_pool]]
    return _pick(pool, doubt.copy(), links, min(n, n_pool))


def worth_parts(
    correction: Correction, answered_labels: NDArray[np.intp] | None
) -> tuple[Floats, csr_array]:
    """Return the doubt of each label, (n_images,), and the links among images of one label."""
    right = np.clip(np.asarray(correction.label_quality, np.float64), 0, 1)
    doubt = right * (1 - right)
    doubt[correction.rules == Rule.NOT_JUDGED] = 0
    links = _same_label(correction)
    if answered_labels is not None:
        answered = np.asarray(answered_labels) != -2
        near = csr_array(links @ answered.astype(np.float64)[:, None]).toarray().ravel()
        doubt = doubt * (1 - SETTLED) ** near
        doubt[answered] = 0
    return doubt, links


def _same_label(correction: Correction) -> csr_array:
    """Return the links of the visual graph between images that share a web label."""
    graph, web = correction.adjacency, correction.web_labels
    sources = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    if web.ndim == 1:
        same = web[sources] == web[graph.indices]
    else:
        same = (web[sources] & web[graph.indices]).any(axis=1)
    data = np.where(same & (graph.indices != sources), np.clip(graph.data, 0, 1), 0)
    return csr_array((data.astype(np.float64), graph.indices, graph.indptr), graph.shape)


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
    doubt, links = worth_parts(correction, answered_labels)
    right = correction.label_quality
    told = []
    for row in rows.tolist():
        near, weights = _row_of(links, row)
        n_open = int(((doubt[near] > 0.09) & (weights > 0)).sum())
        says = f"label {right[row]:.0%} probable"
        told.append(
            f"{says}, {n_open} unsure look{'s' if n_open == 1 else ''} alike" if n_open else says
        )
    return told
