"""Rows of the paper's tables: models trained, tested and set beside the paper's figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from command import paper_table
from work import Work

Paper = Mapping[str, tuple[str, tuple[float, ...]]]
NAMES = {"top_1": "top-1", "top_5": "top-5"}


def judge_rows(
    work: Work, paper: Paper, columns: Sequence[str], *, open_set: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    """Train and test the model of each row.

    Parameters
    ----------
    work : Work
        Data and folder.
    paper : mapping of str to (str, tuple of float)
        By method: the model, and the paper's figures, in percent.
    columns : sequence of str
        The measures of the figures: the name of the test set and that of the measure.
    open_set : bool
        Judge on all classes.

    Returns
    -------
    page : str
        The table.
    rows : list of dict
        `method`, `model`, `found` (shares), `paper` (percent), and everything that was measured.
    """
    rows = []
    for method, (name, figures) in paper.items():
        model = work.model(name)
        tested = {s: work.tested(model, s, open_set=open_set) for s in work.study.tests}
        measured = {s: one.measures for s, one in tested.items()}
        rows.append({
            "method": method,
            "model": str(model),
            "found": {column: _find(measured, column) for column in columns},
            "paper": dict(zip(columns, figures, strict=True)),
            "measured": measured,
            "images": {s: one.n_images for s, one in tested.items()},
        })  # fmt: skip
    return paper_table(rows), rows


def _find(measured: Mapping[str, Mapping[str, float]], column: str) -> float:
    """Return the measure that a column is of."""
    return next(
        value
        for name, measures in measured.items()
        for measure, value in measures.items()
        if column in {f"{name} {NAMES.get(measure, measure)}", measure}
    )
