"""How two corrections of the same crawl differ, and which of them is right."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import bdtr

from vsgraph.common.checks import check_truth, check_vector, label_matrix
from vsgraph.common.formatting import markdown_table, markdown_text, number, percent, plain
from vsgraph.errors import InputError
from vsgraph.judge.counts import Truth, per_class
from vsgraph.judge.judged import all_right
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

NAMES = tuple(decision.name.lower() for decision in Decision)
N_SHOWN = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """How two corrections of the same crawl differ; print it, or read its fields.

    Attributes
    ----------
    n_images, n_differ : int
        The images that both have, and those of them whose final labels differ.
    only_first, only_second : int
        Images that only one of the two has.
    flows : int array of shape (3, 3)
        Images by the decision of the first (rows) and the second (columns): keep, relabel, reject.
    per_class : list of dict
        Classes, those that gain or lose most images first: `class`, `first` and `second` (images
        with that label), `lost` and `gained` from the first to the second.
    right : dict of str to float
        Images that both, only the first, only the second or neither labels rightly (`both`,
        `first`, `second`, `neither`), and `chance`: the probability of a difference at least as
        large if neither were better. Empty if the truth is not known.

    Examples
    --------
    >>> Comparison(8, 2, np.diag([6, 1, 1]), [], {}).n_differ
    2
    """

    n_images: int
    n_differ: int
    flows: NDArray[np.intp]
    per_class: list[dict[str, Any]]
    right: dict[str, float]
    only_first: int = 0
    only_second: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        flows = {
            first: dict(zip(NAMES, row.tolist(), strict=True))
            for first, row in zip(NAMES, self.flows, strict=True)
        }
        return plain(dataclasses.asdict(self) | {"flows": flows})

    def __str__(self) -> str:
        differ = percent(self.n_differ / self.n_images if self.n_images else None)
        moved = [
            f"{NAMES[a]} -> {NAMES[b]} {self.flows[a, b]}"
            for a, b in zip(*np.nonzero(self.flows), strict=True)
            if a != b
        ]
        lines = [
            f"{self.n_differ} of {self.n_images} images have other labels ({differ})",
            "decisions that changed: " + (", ".join(moved) or "none"),
        ]
        if self.only_first or self.only_second:
            lines.insert(
                0,
                f"{self.n_images} images are in both; {self.only_second} only in the second, "
                f"{self.only_first} only in the first: these are not compared",
            )
        most = [row for row in self.per_class[:5] if row["lost"] + row["gained"]]
        if most:
            classes = [f"{row['class']} -{row['lost']} +{row['gained']}" for row in most]
            lines.append("classes that differ most: " + ", ".join(classes))
        if self.right:
            lines.append(
                f"right: both {self.right['both']}, only the first {self.right['first']}, only "
                f"the second {self.right['second']}, neither {self.right['neither']} (by chance: "
                f"p = {number(self.right['chance'], '.2g')})"
            )
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return a Markdown page: the summary, the decisions, the classes that differ most."""
        flows = [[name, *row] for name, row in zip(NAMES, self.flows.tolist(), strict=True)]
        rows = [
            [markdown_text(row["class"]), *list(row.values())[1:]]
            for row in self.per_class[:N_SHOWN]
        ]
        parts = [
            "\n".join(f"- {markdown_text(line)}" for line in str(self).splitlines()),
            "## Decisions: first (rows), second (columns)",
            markdown_table(["", *NAMES], flows),
            "## Classes that differ most",
            markdown_table(["class", "first", "second", "lost", "gained"], rows),
        ]
        return "\n\n".join(parts) + "\n"


