"""Table 4, open set: ``python experiments/paper/table4_open_set.py ROOT -o OUT``.

The models of table 1, in whose folder this is best done, judged on the validation images of all
classes: those that Google-500 leaves out should get no label. Both readings of the paper's words.
"""

from typing import Any

import click

from command import begin, finish, open_work, paper_options
from paper_rows import judge_rows
from study import GOOGLE_500

READINGS = {
    "every": "Every class whose probability is above 0.2 is given",
    "highest": "The likeliest class is given if its probability is above 0.2",
}
PAPER = {
    "Pretrained model": ("pretrained", (40.44, 67.23, 50.50, 37.75, 60.36, 46.45)),
    "Co-teaching": ("co-teaching", (40.38, 69.21, 51.00, 38.27, 63.58, 47.78)),
    "Fine-tuned by p_c": ("p_c", (40.34, 68.21, 50.70, 38.54, 62.10, 47.56)),
    "Fine-tuned by p_g": ("p_g", (59.64, 55.63, 57.56, 56.74, 48.89, 52.52)),
    "Fine-tuned by p_f": ("p_f", (52.47, 62.95, 57.24, 49.66, 56.36, 52.80)),
}


def columns(reading: str) -> list[str]:
    """Return the measures of the table in one reading.

    >>> columns("every")[0]
    'WebVision C-P (every)'
    """
    names = ("C-P", "C-R", "C-F1")
    return [f"{s} {name} ({reading})" for s in GOOGLE_500.tests for name in names]


@click.command()
@paper_options
def main(**given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT, tested on all classes of WebVision: the others are unknown."""
    work = open_work(GOOGLE_500, given)
    if not begin(work, [model for model, _ in PAPER.values()], given, open_set=True):
        return
    pages, rows = [], {}
    for reading, words in READINGS.items():
        page, rows[reading] = judge_rows(work, PAPER, columns(reading), open_set=True)
        pages.append(f"{words}:\n\n{page}")
    finish(work, "table4", "Table 4: Google-500, open set", "\n\n".join(pages), {"rows": rows},
           given=given)  # fmt: skip


if __name__ == "__main__":
    main()
