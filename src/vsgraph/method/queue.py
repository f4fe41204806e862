"""Beyond the paper: which images are worth asking people about next.

An answer is worth the more, the less sure the web label of an image is, the more unsure images with
that label look like it, and the fewer answers its class has. One image is taken at a time, and
those that look like it are then worth less. So a queue is spread over classes, and over groups of
images that look alike.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats, check_at_least, check_vector
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction
from vsgraph.result.parts import UNANSWERED

LEAST = 1e-6  # of being unsure; an image that looks like many unsure ones may still be asked about
PATIENCE = 2.0  # answers on a class after which another one is worth half


def queue(
    correction: Correction, answers: ArrayLike | None, n: int, *, among: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Return the images that are worth asking people about next, the best first.

    Parameters
    ----------
    correction : Correction
        Of images with one web label each.
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
    if correction.web_labels.ndim == 2:
        raise InputError("a queue is made only if images have one web label each")
    check_at_least("n", n, 0)
    given = np.full(len(correction), UNANSWERED)
    if answers is not None:
        given = check_vector("answers", answers, length=len(correction), dtype=int)
    may_ask = given == UNANSWERED
    worth = _Worth(correction, np.flatnonzero(~may_ask))
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
        self.web = correction.web_labels
        quality = correction.label_quality.astype(np.float64)
        self.unsure: Floats = np.maximum(quality * (1 - quality), LEAST)
        self.alike = _alike(correction.adjacency, self.web)
        self.n_asked = np.bincount(self.web[asked], minlength=len(correction.class_names))
        near = csr_array(self.alike[asked])
        np.multiply.at(self.unsure, near.indices, 1 - near.data)
        self.unsure[asked] = 0
        self.reach: Floats = self.unsure + self.alike @ self.unsure

    def best(self, may_ask: NDArray[np.bool_]) -> int:
        """Return the image that is worth most."""
        worth = self.reach / (1 + self.n_asked / PATIENCE)[self.web]
        return int(np.where(may_ask, worth, -1).argmax())

    def take(self, row: int) -> None:
        """Take one image: the images that look like it are worth less."""
        self.n_asked[self.web[row]] += 1
        first, last = self.alike.indptr[row : row + 2]
        near, weights = self.alike.indices[first:last], self.alike.data[first:last]
        self._lower(row, self.unsure[row])
        for other, weight in zip(near, weights, strict=True):
            self._lower(int(other), weight * self.unsure[other])

    def _lower(self, row: int, by: float) -> None:
        """Make one image less unsure, and what it adds to those around it."""
        self.unsure[row] -= by
        self.reach[row] -= by
        first, last = self.alike.indptr[row : row + 2]
        self.reach[self.alike.indices[first:last]] -= by * self.alike.data[first:last]


def _alike(adjacency: csr_array, web: NDArray[np.intp]) -> csr_array:
    """Return how much images with the same label look alike, 0 to 1, in both directions."""
    pairs = adjacency.tocoo()
    same = (web[pairs.row] == web[pairs.col]) & (pairs.row != pairs.col)
    kept = csr_array(
        (np.clip(pairs.data[same], 0, 1), (pairs.row[same], pairs.col[same])), adjacency.shape
    )
    return csr_array(kept.maximum(kept.T))
