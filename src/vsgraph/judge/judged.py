"""The judged images of a correction, compared with what they show."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, label_matrix
from vsgraph.judge.counts import count_classes
from vsgraph.judge.metrics import f1_at_top
from vsgraph.judge.ranking import auroc, macro_map
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.result.scores import TopScores, label_quality

Mask = NDArray[np.bool_]


def all_right(given: csr_array, shown: csr_array) -> Mask:
    """Return which images have labels, all of them right; both tables are (n_images, n_classes)."""
    n_given = np.asarray(given.sum(axis=1))
    n_right = np.asarray((given * shown).sum(axis=1))
    return np.asarray((n_given > 0) & (n_right == n_given))


class Case:
    """The judged rows of a correction, and what they show."""

    def __init__(self, correction: Correction, shown: csr_array, rows: NDArray[np.intp]) -> None:
        n_classes = len(correction.class_names)
        self.correction, self.rows, self.shown = correction, rows, csr_array(shown[rows])
        self.web = label_matrix(correction.web_labels[rows], n_classes, np.float64)
        self.final = label_matrix(correction.final_labels[rows], n_classes, np.float64)
        self.decisions = np.asarray(correction.decisions[rows])
        self.rejected = self.decisions == Decision.REJECT
        self.in_set = np.diff(self.shown.indptr) > 0
        self.right_before = all_right(self.web, self.shown)
        self.right_after = all_right(self.final, self.shown)
        likeliest = label_matrix(correction.final_probs.argmax(axis=1)[rows], n_classes)
        self.right_likeliest = all_right(likeliest, self.shown)

    def accuracy(self) -> dict[str, dict[str, float]]:
        """Return the share of right images before and after, by group."""
        rightly = self.right_after | (self.rejected & ~self.in_set)
        groups = {
            "all": (np.ones(len(self.rows), bool), rightly),
            "not rejected": (~self.rejected, self.right_after),
            "in set": (self.in_set, self.right_after),
        }
        return {
            name: {
                "before": _share(self.right_before[among]),
                "after": _share(right_after[among]),
                "likeliest": _share(self.right_likeliest[among]),
            }
            for name, (among, right_after) in groups.items()
        }

    def noise(self) -> dict[str, float]:
        """Count the wrong web labels, and those that were removed."""
        n_web, n_right = self.web.sum(), (self.web * self.shown).sum()
        kept = self.web * self.final
        flagged = float(n_web - kept.sum())
        wrong = float(n_web - n_right)
        missed = float(kept.sum() - (kept * self.shown).sum())
        removed = wrong - missed
        return {
            "wrong": wrong,
            "flagged": flagged,
            "found": removed,
            "missed": missed,
            "precision": removed / flagged if flagged else np.nan,
            "recall": removed / wrong if wrong else np.nan,
        }

    def confidence(self) -> tuple[Floats, Mask]:
        """Return the confidence of the images not rejected, and whether they are right."""
        kept = ~self.rejected
        confidence = np.asarray(self.correction.confidence[self.rows][kept], np.float64)
        return np.clip(confidence, 0, 1), self.right_after[kept]

    def web_auroc(self) -> float:
        """Return how well the quality of web labels separates right ones from wrong ones."""
        pairs = self.web.tocoo()
        scores, right = np.empty((2, len(pairs.data)))
        for block in row_blocks(len(self.rows), row_bytes=16 * self.web.shape[1]):
            first, last = self.web.indptr[[block.start, block.stop]]
            own = pairs.row[first:last] - block.start, pairs.col[first:last]
            rows, correction = self.rows[block], self.correction
            final, gnn = (p[rows][own] for p in (correction.final_probs, correction.gnn_probs))
            scores[first:last] = label_quality(final, gnn)
            right[first:last] = self.shown[block].toarray()[own]
        return auroc(scores, right)

    def several(self) -> dict[str, dict[str, float]]:
        """Measure labels before and after, if images have several."""
        final = self.correction.final_probs
        parts: dict[str, Any] = {name: a[self.rows] for name, a in final.parts().items()}
        scores = TopScores(**parts, n_classes=final.n_classes)
        top = f1_at_top(scores, self.shown, k=min(3, scores.classes.shape[1]))
        labels = {"before": (self.web, self.web.toarray()), "after": (self.final, scores)}
        measures = {}
        for when, (given, ranked) in labels.items():
            counts = count_classes(given, self.shown)
            same = np.asarray(abs(given - self.shown).sum(axis=1)) == 0
            measures[when] = {
                "C-F1": counts.c_f1,
                "O-F1": counts.o_f1,
                "mAP": macro_map(ranked, self.shown),
                "whole sets": float(same.mean()),
            }
        measures["after"] |= {"C-F1 of the top 3": top.c_f1, "O-F1 of the top 3": top.o_f1}
        return measures

    def confusion(self) -> csr_array:
        """Count images by what they show and what they were given, (n_classes + 1, same)."""
        shown, given = _with_rest(self.shown), _with_rest(self.final)
        hit = csr_array(shown * given)
        right = np.asarray(hit.sum(axis=0))
        return csr_array(_spread(shown - hit).T @ _spread(given - hit) + diags_array(right))


def _with_rest(table: csr_array) -> csr_array:
    """Add a column that is one in rows without any label."""
    empty = np.diff(table.indptr) == 0
    return csr_array(hstack([table, csr_array(empty[:, None].astype(np.float64))]))


def _spread(table: csr_array) -> csr_array:
    """Scale every row that is not empty to a sum of one."""
    total = np.asarray(table.sum(axis=1))
    return csr_array(diags_array(1 / np.where(total > 0, total, 1)) @ table)


def count_right(chosen: Mask, right: Mask) -> dict[str, float]:
    """Count the chosen images, and those chosen rightly."""
    n_right = int((chosen & right).sum())
    return {"images": int(chosen.sum()), "right": n_right, "share": _share(right[chosen])}


def _share(mask: Mask) -> float:
    """Return the share of True, NaN for an empty mask."""
    return float(mask.mean()) if len(mask) else np.nan
