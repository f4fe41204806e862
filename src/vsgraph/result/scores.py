"""Scores of images for classes, kept as the highest of each row and the sum of the rest.

A crawl of millions of images with a thousand classes has billions of scores, nearly all of them
close to zero. A row takes the same room however many classes there are.
"""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats
from vsgraph.common.files import open_array
from vsgraph.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TopScores:
    """The highest scores of each row; all other classes share the rest evenly.

    ``scores[rows]`` is a dense block of rows, ``np.asarray(scores)`` all of them.

    Attributes
    ----------
    classes : int array of shape (n_rows, n_kept)
        Classes of the highest scores, highest first, ties by class.
    values : float32 array of shape (n_rows, n_kept)
        Their scores.
    rest : float32 array of shape (n_rows,)
        Sum of all other scores.
    n_classes : int
        Number of columns.

    Examples
    --------
    >>> scores = TopScores.of([[0.1, 0.7, 0.2], [0.0, 0.2, 0.8]], n_kept=1)
    >>> scores.classes.ravel().tolist(), scores.rest.round(2).tolist()
    ([1, 2], [0.30000001192092896, 0.20000000298023224])
    >>> scores[:1].round(2).tolist()
    [[0.15000000596046448, 0.699999988079071, 0.15000000596046448]]
    """

    classes: NDArray[np.integer[Any]]
    values: NDArray[np.float32]
    rest: NDArray[np.float32]
    n_classes: int

    @classmethod
    def of(cls, scores: ArrayLike, *, n_kept: int) -> Self:
        """Keep the highest scores of each row of a dense block."""
        block = np.asarray(scores)
        n_kept = min(n_kept, block.shape[1])
        some = np.arange(block.shape[1])[None].repeat(len(block), axis=0)
        if n_kept < block.shape[1]:
            some = np.argpartition(-block, n_kept - 1, axis=1)[:, :n_kept]
            some.sort(axis=1)
        values = np.take_along_axis(block, some, axis=1)
        best_first = np.argsort(-values, axis=1, kind="stable")
        values = np.take_along_axis(values, best_first, axis=1)
        rest = block.sum(axis=1, dtype=np.float64) - values.sum(axis=1, dtype=np.float64)
        return cls(
            np.take_along_axis(some, best_first, axis=1).astype(_smallest_ints(block.shape[1])),
            values.astype(np.float32),
            np.maximum(rest if n_kept < block.shape[1] else 0 * rest, 0).astype(np.float32),
            block.shape[1],
        )

    @classmethod
    def load(cls, folder: Path, n_classes: int, *, prefix: str = "") -> Self:
        """Read scores from a folder of their :meth:`parts`, mapped from disk."""
        parts: dict[str, Any] = {name: open_array(folder / f"{prefix}{name}.npy") for name in PARTS}
        return cls(**parts, n_classes=n_classes)

    @classmethod
    def from_parts(cls, arrays: Iterable[NDArray[Any]], n_classes: int) -> Self:
        """Return scores of their :meth:`parts`, in their order."""
        classes, values, rest = arrays
        return cls(classes, values, rest, n_classes)

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the scores, by name."""
        return {name: getattr(self, name) for name in PARTS}

    @classmethod
    def empty(cls, n_rows: int, n_classes: int, *, n_kept: int) -> Self:
        """Return scores of zero, to be filled in blocks by :meth:`put`."""
        shape = (n_rows, min(n_kept, n_classes))
        return cls(
            np.zeros(shape, _smallest_ints(n_classes)),
            np.zeros(shape, np.float32),
            np.zeros(n_rows, np.float32),
            n_classes,
        )

    def put(self, rows: Any, scores: ArrayLike) -> None:  # noqa: ANN401
        """Replace some rows by the highest scores of a dense block, in place."""
        block = self.of(scores, n_kept=self.classes.shape[1]).parts()
        for name, array in self.parts().items():
            array[rows] = block[name]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        return len(self.rest), self.n_classes

    def __repr__(self) -> str:
        return f"TopScores({len(self)} rows, {self.values.shape[1]} of {self.n_classes} kept)"

    def __len__(self) -> int:
        return len(self.rest)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:  # noqa: ANN401
        """Return rows as a dense block; one row as a vector."""
        if isinstance(rows, tuple):
            raise InputError("read whole rows of scores, then choose columns: scores[rows][:, c]")
        classes = np.atleast_2d(self.classes[rows])
        n_others = self.n_classes - classes.shape[1]
        each = np.atleast_1d(self.rest[rows])[:, None] / max(n_others, 1)
        block = np.repeat(each.astype(np.float32), self.n_classes, axis=1)
        np.put_along_axis(block, classes.astype(np.intp), np.atleast_2d(self.values[rows]), axis=1)
        return block if np.ndim(self.rest[rows]) else block[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401, FBT001
        return self[:].astype(dtype or np.float32)

    def argmax(self, axis: int = 1) -> NDArray[np.intp]:
        """Return the class of the highest score of each row."""
        _rows_only(axis)
        return self.classes[:, 0].astype(np.intp)

    def max(self, axis: int = 1) -> NDArray[np.float32]:
        """Return the highest score of each row."""
        _rows_only(axis)
        return np.asarray(self.values[:, 0])

    def at(self, classes: ArrayLike) -> NDArray[np.float32]:
        """Return each row's score of one class, given one class per row.

        >>> TopScores.of([[0.1, 0.7], [0.4, 0.6]], n_kept=2).at([0, 1]).tolist()
        [0.10000000149011612, 0.6000000238418579]
        """
        wanted, found = np.asarray(classes), np.array(self.values[:, 0])
        rows = np.flatnonzero(self.classes[:, 0] != wanted)  # mostly few: looked at in full
        hit = self.classes[rows] == wanted[rows, None]
        each = self.rest[rows] / max(self.n_classes - self.classes.shape[1], 1)
        found[rows] = np.where(hit.any(axis=1), (self.values[rows] * hit).sum(axis=1), each)
        return found

    def scaled(self, factor: NDArray[Any]) -> Self:
        """Return the scores with every row multiplied by its factor."""
        return dataclasses.replace(
            self,
            values=(self.values * factor[:, None]).astype(np.float32),
            rest=(self.rest * factor).astype(np.float32),
        )

    def power(self, exponent: float) -> Self:
        """Return each score to a power; the scores that are not kept count as equal.

        >>> TopScores.of([[0.5, 0.25, 0.0]], n_kept=2).power(2)[:].tolist()
        [[0.25, 0.0625, 0.0]]
        """
        others = max(self.n_classes - self.classes.shape[1], 1)
        return dataclasses.replace(
            self,
            values=(self.values**exponent).astype(np.float32),
            rest=(others * (self.rest / others) ** exponent).astype(np.float32),
        )

    def replaced(self, rows: NDArray[np.intp], block: Floats) -> Self:
        """Return the scores with some rows replaced by those of a dense block."""
        if not len(rows):
            return self
        changed = self.copy()
        changed.put(rows, block)
        return changed

    def copy(self) -> Self:
        """Return a copy in memory, to be changed by :meth:`put`."""
        copies: dict[str, Any] = {name: np.array(array) for name, array in self.parts().items()}
        return dataclasses.replace(self, **copies)

    @property
    def total(self) -> Floats:
        """Sum of each row."""
        return self.values.sum(axis=1) + self.rest


PARTS = ("classes", "values", "rest")


def _rows_only(axis: int) -> None:
    if axis not in {1, -1}:
        raise InputError("scores can be searched along rows only (axis=1)")


def _smallest_ints(n_classes: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest integer type for class numbers."""
    return np.uint16 if n_classes <= np.iinfo(np.uint16).max else np.uint32


