"""A map of vectors in two dimensions on which neighbors stay together.

Pairwise controlled manifold approximation (Wang, Huang, Rudin and Shaposhnik, JMLR 2021): pairs of
neighbors attract each other, pairs at middle distance do at first, others repel. The number of
pairs is proportional to the number of points, so plain numpy is enough. The start is the principal
axes, so the same vectors give the same map.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats, unit_rows
from vsgraph.neighbors.search import nearest_neighbors

FEWEST = 16
N_AXES = 64
NEAR, MIDDLE, FAR = 10, 5, 20
STEPS = (100, 100, 250)
RATE, DECAY, DECAY_SQUARED = 1.0, 0.9, 0.999

Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


def embed(vectors: Floats) -> Floats:
    """Place vectors, (n, d), on a plane, (n, 2), by their directions.

    Fewer than 16 vectors are put on their two principal axes.

    >>> vectors = np.repeat(np.eye(3), 20, axis=0) + 0.01 * np.arange(60)[:, None] % 0.07
    >>> places = embed(vectors)
    >>> near, far = (np.linalg.norm(places[0] - places[i]) for i in (1, 30))
    >>> places.shape, bool(near < far)
    ((60, 2), True)
    """
    unit = unit_rows(np.asarray(vectors, np.float32))
    short = on_axes(unit, N_AXES)
    start = np.pad(short[:, :2], ((0, 0), (0, max(0, 2 - short.shape[1]))))  # (n, 2)
    if len(short) < FEWEST:
        return start
    random = np.random.default_rng(0)
    near = _near_pairs(unit, short)
    middle = _middle_pairs(short, random)
    far = _far_pairs(len(short), near, random)
    scale = start.std(axis=0).max()
    return _settle(start * (0.01 / max(float(scale), 1e-12)), near, middle, far)


def on_axes(vectors: Floats, n_axes: int) -> Floats:
    """Return vectors on their principal axes, the widest first, signs fixed.

    >>> on_axes(np.array([[0.0, 1.0], [0.0, 3.0]]), 1).tolist()
    [[-1.0], [1.0]]
    """
    centered = vectors - vectors.mean(axis=0)
    n_axes = min(n_axes, *centered.shape)
    n_dims = centered.shape[1]
    _, axes = eigh(centered.T @ centered, subset_by_index=[n_dims - n_axes, n_dims - 1])
    axes = axes[:, ::-1]
    largest = np.abs(axes).argmax(axis=0)
    return centered @ (axes * np.sign(axes[largest, np.arange(n_axes)]))


def _near_pairs(unit: Floats, short: Floats) -> Pairs:
    """Return each point with its nearest ones, by distances scaled to the local density."""
    rows = nearest_neighbors(unit, n_neighbors=min(2 * NEAR, len(unit) - 1)).rows
    squared = ((short[:, None] - short[rows]) ** 2).sum(axis=2)
    spread = np.sqrt(np.sort(squared, axis=1)[:, 3:6].mean(axis=1)).clip(1e-10)
    scaled = squared / spread[:, None] / spread[rows]
    order = np.argsort(scaled, axis=1, kind="stable")[:, :NEAR]
    targets = np.take_along_axis(rows, order, axis=1).ravel().astype(np.intp)
    return np.repeat(np.arange(len(unit)), order.shape[1]), targets


def _middle_pairs(short: Floats, random: np.random.Generator) -> Pairs:
    """Return each point with the second nearest of six random ones, several times."""
    n = len(short)
    drawn = random.integers(n, size=(n, MIDDLE, 6))
    squared = ((short[:, None, None] - short[drawn]) ** 2).sum(axis=3)  # (n, MIDDLE, 6)
    second = np.argsort(squared, axis=2, kind="stable")[:, :, 1:2]
    targets = np.take_along_axis(drawn, second, axis=2)
    return np.repeat(np.arange(n), MIDDLE), targets.ravel()


def _far_pairs(n: int, near: Pairs, random: np.random.Generator) -> Pairs:
    """Return each point with random ones that are not its neighbors."""
    sources, targets = np.repeat(np.arange(n), FAR), random.integers(n, size=n * FAR)
    taken = np.isin(sources * n + targets, near[0] * n + near[1]) | (sources == targets)
    return sources[~taken], targets[~taken]


def _settle(places: Floats, near: Pairs, middle: Pairs, far: Pairs) -> Floats:
    """Minimize the loss with Adam."""
    kinds = [(_ends(pairs, len(places)), pairs) for pairs in (near, middle, far)]
    mean, square = np.zeros_like(places), np.zeros_like(places)
    for step in range(sum(STEPS)):
        slope = np.zeros_like(places)
        for kind, (ends, (sources, targets)) in enumerate(kinds):
            weight = _weights(step)[kind]
            if weight == 0:
                continue
            apart = places[sources] - places[targets]
            distance = 1 + np.einsum("ij,ij->i", apart, apart)
            slope += ends @ (apart * (weight * _pull(distance, kind))[:, None])
        mean = DECAY * mean + (1 - DECAY) * slope
        square = DECAY_SQUARED * square + (1 - DECAY_SQUARED) * slope**2
        rate = RATE * np.sqrt(1 - DECAY_SQUARED ** (step + 1)) / (1 - DECAY ** (step + 1))
        places = places - rate * mean / (np.sqrt(square) + 1e-7)
    return places


def _ends(pairs: Pairs, n: int) -> csr_array:
    """Return the matrix, (n, n_pairs), that adds the pull on each pair to its two points."""
    numbers = np.arange(len(pairs[0]))
    signs = np.concatenate([np.ones(len(numbers)), -np.ones(len(numbers))]).astype(np.float32)
    where = (np.concatenate(pairs), np.concatenate([numbers, numbers]))
    return csr_array((signs, where), shape=(n, len(numbers)))


def _pull(distance: Floats, kind: int) -> Floats:
    """Return the slope of the loss over the distance, for near, middle and far pairs."""
    if kind == 0:
        return 20 / (10 + distance) ** 2
    if kind == 1:
        return 20_000 / (10_000 + distance) ** 2
    return -2 / (1 + distance) ** 2


def _weights(step: int) -> tuple[float, float, float]:
    """Return the weights of near, middle and far pairs: global structure first, then local."""
    first, second, _ = STEPS
    if step < first:
        return 2.0, 1000 + (3 - 1000) * step / first, 1.0
    return (3.0, 3.0, 1.0) if step < first + second else (1.0, 0.0, 1.0)
