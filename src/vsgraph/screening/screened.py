"""What the pictures of a crawl are like: copies of each other, placeholders, flawed ones."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.files import open_array, save_arrays
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.vectors import Embedding
from vsgraph.pictures.measures import MEASURES

FLAWS = ("broken", "tiny", "dark", "blank", "blurred", "text", "placeholder")
DUPLICATES = "duplicates"
DROPS = (DUPLICATES, "placeholders", *FLAWS[:-1])  # what an export can leave out

TINY_SIDE = 64  # pixels, and less than half of what is usual in the crawl
DARK_END = 64.0  # of 255: what 99 % of the pixels stay below
BLANK_SPREAD = 5.0  # gray levels
BLURRED = 0.15  # of the energy of details twice as large, and less than half of what is usual
PAGE, STROKES = 0.45, 0.45  # shares of a page of text
PLAIN = 0.75  # share of one gray level in a drawing or a notice
MANY_LABELS, SEVERAL_LABELS, MANY_COPIES = 4, 3, 3
OWN_SPLITS = ("split", "subset", "partition", "fold")  # columns of a crawl that is divided already

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Screening:
    """What is known of each picture besides its label.

    Attributes
    ----------
    groups : int array of shape (n_images,)
        The first row of the image's copies; its own row if it has none.
    ranks : int array of shape (n_images,)
        The place of the image among its copies, 0 for the best: without flaws, then large.
    stand_ins : int array of shape (n_images,)
        The copy whose bytes decide which part of a split all of them go to.
    flaws : uint8 array of shape (n_images,)
        One bit for each of `FLAWS`.

    Examples
    --------
    >>> one = Screening(np.array([0, 1, 0]), np.array([1, 0, 0]), np.arange(3), np.array([4, 0, 0]))
    >>> one.best.tolist(), one.words(np.arange(3))
    ([2, 1, 2], ['dark', '', ''])
    """

    groups: Rows
    ranks: Rows
    stand_ins: Rows
    flaws: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.groups)

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        save_arrays(folder, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map the arrays."""
        return cls(*(open_array(folder / f"{f.name}.npy") for f in dataclasses.fields(cls)))

    @functools.cached_property
    def sizes(self) -> Rows:
        """How many copies of its picture there are, each image among its own, (n_images,)."""
        return np.bincount(self.groups, minlength=len(self))[self.groups]

    @functools.cached_property
    def best(self) -> Rows:
        """The row of the best copy of each image, (n_images,)."""
        best = np.arange(len(self))
        first = np.flatnonzero(np.asarray(self.ranks) == 0)
        best[self.groups[first]] = first
        return best[self.groups]

    def has(self, flaw: str) -> Mask:
        """Return which images have a flaw, (n_images,)."""
        return (self.flaws >> FLAWS.index(flaw) & 1).astype(bool)

    def words(self, rows: Rows) -> list[str]:
        """Return the flaws of some images in words; '' for none."""
        return [
            ", ".join(name for i, name in enumerate(FLAWS) if code >> i & 1)
            for code in self.flaws[rows].tolist()
        ]

    def members(self, mask: Mask | None = None) -> Iterator[Rows]:
        """Yield the rows of each group of copies, the best first; of those in a mask if given."""
        rows = np.flatnonzero(self.sizes > 1 if mask is None else (self.sizes > 1) & mask)
        order = rows[np.lexsort((self.ranks[rows], self.groups[rows]))]
        starts = np.flatnonzero(np.diff(self.groups[order], prepend=-1))
        yield from np.split(order, starts[1:]) if len(order) else ()

    def label_counts(self, labels: csr_array) -> csr_array:
        """Return how often each label stands in each group, (n_images, n_classes), by its row."""
        n_images = len(self)
        owner = csr_array((np.ones(n_images), (self.groups, np.arange(n_images))))
        return csr_array(owner @ labels.astype(np.int64))

    def differing(self, labels: csr_array) -> Mask:
        """Return which images have copies with labels that they do not have, (n_images,)."""
        counts = self.label_counts(labels)
        n_labels = np.diff(counts.indptr)[self.groups]
        return (self.sizes > 1) & (n_labels > np.diff(labels.indptr))

    def lines(self, crawl: Crawl) -> list[str]:
        """Return what was found, in lines of text."""
        lines, n_groups = [], len(np.unique(self.groups[self.sizes > 1]))
        n_more = len(self) - len(np.unique(self.groups))
        if n_more:
            differing = self.differing(crawl.labels_matrix())
            n_differing = len(np.unique(self.groups[differing]))
            lines.append(
                f"copies: {n_more:,} more of {n_groups:,} pictures; {n_differing:,} of these "
                "pictures stand under several labels"
            )
        for column in (name for name in crawl.other_columns if name.lower() in OWN_SPLITS):
            n_across = self._across(crawl.table["others"].combine_chunks().field(column))
            if n_across:
                lines.append(f"copies: {n_across:,} pictures are in several parts of {column!r}")
        counts = {flaw: int(self.has(flaw).sum()) for flaw in FLAWS}
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
        return [*lines, *([f"pictures that may be useless: {listed}"] if listed else [])]

    def _across(self, parts: Any) -> int:  # noqa: ANN401
        """Return how many groups have members in several parts, by an Arrow column of names."""
        codes = parts.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        pairs = np.unique(np.stack([self.groups, codes], 1), axis=0)
        return int((np.bincount(pairs[:, 0]) > 1).sum())