def compare(
    first: Correction,
    second: Correction,
    truth: Truth | None = None,
    *,
    known: ArrayLike | None = None,
    rows: tuple[ArrayLike, ArrayLike] | None = None,
) -> Comparison:
    """Compare two corrections of the same crawl, or of crawls that have images in common.

    Parameters
    ----------
    first, second : Correction
        Of the same images, classes and web labels, unless `rows` is given.
    truth : int array of shape (n_images,) or bool matrix of shape (n_images, n_classes), optional
        What each image shows, as in :func:`evaluate`. A rejected image is right if it shows no
        class.
    known : bool array of shape (n_images,), optional
        Images whose truth is known; all by default.
    rows : two int arrays of shape (n_common,), optional
        The rows of the images that both have, in the first and in the second. Classes are then
        matched by name; truth and known are of the first.

    Returns
    -------
    comparison : Comparison
        Print it, or read its fields.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> plan = vsgraph.Settings(n_neighbors=2, anchors_per_class=2)
    >>> few = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, settings=plan)
    >>> print(compare(few, few, [0, 1] * 4))
    0 of 8 images have other labels (0.0%)
    decisions that changed: none
    right: both 8, only the first 0, only the second 0, neither 0 (by chance: p = 1)
    """
    if rows is None:
        if first.class_names != second.class_names:
            raise InputError("first and second must have the same classes in the same order")
        if not np.array_equal(first.web_labels, second.web_labels):
            raise InputError(
                "first and second must have the same images with the same web labels; rows= names "
                "those that both have"
            )
        rows = (np.arange(len(first)),) * 2
    names = tuple(dict.fromkeys([*first.class_names, *second.class_names]))
    sides = [_Side.of(one, np.asarray(own, np.intp), names)
             for one, own in zip((first, second), rows, strict=True)]  # fmt: skip
    before, after = (side.labels for side in sides)
    lost, gained = before - before * after, after - before * after
    differ = np.asarray((lost + gained).sum(axis=1)) > 0
    flows = np.zeros((len(Decision), len(Decision)), np.intp)
    np.add.at(flows, (sides[0].decisions, sides[1].decisions), 1)
    counts = [per_class(table).astype(int) for table in (before, after, lost, gained)]
    order = np.argsort(-(counts[2] + counts[3]), kind="stable")
    keys = ("first", "second", "lost", "gained")
    table = [
        {"class": names[c]} | {key: int(count[c]) for key, count in zip(keys, counts, strict=True)}
        for c in order
    ]
    right = {}
    if truth is not None:
        n_images, n_classes = first.final_probs.shape
        shown = check_truth("truth", truth, n_rows=n_images, n_classes=n_classes)
        judged = np.ones(n_images, bool)
        if known is not None:
            judged = check_vector("known", known, length=n_images, dtype=bool)
        own = sides[0].rows
        right = _who_is_right(sides, _with_columns(shown[own], len(names)), judged[own])
    n_common = len(sides[0].rows)
    return Comparison(
        n_common, int(differ.sum()), flows, table, right, len(first) - n_common,
        len(second) - n_common,
    )  # fmt: skip


class _Side(NamedTuple):
    """What one correction says of the images that both have."""

    rows: NDArray[np.intp]
    labels: csr_array  # final ones, (n_common, n_names)
    decisions: NDArray[np.uint8]

    @classmethod
    def of(cls, one: Correction, rows: NDArray[np.intp], names: tuple[str, ...]) -> Self:
        """Return some rows of a correction, its classes numbered as in `names`."""
        places = np.array([names.index(name) for name in one.class_names], np.intp)
        final = label_matrix(one.final_labels[rows], len(places), np.float64).tocoo()
        numbered = (final.data, (final.row, places[final.col]))
        labels = csr_array(numbered, shape=(len(rows), len(names)))
        return cls(rows, labels, np.asarray(one.decisions[rows]))


def _with_columns(matrix: csr_array, n_columns: int) -> csr_array:
    """Return a matrix with empty columns added at its end."""
    return csr_array((matrix.data, matrix.indices, matrix.indptr), (matrix.shape[0], n_columns))


def _who_is_right(
    sides: Sequence[_Side], shown: csr_array, judged: NDArray[np.bool_]
) -> dict[str, float]:
    """Count the images that both, one or neither labels rightly."""
    out_of_set = np.diff(shown.indptr) == 0
    a, b = (
        (all_right(one.labels, shown) | (out_of_set & (one.decisions == Decision.REJECT)))[judged]
        for one in sides
    )
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return {
        "both": int((a & b).sum()),
        "first": only_a,
        "second": only_b,
        "neither": int((~a & ~b).sum()),
        "chance": min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))),
    }
