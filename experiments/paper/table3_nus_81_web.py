"""Table 3, NUS-81-Web: ``python experiments/paper/table3_nus_81_web.py ROOT -o OUT``.

A ResNet50 that knows ImageNet, trained on NUS-WIDE's user tags, then fine-tuned on p_c and on p_f,
judged by people's labels: C-F1 and O-F1 of the three likeliest classes, and mAP.
"""

from typing import Any

import click

from command import begin, finish, open_work, paper_options
from paper_rows import judge_rows
from study import NUS_81_WEB

COLUMNS = ("C-F1", "O-F1", "mAP")
PAPER = {
    "Pretrained model": ("pretrained", (37.51, 39.59, 43.94)),
    "Fine-tuned by p_c only": ("p_c", (37.62, 39.15, 43.99)),
    "Fine-tuned by p_f": ("p_f", (38.58, 40.16, 44.83)),
}


@click.command()
@paper_options
def main(**given: Any) -> None:  # noqa: ANN401
    """NUS-81-Web in ROOT (NUS-WIDE, official layout, with its photos)."""
    work = open_work(NUS_81_WEB, given)
    if begin(work, [model for model, _ in PAPER.values()], given):
        page, rows = judge_rows(work, PAPER, COLUMNS)
        finish(work, "table3", "Table 3: NUS-81-Web", page, {"rows": rows}, given=given)


if __name__ == "__main__":
    main()
