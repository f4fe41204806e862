"""What a network is trained on: web labels, or those of a correction."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import check_one_of, check_truth
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction

KINDS = ("believed", "final", "gnn", "cnn", "web", "decided")


class Labels(NamedTuple):
    """Labels to train on."""

    table: Any  # csr_array or TopScores, (n_images, n_classes); zeros if an image is left out
    several: bool  # whether an image may have several labels

    @property
    def rows(self) -> NDArray[np.intp]:
        """The images to learn from."""
        if issparse(self.table):
            return np.flatnonzero(np.diff(self.table.indptr))
        return np.flatnonzero(self.table.total > 0)

    def counts(self) -> NDArray[np.float64]:
        """Return the number of images of each class, (n_classes,); soft labels are summed."""
        n_classes = self.table.shape[1]
        if issparse(self.table):
            return np.bincount(self.table.indices, minlength=n_classes).astype(np.float64)
        blocks = row_blocks(len(self.table), row_bytes=4 * n_classes)
        return sum((self.table[b].sum(axis=0) for b in blocks), start=np.zeros(n_classes))

    def digest(self) -> str:
        """Return a hash of all labels."""
        hashed = hashlib.blake2b(digest_size=16)
        parts: Any = (
            (self.table.indptr, self.table.indices)
            if issparse(self.table)
            else self.table.parts().values()
        )
        for part in parts:
            hashed.update(np.ascontiguousarray(part).tobytes())
        return hashed.hexdigest()


def web_labels(crawl: Crawl) -> Labels:
    """Return the labels of a crawl as they are."""
    return Labels(crawl.labels_matrix(), crawl.has_several_labels)


def corrected_labels(correction: Correction, kind: str = "believed") -> Labels:
    """Return the labels of a correction as a table of shape (n_images, n_classes).

    The kind is 'believed' (``p_f`` as soft labels of all images, also of rejected ones), 'final'
    (the same without rejected images), 'gnn' or 'cnn' (``p_g`` or ``p_c``), 'web', or 'decided'
    (the final labels as hard ones, without rejected images).
    """
    check_one_of("labels", kind, KINDS)
    several = correction.web_labels.ndim == 2
    if kind in {"web", "decided"}:
        chosen = correction.web_labels if kind == "web" else correction.final_labels
        n_images, n_classes = len(correction), len(correction.class_names)
        table = check_truth("labels", chosen, n_rows=n_images, n_classes=n_classes)
        return Labels(table.astype(bool), several)
    if kind in {"believed", "final"}:
        return Labels(correction.soft_labels(with_rejected=kind == "believed"), several)
    scores = correction.gnn_probs if kind == "gnn" else correction.cnn_probs
    if scores is None:
        raise InputError("the correction was made without a classifier, so it has no labels 'cnn'")
    if not several:
        scores = scores.scaled(1 / np.where(scores.total > 0, scores.total, 1))
    return Labels(scores, several)
