"""Table 1, Google-500: ``python experiments/paper/table1_google_500.py ROOT -o OUT``.

A ResNet50 trained on web labels, by Co-teaching, and fine-tuned on p_g, p_c and p_f, judged on the
validation images of WebVision and of ImageNet.
"""

from typing import Any

import click

from command import begin, finish, open_work, paper_options
from paper_rows import judge_rows
from study import GOOGLE_500

COLUMNS = ("WebVision top-1", "WebVision top-5", "ImageNet top-1", "ImageNet top-5")
PAPER = {
    "Pretrained model": ("pretrained", (66.96, 82.68, 61.54, 78.89)),
    "Co-teaching": ("co-teaching", (67.61, 84.04, 62.18, 80.98)),
    "Fine-tuned by p_g only": ("p_g", (64.79, 81.22, 60.39, 78.76)),
    "Fine-tuned by p_c only": ("p_c", (67.83, 83.93, 62.68, 80.68)),
    "Fine-tuned by p_f": ("p_f", (68.14, 84.46, 63.16, 81.45)),
}


@click.command()
@paper_options
def main(**given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT (WebVision 1.0, official layout): the paper's ablation."""
    work = open_work(GOOGLE_500, given)
    if begin(work, [model for model, _ in PAPER.values()], given):
        page, rows = judge_rows(work, PAPER, COLUMNS)
        finish(work, "table1", "Table 1: Google-500", page, {"rows": rows}, given=given)


if __name__ == "__main__":
    main()