def screen(measured: Embedding | None, groups: Rows, labels: csr_array) -> Screening:
    """Judge pictures by their measures and copies; `labels` are web labels, (n_images, n_classes).

    Without measures, for a crawl given as vectors alone, only copies are known.
    """
    n_images = len(groups)
    numbers = np.zeros((n_images, len(MEASURES)), np.float32)
    keys: NDArray[Any] = np.arange(n_images)
    found = dict.fromkeys(FLAWS, np.zeros(n_images, bool))
    if measured is not None:
        numbers = np.array(measured.vectors[:, : len(MEASURES)])
        keys = np.array(measured.keys).view("V16").ravel()
        found |= flaws_of(numbers)
    of = dict(zip(MEASURES, numbers.T, strict=True))
    found["placeholder"] = _placeholders(groups, labels, is_plain=of["page"] >= PLAIN)
    flaws = np.zeros(n_images, np.uint8)
    for i, name in enumerate(FLAWS):
        flaws |= (found[name].astype(np.uint8) << i).astype(np.uint8)
    key_ranks = np.unique(keys, return_inverse=True)[1]
    area = of["width"].astype(np.float64) * of["height"]
    order = np.lexsort((key_ranks, -of["bytes"], -of["sharpness"], -area, flaws > 0, groups))
    by_key = np.lexsort((key_ranks, groups))
    starts = np.searchsorted(groups[by_key], groups[by_key])
    ranks, stand_ins = np.empty((2, n_images), np.intp)
    ranks[order] = np.arange(n_images) - starts
    stand_ins[by_key] = by_key[starts]
    return Screening(groups, ranks, stand_ins, flaws)


def flaws_of(numbers: NDArray[np.float32]) -> dict[str, Mask]:
    """Return which pictures have each flaw that can be measured, from (n_images, n_measures)."""
    of = dict(zip(MEASURES, numbers.T, strict=True))
    read = of["width"] > 0
    shorter = np.minimum(of["width"], of["height"])
    usual, sharp = (
        float(np.median(v[read])) if read.any() else 0.0 for v in (shorter, of["sharpness"])
    )
    dark = read & (of["dark_end"] < DARK_END)
    blank = read & (of["spread"] < BLANK_SPREAD)
    text = read & (of["page"] >= PAGE) & (of["strokes"] >= STROKES)
    return {
        "broken": ~read,
        "tiny": read & (shorter < TINY_SIDE) & (shorter < usual / 2),
        "dark": dark,
        "blank": blank & ~dark,
        "blurred": read & ~blank & ~dark & (of["sharpness"] < min(BLURRED, sharp / 2)),
        "text": text,
    }


def _placeholders(groups: Rows, labels: csr_array, *, is_plain: Mask) -> Mask:
    """Return which images are one picture under many labels, such as "image not available".

    A photo may show three things and be found by three queries; beyond that, or if it is a drawing
    on a plain ground, it has nothing to do with its labels.
    """
    n_images, n_classes = labels.shape
    owner = csr_array((np.ones(n_images), (groups, np.arange(n_images))), (n_images, n_images))
    n_labels = np.diff(csr_array(owner @ labels.astype(np.int64)).indptr)
    own = np.zeros(n_images, np.intp)
    np.maximum.at(own, groups, np.diff(labels.indptr))
    others = n_labels - own + 1  # labels beyond those that a single image has
    copies = np.bincount(groups, minlength=n_images)
    plain = np.zeros(n_images, bool)
    np.logical_or.at(plain, groups, is_plain)
    several = max(2, min(SEVERAL_LABELS, n_classes))
    return ((others >= MANY_LABELS) | (plain & (others >= several) & (copies >= MANY_COPIES)))[
        groups
    ]
