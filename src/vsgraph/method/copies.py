"""Beyond the paper: copies of one picture show the same, so they share what is known of them.

Each copy came with its own label and text. Of the log odds x_1 ... x_n that the copies show a
class, all of them get::

    (max x  +  (n - 1) mean x) / n

Labels that agree stay as sure as they were. Of two that differ, the one wins that texts and
pictures speak for, and the surest copy counts most, since another may have no text. The more copies
there are, the more all of them must agree: one picture under many labels is believed under none.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from vsgraph.common.blocks import row_blocks
from vsgraph.method.scoring import ImageScores
from vsgraph.result.parts import UNANSWERED
from vsgraph.result.scores import log_odds

Groups = NDArray[np.intp]


def share_scores(
    scores: ImageScores, groups: Groups | None, answers: NDArray[Any] | None = None
) -> ImageScores:
    """Return scores that copies share.

    `groups` names the copies of each image by one number, (n_images,). Only where each class is
    judged by itself; what people said, in `answers`, is not shared here.
    """
    if groups is None or scores.unwanted is None:
        return scores
    shared = ~scores.silent if answers is None else ~scores.silent & (answers == UNANSWERED)
    size = np.bincount(groups[shared], minlength=len(groups))
    copied = np.flatnonzero(shared & (size[groups] > 1))
    order = copied[np.argsort(groups[copied], kind="stable")]
    final, unwanted = scores.final.copy(), np.array(scores.unwanted)
    for rows in _whole_groups(order, groups, row_bytes=16 * scores.final.shape[1]):
        _, number = np.unique(groups[rows], return_inverse=True)
        members = csr_array((np.ones(len(rows)), (number, np.arange(len(rows)))))
        size = np.asarray(members.sum(axis=1))[:, None]
        odds = log_odds(scores.final[rows])
        starts = np.flatnonzero(np.diff(number, prepend=-1))
        highest = np.maximum.reduceat(odds, starts, axis=0)  # (n_groups, n_classes)
        mean = members @ odds / size
        final.put(rows, expit((highest + (size - 1) * mean) / size)[number])
        mostly = np.asarray(members @ (unwanted[rows] >= 0)) * 2 > size.ravel()
        unwanted[rows[~mostly[number]]] = -1
    return dataclasses.replace(scores, final=final, unwanted=unwanted)


def _whole_groups(order: Groups, groups: Groups, *, row_bytes: int) -> list[Groups]:
    """Cut rows that are sorted by group into blocks that hold whole groups."""
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    blocks = row_blocks(len(order), row_bytes=row_bytes)
    cuts = np.unique([starts[np.searchsorted(starts, block.start)] for block in blocks[1:]
                      if block.start <= starts[-1]]).astype(int)  # fmt: skip
    return [part for part in np.split(order, cuts) if len(part)]
