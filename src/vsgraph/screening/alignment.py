"""How well the details of two pictures agree once one is laid upon the other.

A copy may be scaled, squeezed, cropped, mirrored, recompressed, brighter, or have words over it.
Squares of gray that stand for whole pictures hide scale and shape. Cropping is undone by finding
the part of one square that is most like the other: its place and size on both axes, by a few
Gauss-Newton steps, first at half the resolution. What is then compared are the directions of
edges: brightness changes them little, pictures that are alike only as a whole (a bird in a gray
sky) do not share them, and words over a picture change only some.
"""

import numpy as np

from vsgraph.common.checks import Floats

Squares = Floats  # (n_pairs, side, side), gray levels
Moves = Floats  # (n_pairs, 4): scale and shift on the vertical, then the horizontal

COARSE_STEPS, FINE_STEPS = 10, 6
PROMISING = 0.4  # agreement at half the resolution, below which no pair is looked at closer
LARGEST_STEP = 0.1  # in half sides of a square
LEAST_SCALE, MOST_SCALE, MOST_SHIFT = -0.35, 0.1, 0.4  # of a part, beside the whole
TOLERANCE = 0.5  # standard deviations of gray that differ without being distrusted
DAMPING = 0.025
NOISE = 1.0  # gray levels
FLAT = 1e-3


def agreement(first: Squares, second: Squares) -> Floats:
    """Return how well the pictures of each pair agree, (n_pairs,), 1 for the same, 0 for others.

    >>> one = np.random.default_rng(0).uniform(0, 255, (1, 32, 32)).astype(np.float32)
    >>> agreement(one, one[:, :, ::-1] / 2 + 50).round(2).tolist()  # mirrored, with less contrast
    [1.0]
    """
    mirrored = first[:, :, ::-1]
    turned = _correlation(mirrored, second) > _correlation(first, second)
    first = np.where(turned[:, None, None], mirrored, first)
    best = np.zeros(len(first), np.float32)
    for one, other in ((first, second), (second, first)):  # either may be a part of the other
        small, small_other = halved(one), halved(other)
        moves = _align(small, small_other, np.zeros((len(one), 4), np.float32), COARSE_STEPS)
        likely = np.flatnonzero(_edge_match(small, small_other, moves) >= PROMISING)
        if len(likely):
            moves = _align(one[likely], other[likely], moves[likely], FINE_STEPS)
            match = _edge_match(one[likely], other[likely], moves)
            best[likely] = np.maximum(best[likely], match)
    return best


