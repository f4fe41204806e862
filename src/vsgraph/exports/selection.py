"""Which images an export holds, and which part of a split each belongs to."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_at_least, check_fraction, check_one_of, label_matrix
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.method.decisions import least_belief
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.screening.screened import DROPS, DUPLICATES, Screening

PARTS = {2: ("train", "test"), 3: ("train", "validation", "test")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Selection:
    """Which images to export; by default all that are not rejected, in one part.

    >>> Selection(split=0.75).shares
    (0.75, 0.25)
    """

    rejected: bool = False  # include rejected images
    min_confidence: float | None = None  # leave out less probable labels
    top: int | None = None  # only so many of each class, the most probable first
    purity: float | None = None  # as many as can be had with so many right by estimate
    drop: Sequence[str] = ()  # kinds of pictures to leave out, of DROPS
    split: float | Sequence[float] | None = None  # share of train; or of train, validation, test

    def __post_init__(self) -> None:
        for name in self.drop:
            check_one_of("drop", name, DROPS)
        for name in ("min_confidence", "purity"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name))
        if self.top is not None:
            check_at_least("top", self.top, 1)
        if self.split is not None and (
            len(self.shares) not in PARTS
            or min(self.shares) <= 0
            or not np.isclose(sum(self.shares), 1)
        ):
            raise InputError(
                "split must be the share of train, as in 0.9, or the shares of train, validation "
                f"and test, as in 0.8,0.1,0.1, got {self.split}"
            )

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each part."""
        if self.split is None:
            return ()
        if isinstance(self.split, int | float):
            return (self.split, round(1 - self.split, 12))
        return (*self.split,)

    @property
    def by_quality(self) -> bool:
        """Whether images are chosen by how probable their labels are."""
        return not self.min_confidence is self.top is self.purity is None

    def rows(self, correction: Correction) -> NDArray[np.intp]:
        """Return the rows of the images to export, in order, rejected ones if asked for."""
        left = correction.decisions != Decision.REJECT
        confidence = correction.confidence
        if self.min_confidence is not None:
            left &= confidence >= self.min_confidence
        if self.top is not None:
            left &= _is_among_first(correction, left, self.top)
        if self.purity is not None:
            if correction.unwanted is None:
                raise InputError(
                    "purity needs labels that are doubted one by one: one label per image, and "
                    "not one of the paper's forms; min_confidence and top work on any labels"
                )
            left &= confidence >= least_belief(confidence[left], self.purity)
        return np.flatnonzero(left | (self.rejected & (correction.decisions == Decision.REJECT)))


def _is_among_first(correction: Correction, left: NDArray[np.bool_], top: int) -> NDArray[np.bool_]:
    """Return which images are among the most confident of a class that they are given."""
    given = label_matrix(correction.final_labels, len(correction.class_names)).tocoo()
    rows, classes = (part[left[given.row]] for part in (given.row, given.col))
    best = np.lexsort((rows, -correction.confidence[rows], classes))  # by class, surest first
    rank = np.arange(len(best)) - np.searchsorted(classes[best], classes[best])
    first = np.zeros(len(left), bool)
    first[rows[best][rank < top]] = True
    return first


def without(
    rows: NDArray[np.intp], drop: Sequence[str], screening: Screening | None, correction: Correction
) -> NDArray[np.intp]:
    """Return rows without some kinds of pictures; of copies, one stays.

    It has the label that its copies are surest of together, and is the best picture of those.
    """
    if not drop:
        return rows
    if screening is None:
        raise InputError("drop needs a run that looked at its pictures; run vsgraph correct again")
    for name in drop:
        if name != DUPLICATES:
            rows = rows[~screening.has(name.removesuffix("s"))[rows]]
    if DUPLICATES not in drop:
        return rows
    _, labels = np.unique(correction.final_labels[rows], axis=0, return_inverse=True)
    groups = screening.groups[rows]
    _, pairs = np.unique(np.stack([groups, labels], 1), axis=0, return_inverse=True)
    rejected = correction.decisions[rows] == Decision.REJECT
    belief = np.bincount(pairs, np.where(rejected, 0, correction.confidence[rows]))[pairs]
    order = np.lexsort((screening.ranks[rows], -belief, rejected, groups))
    first = np.diff(groups[order], prepend=-1) > 0
    return np.sort(rows[order[first]])


class Split(NamedTuple):
    """The part that each image belongs to."""

    names: tuple[str, ...]
    numbers: NDArray[np.int8]  # (n_images,), of the part of each image to export


def split_images(
    crawl: Crawl,
    rows: NDArray[np.intp],
    shares: Sequence[float],
    screening: Screening | None = None,
) -> Split:
    """Divide images by a digest of their content: copies stay together, and none ever moves.

    The part of an image depends on its bytes alone, not on its row, its class or the rest of the
    crawl. So each class is divided in about the same shares, and a crawl that grows keeps its
    parts. Near copies go where one of them goes, the one with the lowest digest: a picture moves
    only if a new copy of it has a lower one. A picture that cannot be read is placed by its path.
    """
    ends = np.cumsum(shares)[:-1]
    numbers = np.zeros(len(crawl), np.int8)
    images = crawl.table["image"]
    placed = rows if screening is None else screening.stand_ins[rows]
    contents = crawl.read_images(placed) if crawl.has_pictures else (b"" for _ in rows)
    for row, place_of, data in zip(rows.tolist(), placed.tolist(), contents, strict=True):
        content = data or images[place_of].as_py().encode()
        digest = hashlib.blake2b(content, digest_size=8, person=b"split").digest()
        place = int.from_bytes(digest, "big") / 2**64
        numbers[row] = np.searchsorted(ends, place, side="right")
    return Split(PARTS[len(shares)], numbers)
