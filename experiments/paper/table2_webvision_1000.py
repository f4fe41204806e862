"""Table 2, WebVision-1000: ``python experiments/paper/table2_webvision_1000.py ROOT -o OUT``.

A ResNet50 trained on web labels, then fine-tuned on p_c and on p_f, judged on the validation images
of WebVision and of ImageNet. The paper's other rows are other papers' and not repeated.
"""

from typing import Any

import click

from command import begin, finish, open_work, paper_options
from paper_rows import judge_rows
from study import WEBVISION_1000
from table1_google_500 import COLUMNS

PAPER = {
    "Pretrained model": ("pretrained", (74.25, 89.84, 68.28, 86.23)),
    "Fine-tuned by p_c only": ("p_c", (75.15, 89.93, 69.07, 86.76)),
    "Fine-tuned by p_f": ("p_f", (75.48, 90.15, 69.42, 87.29)),
}


@click.command()
@paper_options
def main(**given: Any) -> None:  # noqa: ANN401
    """WebVision-1000 in ROOT (WebVision 1.0, official layout)."""
    work = open_work(WEBVISION_1000, given)
    if begin(work, [model for model, _ in PAPER.values()], given):
        page, rows = judge_rows(work, PAPER, COLUMNS)
        finish(work, "table2", "Table 2: WebVision-1000", page, {"rows": rows}, given=given)


if __name__ == "__main__":
    main()
