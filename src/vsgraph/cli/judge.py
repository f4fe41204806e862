"""``vsgraph evaluate``, ``compare``, ``sweep``, ``progressive`` and ``report``."""

import json
import webbrowser
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, read_change
from vsgraph.common.files import write_whole
from vsgraph.errors import InputError
from vsgraph.judge.comparison import compare
from vsgraph.judge.evaluation import evaluate
from vsgraph.judge.sweep import check_measure, sweep
from vsgraph.judge.sweep_table import SweepTable
from vsgraph.runs import Run, report_again

TRUTH = click.option(
    "--truth", type=CRAWL, help="Table of paths and true classes; an empty cell: unknown."
)
SEPARATOR = click.option("--label-separator", metavar="TEXT", help="Between several true classes.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@main.command("evaluate")
@click.argument("run", type=FOLDER)
@TRUTH
@SEPARATOR
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write a Markdown page.")
@click.option("--overwrite", is_flag=True, help="Replace a page that is there already.")
@JSON
def evaluate_command(
    run: Path,
    *,
    truth: Path | None,
    label_separator: str | None,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Judge the labels of RUN by the truth: before and after, by class, noise found and missed."""
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists already; choose another name, or say --overwrite")
    found = Run.open(run)
    shown, known = found.truth(truth, label_separator=label_separator)
    judged = evaluate(found.correction, shown, known=known)
    click.echo(json.dumps(judged.to_dict(), indent=2, allow_nan=False) if as_json else str(judged))
    if out is not None:
        write_whole(out, judged.to_markdown())


@main.command("compare")
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@TRUTH
@SEPARATOR
@JSON
def compare_command(
    first: Path, second: Path, *, truth: Path | None, label_separator: str | None, as_json: bool
) -> None:
    """Compare the labels of two runs on the same crawl."""
    one, two = Run.open(first), Run.open(second)
    shown, known = None, None
    if truth is not None or one.crawl.truth is not None:
        shown, known = one.truth(truth, label_separator=label_separator)
    found = compare(one.correction, two.correction, shown, known=known)
    click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else str(found))


@main.command("sweep")
@click.argument("run", type=FOLDER)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    required=True,
    metavar="NAME=A,B,...",
    help="Values of a setting to try, as in n_neighbors=5,10,20 (or k, w, m, L, lambda, tau_f).",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for table and picture.")
@click.option("--measure", help="What to draw with -o, as in right or keep.")
@TRUTH
@SEPARATOR
def sweep_command(
    run: Path,
    *,
    grids: tuple[str, ...],
    out: Path | None,
    measure: str | None,
    truth: Path | None,
    label_separator: str | None,
) -> None:
    """Correct RUN's crawl by every combination of some settings; common stages are made once."""
    grid = dict(map(_read_grid, grids))
    if len(grid) < len(grids):
        raise InputError("--grid names a setting twice; give all its values in one, as in k=3,5,7")
    table = _sweep(Run.open(run), grid, truth, label_separator, measure)
    _write_sweep(table, out, "sweep", measure)


@main.command("progressive")
@click.argument("run", type=FOLDER)
@click.option("--rounds", type=click.IntRange(2), default=4, show_default=True, help="Up to.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for table and picture.")
@TRUTH
@SEPARATOR
def progressive_command(
    run: Path, *, rounds: int, out: Path | None, truth: Path | None, label_separator: str | None
) -> None:
    """Let sure labels become anchors of the next round, and say what each round gives."""
    grid = {"rounds": list(range(1, rounds + 1))}
    _write_sweep(_sweep(Run.open(run), grid, truth, label_separator), out, "progressive")


def _sweep(
    run: Run,
    grid: dict[str, list[Any]],
    truth: Path | None,
    label_separator: str | None,
    measure: str | None = None,
) -> SweepTable:
    """Sweep, and print the table."""
    shown, known = None, None
    if truth is not None or run.crawl.truth is not None:
        shown, known = run.truth(truth, label_separator=label_separator)
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
    """Write a sweep as CSV, Markdown, JSON and SVG, where a folder is given."""
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / f"{name}.csv", table.to_csv())
    write_whole(out / f"{name}.md", table.to_markdown())
    write_whole(out / f"{name}.json", table.to_json())
    write_whole(out / f"{name}.svg", table.to_svg(measure))
    click.echo(f"written to {out.resolve()}")


def _read_grid(grid: str) -> tuple[str, list[Any]]:
    """Read NAME=A,B,..."""
    name, equals, values = grid.partition("=")
    if not equals or not values:
        raise InputError(f"--grid needs NAME=A,B,..., as in k=5,10, got {grid!r}")
    return name, [read_change(f"{name}={value}")[1] for value in values.split(",")]


@main.command("report")
@click.argument("run", type=FOLDER)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
def report_command(run: Path, *, show: bool) -> None:
    """Write the report of RUN anew, and say where it is."""
    page = report_again(run, progress=True).top_page.resolve()
    click.echo(f"report: {page}")
    if show:
        webbrowser.open(page.as_uri())
