"""How good a correction is, judged by the truth."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vsgraph.common.checks import check_truth, check_vector
from vsgraph.common.formatting import markdown_table, markdown_text, number, percent, plain
from vsgraph.errors import InputError
from vsgraph.judge.counts import ClassCounts, Truth, count_classes
from vsgraph.judge.judged import Case, count_right
from vsgraph.judge.ranking import Calibration, auroc, calibration, precision_at
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision, count_decisions

KEPT = (0.5, 0.7, 0.9)
PLAIN = (
    "n_images", "n_judged", "n_in_set", "counts", "accuracy", "noise", "rejected", "relabeled",
    "auroc", "precision_at", "several",
)  # fmt: skip
CLASS_HEAD = (
    "class", "shown by", "web label of", "final label of", "precision before", "precision after",
    "recall before", "recall after",
)  # fmt: skip
NONE, REJECTED = "(none of them)", "(rejected)"


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """A correction judged by the truth; print it, or read its fields.

    A label is right if the image shows its class. An image is right if it has labels and all of
    them are right. A rejected image that shows no class is right too, unless stated otherwise.

    Attributes
    ----------
    n_images, n_judged, n_in_set : int
        All images; those whose truth is known; those of them that show at least one class.
    counts : dict of str to int
        Judged images that were kept, relabeled and rejected.
    accuracy : dict of str to dict of str to float
        Share of right images `before` and `after`, and of right `likeliest` classes, among `all`,
        `not rejected` and `in set` (here a rejected image is not right).
    noise : dict of str to float
        Wrong web labels, and how many of them were removed: `wrong`, `flagged`, `found`, `missed`,
        `precision`, `recall`.
    rejected, relabeled : dict of str to float
        Number of `images`, and how many of them rightly (`right`, `share`): a rejection is right if
        the image shows no class, a new label if it is right.
    auroc : dict of str to float
        How well `confidence` separates right from wrong final labels, and the quality of a
        `web label` right from wrong web labels.
    precision_at : dict of float to float
        Share of right images among the most confident ones, by the share kept. Rejected images are
        left out.
    calibration : Calibration
        Confidence against right images. Rejected images are left out.
    before, after : ClassCounts
        Labels by class: true, given, right.
    several : dict of str to dict of str to float
        C-F1, O-F1, mAP and the share of completely right label sets, before and after. Empty if
        images have one label each.
    confusion : csr_array of shape (n_classes + 1, n_classes + 1)
        Images by what they show (last row: no class) and what they were given (last column:
        rejected). An image that shows several classes counts in parts.
    class_names : tuple of str
        Names of the classes.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> correction = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 3 + [1, 1],
    ...                              settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> evaluate(correction, [0, 1] * 4).accuracy["all"]["before"]
    0.875
    """

    n_images: int
    n_judged: int
    n_in_set: int
    counts: dict[str, int]
    accuracy: dict[str, dict[str, float]]
    noise: dict[str, float]
    rejected: dict[str, float]
    relabeled: dict[str, float]
    auroc: dict[str, float]
    precision_at: dict[float, float]
    calibration: Calibration
    before: ClassCounts
    after: ClassCounts
    several: dict[str, dict[str, float]]
    confusion: csr_array
    class_names: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The answer in one line: how many of the labels left are right, and how many are left."""
        after, before = self.accuracy["not rejected"]["after"], self.accuracy["all"]["before"]
        left = 1 - self.counts["reject"] / self.n_judged
        return (
            f"{percent(after)} of the labels left are right, {percent(before)} were before; "
            f"{percent(left)} of the images are left"
        )

    def per_class(self) -> list[dict[str, Any]]:
        """Return one row per class: images that show it, precision and recall before and after."""
        columns = {
            "shown": self.before.n_true,
            "web": self.before.n_given,
            "final": self.after.n_given,
            "precision_before": self.before.precision,
            "precision_after": self.after.precision,
            "recall_before": self.before.recall,
            "recall_after": self.after.recall,
        }
        return [
            {"class": name} | {key: plain(column[c]) for key, column in columns.items()}
            for c, name in enumerate(self.class_names)
        ]

    def confusions(self, n_shown: int = 10) -> list[tuple[str, str, float]]:
        """Return the largest confusions: what images show, what they were given, how many."""
        table = self.confusion.tocoo()
        off = (table.row != table.col) & (table.data > 0)
        rows, columns, counts = table.row[off], table.col[off], table.data[off]
        largest = np.lexsort((columns, rows, -counts))[:n_shown]
        shown, given = (*self.class_names, NONE), (*self.class_names, REJECTED)
        return [(shown[rows[i]], given[columns[i]], float(counts[i])) for i in largest]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON, with None for NaN."""
        keys = ("shows", "given", "images")
        values = {name: getattr(self, name) for name in PLAIN} | {
            "calibration_error": self.calibration.error,
            "calibration": self.calibration.to_rows(),
            "labels": {"before": self.before.to_dict(), "after": self.after.to_dict()},
            "per_class": self.per_class(),
            "confusions": [dict(zip(keys, row, strict=True)) for row in self.confusions(50)],
        }
        return plain(values)

    def __str__(self) -> str:
        noise, counts = self.noise, self.counts
        lines = [
            self.headline,
            f"{self.n_judged} images judged of {self.n_images}, {self.n_in_set} show at least one "
            f"class: kept {counts['keep']}, relabeled {counts['relabel']}, "
            f"rejected {counts['reject']}",
        ]
        for group, shares in self.accuracy.items():
            before, after = (percent(shares[when]) for when in ("before", "after"))
            lines.append(
                f"right, {group + ':':<15} {before} before, {after} after"
                f" (likeliest class: {percent(shares['likeliest'])})"
            )
        lines += [
            f"wrong web labels: {noise['wrong']:g}; found {noise['found']:g} "
            f"({percent(noise['recall'])}), {percent(noise['precision'])} of the removed ones were "
            "wrong",
            f"new labels right: {percent(self.relabeled['share'])}; "
            f"rejected rightly: {percent(self.rejected['share'])}",
            "right among the most confident: "
            + ", ".join(f"{share:.0%} kept {percent(p)}" for share, p in self.precision_at.items()),
            f"AUROC of confidence {number(self.auroc['confidence'])}, of the web label's score "
            f"{number(self.auroc['web label'])}; calibration error "
            f"{number(self.calibration.error)}",
        ]
        lines += [
            f"{when}: "
            + ", ".join(f"{name} {number(100 * value, '.1f')}" for name, value in scores.items())
            for when, scores in self.several.items()
        ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return a Markdown page: summary, classes, largest confusions, reliability."""
        groups = [
            [group, *(percent(shares[when]) for when in ("before", "after", "likeliest"))]
            for group, shares in self.accuracy.items()
        ]
        classes = [
            [markdown_text(row["class"]), *(f"{row[k]:g}" for k in ("shown", "web", "final"))]
            + [percent(row[k]) for k in list(row)[4:]]
            for row in self.per_class()
        ]
        bins = [
            [f"{b['from']:.2f} to {b['to']:.2f}", b["images"]]
            + [number(b[key]) for key in ("confidence", "right")]
            for b in self.calibration.to_rows()
        ]
        parts = [
            "\n".join(f"- {markdown_text(line)}" for line in str(self).splitlines()),
            "## Right",
            markdown_table(["images", "before", "after", "likeliest class"], groups),
            "## By class",
            markdown_table(CLASS_HEAD, classes),
            "## Largest confusions",
            markdown_table(
                ["shows", "was given", "images"],
                [[markdown_text(a), markdown_text(b), f"{n:.1f}"] for a, b, n in self.confusions()],
            ),
            "## Reliability",
            markdown_table(["confidence", "images", "mean confidence", "right"], bins),
        ]
        return "\n\n".join(parts) + "\n"


