"""Figure 5, hyperparameters: ``python experiments/paper/figure5_hyperparameters.py ROOT -o OUT``.

Average accuracy on Google-500 over k and w, and over tau_f and lambda, one curve a value of the
second. The paper prints curves but no numbers, and not which values it tried; those here are its
ranges. Run it in the folder of table 1.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import click

from command import begin, finish, open_work, paper_options
from measuring import TUNED, How, Points, pretrained_worth
from study import GOOGLE_500
from vsgraph.common.files import write_whole
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines
from vsgraph.method.algorithm import Solver
from vsgraph.method.inputs import check_inputs
from vsgraph.settings import by_full_name
from work import Work

PAPER = {"pretrained": 72.52, "k = 5, w = 0": 74.30, "tau_f = 0.7, lambda = 0.5": 74.30}
GRIDS = {
    "a": {"k": (3, 5, 8, 10), "w": (0.0, 1.0, 5.0)},
    "b": {"tau_f": (0.5, 0.6, 0.7, 0.8, 0.9), "lambda": (0.0, 0.5, 1.0)},
}
SMOKE = {"a": {"k": (3, 4), "w": (0.0, 1.0)}, "b": {"tau_f": (0.5, 0.9), "lambda": (0.0, 0.5)}}
Grid = dict[str, Sequence[Any]]


def sweep(work: Work, points: Points, grid: Grid) -> list[dict[str, Any]]:
    """Return the average accuracy at each point of a grid; corrections share what they can."""
    made = work.corrected()
    names = made.correction.class_names
    solver = Solver(check_inputs(**made.arrays(), class_names=names), progress=True)
    (across, xs), (along, ys) = grid.items()
    rows = []
    for x in xs:
        for y in ys:
            settings = dataclasses.replace(made.settings, **by_full_name({across: x, along: y}))
            name = f"{across} = {x:g}, {along} = {y:g}"
            found = points.find(name, lambda s=settings: (solver.correct(s), {}))
            rows.append({across: x, along: y, "average": found["average"], "point": name})
    return rows


def draw(rows: Sequence[dict[str, Any]], grid: Grid) -> str:
    """Draw average accuracy over the first parameter, a line for each value of the second."""
    across, along = grid
    lines: dict[str, list[tuple[Any, float]]] = {}
    for row in rows:
        lines.setdefault(f"{along} = {row[along]:g}", []).append(
            (row[across], 100 * row["average"])
        )
    title = f"Average accuracy with {across} and {along}"
    return draw_lines({"": lines}, title=title, x_name=across, y_name="average accuracy, %")


@click.command()
@TUNED
@paper_options
def main(how: How, **given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT: average accuracy over k and w, and over tau_f and lambda."""
    work = open_work(GOOGLE_500, given)
    grids = SMOKE if given["smoke"] else GRIDS
    n_points = sum(len(a) * len(b) for a, b in (grid.values() for grid in grids.values()))
    if not begin(work, ["pretrained"], given, points=n_points, tuned=how):
        return
    points = Points(work, how, work.by_text / "figure5")
    values: dict[str, Any] = {"tuned": how, "pretrained": pretrained_worth(work)}
    table = [["pretrained", f"{100 * values['pretrained']:.2f}", PAPER["pretrained"]]]
    for panel, grid in grids.items():
        values[panel] = sweep(work, points, grid)
        write_whole(work.by_text / f"figure5{panel}.svg", draw(values[panel], grid))
        for row in values[panel]:
            told = f"{100 * row['average']:.2f}"
            table.append([row["point"], told, PAPER.get(row["point"], "-")])
    page = f"Fine-tuned: {'the last layer alone' if how == 'head' else 'the network'}.\n\n"
    page += markdown_table(["point", "average accuracy", "paper (the network)"], table)
    page += "\n\n![over k and w](figure5a.svg)\n![over tau_f and lambda](figure5b.svg)"
    finish(work, "figure5", "Figure 5: hyperparameters", page, values, given=given)


if __name__ == "__main__":
    main()
