"""A correction, or one explanation, as a notebook shows it."""

from typing import TYPE_CHECKING

import numpy as np

from vsgraph.common.notebook import heading, line, table
from vsgraph.result.explanation import Explanation, links_text, numbers_text
from vsgraph.result.parts import Decision

if TYPE_CHECKING:
    from vsgraph.result.correction import Correction

MOST_CLASSES = 12  # listed, those with most changes first


def correction_html(correction: "Correction") -> str:
    """Return the counts of a correction, whole and by class."""
    counts = ", ".join(f"{word} {count:,}" for word, count in correction.counts.items())
    parts = [heading(f"{len(correction):,} images: {counts}")]
    if correction.estimate:
        left, web = correction.estimate["left"], correction.estimate["web"]
        parts.append(line(f"estimated to be right: {web:.0%} before, {left:.0%} of those left"))
    return "".join(parts) + _by_class(correction)


def _by_class(correction: "Correction") -> str:
    """Return what became of the images of each class."""
    n_classes = len(correction.class_names)
    rows, classes = _labels(correction)
    codes = correction.decisions[rows]
    counts = np.stack([np.bincount(classes[codes == c], minlength=n_classes) for c in Decision])
    changed = counts[1:].sum(axis=0)
    most = np.argsort(-changed, kind="stable")[:MOST_CLASSES]
    listed = [(correction.class_names[c], *(f"{n:,}" for n in counts[:, c])) for c in most]
    more = n_classes - len(listed)
    words = [code.name.lower() for code in Decision]
    return table(listed, ["class", *words]) + (line(f"and {more:,} more") if more else "")


def _labels(correction: "Correction") -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of an image and a web label of it."""
    labels = correction.web_labels
    if labels.ndim == 1:
        return np.arange(len(labels)), labels
    rows, classes = np.nonzero(labels)
    return rows, classes


def explanation_html(why: Explanation) -> str:
    """Return why an image got its label as a small card."""
    before, after = ", ".join(why.web_labels), ", ".join(why.final_labels) or "none"
    witnesses = {"text match": why.text_match, "graph (p_g)": why.gnn, "CNN (p_c)": why.cnn,
                 "text factor": why.text, "final (p_f)": why.final}  # fmt: skip
    rows = [(name, numbers_text(values)) for name, values in witnesses.items() if values]
    links = {"neighbors": why.neighbors, "anchors": why.anchors}
    rows += [(name, links_text(found)) for name, found in links.items() if found]
    title = heading(f"image {why.row}: {before} → {after} ({why.decision})")
    return title + line(why.reason) + table(rows)
