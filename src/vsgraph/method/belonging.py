"""Beyond the paper: whether texts belong to their pictures, as far as these can tell.

What pictures look like predicts what their texts say, by a linear map that is learned from the
crawl itself, in folds: no text is predicted by a map that has seen it. How well a text matches its
picture is compared with how well texts match when they are exchanged on purpose. In a crawl whose
texts all belong, hardly any match as badly as exchanged ones do. So the number that do says how
many texts are of other images, and both distributions say it of each text (a local false discovery
rate). Where pictures do not predict texts, nothing is said.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from vsgraph.common.blocks import Arrays, as_floats, evenly_spread, fill_rows, row_blocks
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, rotate, rows_to_search

N_AXES = 256
SAMPLE = 2**15  # texts that the map is learned from
FEWEST = 100  # texts that a map can be learned from
FOLDS = 4
N_EXCHANGES = 4
BINS, PER_BIN = 32, 50  # of the match, at most and with at least so many texts
BAD = 0.25  # hardly any text matches its own picture worse than this share of exchanged ones
BETTER = 0.6  # how often a text must match better than an exchanged one; half of the time is chance


@dataclasses.dataclass(frozen=True)
class Belonging:
    """What was learned of how texts match pictures."""

    rows: Rows
    axes: Singles  # (n_dims, n_axes)
    look: Singles  # (n_axes,), what all pictures share
    middle: Singles  # (n_text_dims,), what all texts share
    maps: Singles  # (n_folds, n_axes, n_text_dims)
    edges: Floats  # (n_bins - 1,) of the match
    own: Floats  # (n_bins,) share of texts that are the image's own
    usual: float  # the same of all texts

    def of_crawl(self, texts: Floats) -> Singles:
        """Return the probability that each text is the image's own, (n_images,); 0 without text."""

        def judge(block: slice) -> Arrays:
            fold = _folds(np.arange(block.start, block.stop))
            return (self._judge(self.rows.unit(block), as_floats(texts[block]), fold),)

        row_bytes = 8 * (len(self.axes) + texts.shape[1])
        (own,) = fill_rows(judge, row_blocks(len(texts), row_bytes=row_bytes), title="own texts")
        return own

    def of_others(self, features: Floats, texts: Floats) -> Singles:
        """Return the same for images that nothing was learned from."""
        mean = dataclasses.replace(self, maps=self.maps.mean(axis=0, keepdims=True))
        fold = np.zeros(len(texts), np.intp)
        return mean._judge(rows_to_search(features).unit(slice(None)), as_floats(texts), fold)  # noqa: SLF001

    def _judge(self, pictures: Singles, texts: Floats, fold: NDArray[np.intp]) -> Singles:
        turned = pictures @ self.axes - self.look
        match = _match(turned, _centered(texts, self.middle), self.maps, fold)
        own = self.own[np.digitize(match, self.edges)]
        own = np.where(filled_rows(pictures), own, self.usual)
        return np.where(filled_rows(texts), own, 0).astype(np.float32)


def learn_belonging(features: Floats, texts: Floats) -> Belonging | None:
    """Learn which texts belong to their images; None if pictures cannot tell."""
    rows = rows_to_search(features)
    both = rows.alive[filled_rows(texts)[rows.alive]]
    some = both[evenly_spread(len(both), SAMPLE)].astype(np.intp)
    if len(some) < FEWEST:
        return None
    axes = principal_axes(rows, min(N_AXES, features.shape[1]))
    turned = rotate(rows, axes, some)
    look = turned.mean(axis=0)
    given = unit_rows(as_floats(np.asarray(texts[some])))
    middle = given.mean(axis=0)
    pictures, said, fold = turned - look, _centered(given, middle), _folds(some)
    maps = _learn_maps(pictures, said, fold)
    match, random = _match(pictures, said, maps, fold), np.random.default_rng(0)
    exchanged = np.concatenate(
        [_match(pictures, random.permutation(said), maps, fold) for _ in range(N_EXCHANGES)]
    )
    if np.searchsorted(np.sort(exchanged), match).mean() < BETTER * len(exchanged):
        return None
    return Belonging(rows, axes, look, middle, maps, *own_shares(match, exchanged))


def own_shares(match: Floats, exchanged: Floats) -> tuple[Floats, Floats, float]:
    """Compare the match of texts and of exchanged texts.

    Returns edges of bins of the match, the share of own texts in each bin, never less for a better
    match, and the share in all.

    >>> random = np.random.default_rng(0)
    >>> right, wrong = random.normal(4, 1, 800), random.normal(0, 1, 1200)
    >>> edges, own, usual = own_shares(np.concatenate([right, wrong[:200]]), wrong[200:])
    >>> bool(own[0] < 0.1), bool(own[-1] > 0.9), round(usual, 1)
    (True, True, 0.8)
    """
    foreign = min(float((match < np.quantile(exchanged, BAD)).mean()) / BAD, 1.0)
    n_bins = min(BINS, max(len(match) // PER_BIN, 2))
    edges = np.quantile(match, np.linspace(0, 1, n_bins + 1)[1:-1])
    found, expected = (
        np.bincount(np.digitize(m, edges), minlength=n_bins) / len(m) for m in (match, exchanged)
    )
    others = np.minimum(foreign * expected / np.maximum(found, 1 / len(match)), 1)
    return edges, 1 - isotonic_regression(others, increasing=False).x, 1 - foreign


def _folds(rows: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return the fold of each row, as if drawn at random: rows may lie in an order."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    return mixed.astype(np.intp) % FOLDS


def _centered(texts: Floats, middle: Floats) -> Floats:
    """Return texts without what all of them share, of length one; zeros without text."""
    return unit_rows(unit_rows(texts) - middle) * filled_rows(texts)[:, None]


def _learn_maps(pictures: Singles, said: Floats, fold: NDArray[np.intp]) -> Singles:
    """Learn to predict texts from pictures, for each fold from the others, by ridge regression."""
    parts = [(pictures[fold == part], said[fold == part]) for part in range(FOLDS)]
    squares = np.stack([p.T @ p for p, _ in parts]).astype(np.float64)
    products = np.stack([p.T @ t for p, t in parts]).astype(np.float64)
    squares, products = squares.sum(axis=0) - squares, products.sum(axis=0) - products
    n_axes = pictures.shape[1]
    usual = np.trace(squares, axis1=1, axis2=2) / n_axes + np.finfo(np.float32).tiny
    return np.linalg.solve(squares + usual[:, None, None] * np.eye(n_axes), products).astype(
        np.float32
    )


def _match(pictures: Singles, said: Floats, maps: Singles, fold: NDArray[np.intp]) -> Floats:
    """Return the cosine of each text and what its picture predicts, (n_images,)."""
    match = np.zeros(len(pictures), np.float32)
    for part, learned in enumerate(maps):
        own = fold == part
        match[own] = np.einsum("ij,ij->i", unit_rows(pictures[own] @ learned), said[own])
    return match
