"""Beyond the paper: which images are worth asking people about next.

An answer is worth the more, the less sure the web label of an image is, the more unsure images with
that label look like it, and the fewer answers its class has. One image is taken at a time, and
those that look like it are then worth less. So a queue is spread over classes, and over groups of
images that look alike.
"""

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array

from vsgraph.common.checks import Floats, check_at_least, check_vector, label_matrix
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED, Rule

LEAST = 1e-6  # of being unsure; an image that looks like many unsure ones may still be asked about
PATIENCE = 2.0  # answers on a class after which another one is worth half


def queue(
    correction: Correction, answers: ArrayLike | None, n: int, *, among: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Return the images that are worth asking people about next, the best first.

    Parameters
    ----------
    correction : Correction
        Of images with one web label or several; those that could not be judged are not asked about.
    answers : int array of shape (n_images,) or None
        What people have said already: a class, -1 for none of them, -2 for nothing yet.
    n : int
        How many images to return; fewer if there are not so many left.
    among : bool array of shape (n_images,), optional
        The images that may be asked about; all of them otherwise.

    Returns
    -------
    rows : int array of shape (n,)
        Rows that nobody has answered.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> result = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4,
    ...                          settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> len(queue(result, None, 3))
    3
    """
    check_at_least("n", n, 0)
    given = np.full(len(correction), UNANSWERED)
    if answers is not None:
        given = check_vector("answers", answers, length=len(correction), dtype=int)
    may_ask = given == UNANSWERED
    worth = _Worth(correction, np.flatnonzero(~may_ask))
    may_ask &= correction.rules != Rule.NOT_JUDGED
    if among is not None:
        may_ask &= check_vector("among", among, length=len(correction), dtype=bool)
    rows = np.empty(min(int(n), int(may_ask.sum())), np.intp)
    for place in range(len(rows)):
        rows[place] = worth.best(may_ask)
        worth.take(int(rows[place]))
        may_ask[rows[place]] = False
    return rows


class _Worth:
    """What an answer on each image is worth, given those that were asked about before."""

    def __init__(self, correction: Correction, asked: NDArray[np.intp]) -> None:
        self.labels = label_matrix(correction.web_labels, len(correction.class_names))
        quality = correction.label_quality.astype(np.float64)
        self.unsure: Floats = np.maximum(quality * (1 - quality), LEAST)
        self.unsure[correction.rules == Rule.NOT_JUDGED] = 0
        self.alike = look_alikes(correction)
        self.n_asked = np.asarray(self.labels[asked].sum(axis=0), float)
        n_labels = np.maximum(np.diff(self.labels.indptr), 1)
        self.share = csr_array(diags_array(1 / n_labels) @ self.labels)
        near = csr_array(self.alike[asked])
        np.multiply.at(self.unsure, near.indices, 1 - near.data)
        self.unsure[asked] = 0
        self.reach: Floats = self.unsure + self.alike @ self.unsure

    def best(self, may_ask: NDArray[np.bool_]) -> int:
        """Return the image that is worth most."""
        worth = self.reach * (self.share @ (1 / (1 + self.n_asked / PATIENCE)))
        return int(np.where(may_ask, worth, -1).argmax())

    def take(self, row: int) -> None:
        """Take one image: the images that look like it are worth less."""
        self.n_asked[self.labels.indices[slice(*self.labels.indptr[row : row + 2])]] += 1
        near, weights = row_of(self.alike, row)
        self._lower(row, self.unsure[row])
        for other, weight in zip(near, weights, strict=True):
            self._lower(int(other), weight * self.unsure[other])

    def _lower(self, row: int, by: float) -> None:
        """Make one image less unsure, and what it adds to those around it."""
        self.unsure[row] -= by
        self.reach[row] -= by
        near, weights = row_of(self.alike, row)
        self.reach[near] -= by * weights


@functools.lru_cache(maxsize=1)
def look_alikes(correction: Correction) -> csr_array:
    """Return how much images with a label in common look alike, 0 to 1, in both directions."""
    pairs, web = correction.adjacency.tocoo(), correction.web_labels
    of_row, of_column = web[pairs.row], web[pairs.col]
    same = of_row == of_column if web.ndim == 1 else (of_row & of_column).any(axis=1)
    same &= pairs.row != pairs.col
    kept = csr_array(
        (np.clip(pairs.data[same], 0, 1), (pairs.row[same], pairs.col[same])), pairs.shape
    )
    return csr_array(kept.maximum(kept.T))


def row_of(links: csr_array, row: int) -> tuple[NDArray[np.intp], Floats]:
    """Return the images that one is linked with, and how strongly."""
    part = slice(links.indptr[row], links.indptr[row + 1])
    return links.indices[part], links.data[part]