def evaluate(correction: Correction, truth: Truth, *, known: ArrayLike | None = None) -> Evaluation:
    """Judge a correction by what the images really show.

    Parameters
    ----------
    correction : Correction
        With one label or several labels per image.
    truth : int array of shape (n_images,) or bool matrix of shape (n_images, n_classes)
        The class of each image, -1 if it shows none; or all classes that each image shows, dense or
        sparse.
    known : bool array of shape (n_images,), optional
        Images whose truth is known. Only these are judged; all by default.

    Returns
    -------
    evaluation : Evaluation
        Print it, or read its fields.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> correction = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 3 + [1, 1],
    ...                              settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2))
    >>> judged = evaluate(correction, [0, 1] * 4)
    >>> judged.noise["found"], judged.accuracy["all"]["after"]
    (1.0, 1.0)
    """
    n_images, n_classes = correction.final_probs.shape
    shown = check_truth("truth", truth, n_rows=n_images, n_classes=n_classes)
    rows = np.arange(n_images)
    if known is not None:
        rows = np.flatnonzero(check_vector("known", known, length=n_images, dtype=bool))
    if not len(rows):
        raise InputError("known must be True for at least one image, but is False for all")
    case = Case(correction, shown, rows)
    confidence, right = case.confidence()
    return Evaluation(
        n_images=n_images,
        n_judged=len(rows),
        n_in_set=int(case.in_set.sum()),
        counts=count_decisions(case.decisions),
        accuracy=case.accuracy(),
        noise=case.noise(),
        rejected=count_right(case.rejected, ~case.in_set),
        relabeled=count_right(case.decisions == Decision.RELABEL, case.right_after),
        auroc={"confidence": auroc(confidence, right), "web label": case.web_auroc()},
        precision_at={share: precision_at(confidence, right, kept=share) for share in KEPT},
        calibration=calibration(confidence, right),
        before=count_classes(case.web, case.shown),
        after=count_classes(case.final, case.shown),
        several=case.several() if correction.web_labels.ndim == 2 else {},
        confusion=case.confusion(),
        class_names=correction.class_names,
    )