def label_quality(final_probs: Floats, gnn_probs: Floats) -> Floats:
    """Return how reliable labels are: the mean of their log odds by all evidence and by the graph.

    The evidence is divided among all classes that an image shows; the graph's sigmoid is not. The
    mean separates right labels from wrong ones better than either of them.

    >>> label_quality(np.array([0.5, 0.5]), np.array([0.9, 0.1])).round(2).tolist()
    [0.75, 0.25]
    """
    return expit((log_odds(final_probs) + log_odds(gnn_probs)) / 2)


def web_quality(web: NDArray[Any], final_probs: TopScores, gnn_probs: TopScores) -> Floats:
    """Return the :func:`label_quality` of each image's web label, the lowest of several."""

    def lowest(rows: slice) -> Floats:
        quality = label_quality(final_probs[rows], gnn_probs[rows])
        if web.ndim == 1:
            return quality[np.arange(len(quality)), web[rows]]
        return np.where(web[rows], quality, 1).min(axis=1)

    blocks = row_blocks(len(web), row_bytes=32 * final_probs.n_classes)
    return np.concatenate([lowest(rows) for rows in blocks])


def log_odds(probs: Floats) -> NDArray[np.float64]:
    """Return finite log odds."""
    return logit(np.clip(probs.astype(np.float64), 1e-6, 1 - 1e-6))
