"""``vsgraph evaluate``, ``compare``, ``sweep``, ``progressive`` and ``report``."""

import json
import webbrowser
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import (
    CRAWL,
    FOLDER,
    JSON,
    NEW,
    all_options,
    how_to_review,
    read_change,
    split_pair,
)
from vsgraph.common.files import mend_leftovers, write_whole
from vsgraph.errors import InputError
from vsgraph.judge.comparison import Comparison, compare
from vsgraph.judge.evaluation import Evaluation, evaluate
from vsgraph.judge.sweep import check_measure, sweep
from vsgraph.judge.sweep_table import SweepTable
from vsgraph.runs import Run, report_again

OUT = click.option("-o", "--out", type=NEW, help="Folder for the table and the chart.")
truth_options = all_options([
    click.option("--truth", type=CRAWL,
                 help="Table of paths and true classes; an empty cell means unknown."),
    click.option("--label-separator", metavar="TEXT", help="Separator of several true classes."),
])  # fmt: skip


@main.command("evaluate")
@click.argument("path", metavar="RUN", type=FOLDER)
@truth_options
@click.option("-o", "--out", type=NEW, help="Write a Markdown page.")
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
@JSON
def evaluate_command(
    path: Path, *, truth: Path | None, label_separator: str | None, out: Path | None,
    overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    """Judge the labels of RUN by the truth: before and after, by class, noise found and missed."""
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists already; choose another name, or pass --overwrite")
    run = Run.open(path)
    shown, known = run.read_truth(truth, label_separator=label_separator)
    judged = evaluate(run.correction, shown, known=known)
    _print(judged, as_json=as_json)
    if out is not None:
        mend_leftovers(out.parent)
        write_whole(out, judged.to_markdown())


@main.command("compare")
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@truth_options
@JSON
def compare_command(
    first: Path, second: Path, *, truth: Path | None, label_separator: str | None, as_json: bool
) -> None:
    """Compare the labels of two runs on the same crawl, or before and after it has grown.

    Images are matched by their paths and web labels, classes by their names.
    """
    one, two = Run.open(first), Run.open(second)
    rows = one.rows_in_common(two)
    if not len(rows[0]):
        raise InputError(f"{first} and {second} have no image in common: their paths all differ")
    shown, known = _known_truth(one, truth, label_separator)
    compared = compare(one.correction, two.correction, shown, known=known, rows=rows)
    _print(compared, as_json=as_json)


def _print(result: Evaluation | Comparison, *, as_json: bool) -> None:
    """Print a result as text or JSON."""
    click.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else str(result))


def _known_truth(run: Run, table: Path | None, separator: str | None) -> tuple[Any, Any]:
    """Return the truth of a run's images and where it is known, or None for both."""
    if table is None and run.crawl.truth is None:
        return None, None
    return run.read_truth(table, label_separator=separator)


@main.command("sweep")
@click.argument("run", type=FOLDER)
@click.option(
    "--grid", "grids", multiple=True, required=True, metavar="NAME=A,B,...",
    help="Values of a setting to try, as in n_neighbors=5,10,20 (or k, w, m, L, lambda, tau_f).",
)  # fmt: skip
@OUT
@click.option("--measure", help="What to draw with -o, as in right or keep.")
@truth_options
def sweep_command(
    run: Path, *, grids: tuple[str, ...], out: Path | None, measure: str | None,
    truth: Path | None, label_separator: str | None,
) -> None:  # fmt: skip
    """Correct RUN's crawl with every combination of some settings; common stages are done once."""
    grid = dict(map(_read_grid, grids))
    if len(grid) < len(grids):
        raise InputError("--grid names a setting twice; give all its values in one, as in k=3,5,7")
    table = _sweep(Run.open(run), grid, truth, label_separator, measure)
    _write_sweep(table, out, "sweep", measure)


@main.command("progressive")
@click.argument("run", type=FOLDER)
@click.option("--rounds", type=click.IntRange(2), default=4, show_default=True,
              help="Highest number of rounds.")  # fmt: skip
@OUT
@truth_options
def progressive_command(
    run: Path, *, rounds: int, out: Path | None, truth: Path | None, label_separator: str | None
) -> None:
    """Let sure labels become anchors of the next round, and show the result of each round."""
    grid = {"rounds": list(range(1, rounds + 1))}
    _write_sweep(_sweep(Run.open(run), grid, truth, label_separator), out, "progressive")


def _sweep(
    run: Run, grid: dict[str, list[Any]], truth: Path | None, label_separator: str | None,
    measure: str | None = None,
) -> SweepTable:  # fmt: skip
    """Sweep, and print the table."""
    shown, known = _known_truth(run, truth, label_separator)
    if measure is not None:
        several = run.crawl.has_several_labels
        check_measure(measure, judged=shown is not None, several=several)
    table = sweep(
        **run.arrays(), grid=grid, settings=run.settings, truth=shown, known=known, progress=True
    )
    click.echo(str(table))
    return table


def _write_sweep(
    table: SweepTable, out: Path | None, name: str, measure: str | None = None
) -> None:
    """Write a sweep as CSV, Markdown, JSON and SVG, if a folder is given."""
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    mend_leftovers(out)
    write_whole(out / f"{name}.csv", table.to_csv())
    write_whole(out / f"{name}.md", table.to_markdown())
    write_whole(out / f"{name}.json", table.to_json())
    write_whole(out / f"{name}.svg", table.to_svg(measure))
    click.echo(f"written to {out.resolve()}")


def _read_grid(grid: str) -> tuple[str, list[Any]]:
    """Read NAME=A,B,..."""
    name, values = split_pair(grid, "--grid", "NAME=A,B,...", "k=5,10")
    return name, [read_change(f"{name}={value}")[1] for value in values.split(",")]


@main.command("report")
@click.argument("run", type=FOLDER)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
def report_command(run: Path, *, show: bool) -> None:
    """Write the report of RUN again, and print its path."""
    page = report_again(run, progress=True).top_page.resolve()
    click.echo(f"report: {page}")
    click.echo(how_to_review(run))
    if show:
        webbrowser.open(page.as_uri())
