"""A run as a notebook shows it: what became of its images, grids of them, one image explained."""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_one_of
from vsgraph.common.notebook import Html, heading, line
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.showing import pictures_html
from vsgraph.errors import InputError, is_meant
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.result.showing import explanation_html

DONE = {"kept": Decision.KEEP, "relabeled": Decision.RELABEL, "rejected": Decision.REJECT}
N_EACH = 6  # pictures of each decision

Rows = NDArray[np.intp]


def run_html(crawl: Crawl, correction: Correction, summary: str) -> str:
    """Return a run: its counts, and some pictures of each decision."""
    parts = [summary]
    for word in DONE:
        rows = rows_of(correction, None, word)
        if len(rows):
            parts += [heading(f"{word}: {len(rows):,}"), _grid(crawl, correction, rows[:N_EACH])]
    return "".join(parts)


def show(
    crawl: Crawl, correction: Correction, class_name: str | None, decision: str | None, n: int
) -> Html:
    """Return a grid of images of a class and a decision."""
    rows = rows_of(correction, class_name, decision)
    title = f"{class_name or 'all classes'}, {decision or 'all'}: {len(rows):,} images"
    title += f", {n} shown" if len(rows) > n else ""
    return Html(heading(title) + _grid(crawl, correction, rows[:n]), title)


def explained(crawl: Crawl, correction: Correction, row: int) -> Html:
    """Return why an image got its label, with its picture and those that look most like it."""
    why = correction.explain(row)
    near = np.array([row, *(link.row for link in why.neighbors)], np.intp)
    captions = [f"image {row}", *(f"{link.row}: {link.label}" for link in why.neighbors)]
    text = next(iter(crawl.texts(np.array([row]))))
    shown = pictures_html(crawl, near, captions) + line(f"text: {text or '-'}")
    return Html(shown + explanation_html(why), f"{why}\n  text         {text or '-'}")


def rows_of(correction: Correction, class_name: str | None, decision: str | None) -> Rows:
    """Return the images of a class (as crawled, or relabeled to it) and a decision.

    Rejected ones begin with those whose label is the least probable, others with the surest.
    """
    chosen = np.ones(len(correction), bool)
    if decision is not None:
        check_one_of("decision", decision, tuple(DONE))
        chosen &= correction.decisions == DONE[decision]
    if class_name is not None:
        if class_name not in correction.class_names:
            meant = is_meant(class_name, correction.class_names)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise InputError(f"there is no class {class_name!r}{hint}")
        number = correction.class_names.index(class_name)
        web, final = (
            labels == number if labels.ndim == 1 else labels[:, number]
            for labels in (correction.web_labels, correction.final_labels)
        )
        chosen &= web | final
    rows = np.flatnonzero(chosen)
    rejected = correction.decisions[rows] == Decision.REJECT
    doubt = np.where(rejected, correction.label_quality[rows], 1 - correction.confidence[rows])
    return rows[np.argsort(doubt, kind="stable")]


def _grid(crawl: Crawl, correction: Correction, rows: Rows) -> str:
    captions = []
    for row in rows.tolist():
        before = ", ".join(correction.names_of(correction.web_labels[row]))
        after = ", ".join(correction.names_of(correction.final_labels[row]))
        became = f"{before} {correction.confidence[row]:.2f}"
        if not after:
            became = f"{before}: {correction.sense(row) or 'rejected'}"
        elif after != before:
            became = f"{before} → {after} {correction.confidence[row]:.2f}"
        captions.append(f"{row}: {became}")
    return pictures_html(crawl, rows, captions)