def halved(squares: Squares) -> Squares:
    """Return squares at half their resolution."""
    n_pairs, side, _ = squares.shape
    return squares.reshape(n_pairs, side // 2, 2, side // 2, 2).mean(axis=(2, 4))


def _correlation(first: Squares, second: Squares) -> Floats:
    """Return the correlation of gray levels, as they lie, at an eighth of the resolution."""
    one, other = (_standardized(halved(halved(halved(s)))) for s in (first, second))
    return (one * other).mean(axis=(1, 2))


def _standardized(squares: Squares) -> Squares:
    """Return squares of mean zero and variance one."""
    centered = squares - squares.mean(axis=(1, 2), keepdims=True)
    return centered / (centered.std(axis=(1, 2), keepdims=True) + FLAT)


def _align(one: Squares, other: Squares, moves: Moves, n_steps: int) -> Moves:
    """Improve the parts of `one` that are to look like `other`."""
    n_pairs, side, _ = one.shape
    place = _places(side)
    slopes = np.gradient(one, 2 / side, axis=(1, 2))
    lowest = np.array([LEAST_SCALE, -MOST_SHIFT] * 2, np.float32)
    highest = np.array([MOST_SCALE, MOST_SHIFT] * 2, np.float32)
    damping = (DAMPING * side * side * np.eye(4)).astype(np.float32)
    for _ in range(n_steps):
        rows, columns, inside = _samplers(moves, side)
        part, down, across = (_sample(s, rows, columns) for s in (one, *slopes))
        spread = _masked_spread(part, inside)
        residual = _masked(other, inside) - _masked(part, inside)
        trust = inside / (1 + np.square(residual / TOLERANCE))
        steps = np.stack([down * place[:, None], down, across * place, across], 1) / spread[:, None]
        flat = steps.reshape(n_pairs, 4, -1)
        weighted = flat * trust.reshape(n_pairs, 1, -1)
        curvature = weighted @ flat.transpose(0, 2, 1) + damping
        change = np.linalg.solve(curvature, weighted @ residual.reshape(n_pairs, -1, 1))[..., 0]
        moves = np.clip(moves + np.clip(change, -LARGEST_STEP, LARGEST_STEP), lowest, highest)
    return moves


def _places(side: int) -> Floats:
    """Return where the middles of pixels lie, from -1 to 1."""
    return ((2 * np.arange(side) + 1) / side - 1).astype(np.float32)


def _samplers(moves: Moves, side: int) -> tuple[Squares, Squares, Squares]:
    """Return what samples rows and columns of parts, and which pixels lie inside of the whole."""
    axes, insides = [], []
    for scale, shift in (moves[:, :2].T, moves[:, 2:].T):
        at = (1 + scale)[:, None] * _places(side) + shift[:, None]
        insides.append(np.abs(at) <= 1)
        pixel = np.clip((at + 1) * side / 2 - 0.5, 0, side - 1)
        axes.append(np.maximum(0, 1 - np.abs(pixel[:, :, None] - np.arange(side))))
    inside = (insides[0][:, :, None] & insides[1][:, None, :]).astype(np.float32)
    rows, columns = (axis.astype(np.float32) for axis in axes)
    return rows, columns, inside


def _sample(squares: Squares, rows: Squares, columns: Squares) -> Squares:
    """Return parts of squares, by linear interpolation."""
    return rows @ squares @ columns.transpose(0, 2, 1)


def _masked(squares: Squares, inside: Squares) -> Squares:
    """Return squares of mean zero and variance one within a mask, and zero outside of it."""
    centered = (squares - _masked_mean(squares, inside)) * inside
    return centered / _masked_spread(squares, inside)


def _masked_mean(squares: Squares, inside: Squares) -> Squares:
    return (squares * inside).sum(axis=(1, 2), keepdims=True) / inside.sum(
        axis=(1, 2), keepdims=True
    )


def _masked_spread(squares: Squares, inside: Squares) -> Squares:
    """Return the standard deviation within a mask, (n_pairs, 1, 1)."""
    centered = (squares - _masked_mean(squares, inside)) * inside
    variance = np.square(centered).sum(axis=(1, 2), keepdims=True) / inside.sum(
        axis=(1, 2), keepdims=True
    )
    return np.sqrt(variance) + FLAT


def _edge_match(one: Squares, other: Squares, moves: Moves) -> Floats:
    """Return the correlation of edges of a part of `one` and of `other`."""
    rows, columns, inside = _samplers(moves, one.shape[1])
    edges, other_edges = (
        _edges(squares) * inside for squares in (_sample(one, rows, columns), other)
    )
    product = (edges * other_edges).sum(axis=(0, 2, 3))
    lengths = np.square(edges).sum(axis=(0, 2, 3)) * np.square(other_edges).sum(axis=(0, 2, 3))
    return product / np.sqrt(lengths + FLAT**2)


def _edges(squares: Squares) -> Floats:
    """Return the slopes of gray, (2, n_pairs, side, side), strong ones hardly more than others."""
    smooth = _smoothed(_smoothed(squares, 1), 2)
    slopes = np.stack([np.gradient(smooth, axis=axis) for axis in (1, 2)])
    strength = np.square(slopes).sum(axis=0)  # (n_pairs, side, side)
    usual = np.sqrt(np.median(strength, axis=(1, 2), keepdims=True)) + NOISE
    return slopes / np.sqrt(strength + usual**2)


def _smoothed(squares: Squares, axis: int) -> Squares:
    """Return the means of three neighbors, the middle one twice."""
    padded = np.pad(squares, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
    before, after = (
        np.take(padded, np.arange(start, start + squares.shape[axis]), axis) for start in (0, 2)
    )
    return (before + 2 * squares + after) / 4
