"""``vsgraph correct``: the main job."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.asking import ASK, ask_meanings, can_ask
from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FILE, NEW, QUIET, SET, crawl_options, read_change, reading
from vsgraph.common.formatting import decided
from vsgraph.runs import Choices, preview, run
from vsgraph.runs.stages import NAMES


def given_purity(purity: float | None) -> dict[str, float]:
    """Return the setting, if it was given."""
    return {} if purity is None else {"purity": purity}


@main.command("correct")
@click.argument("path", metavar="[CRAWL]", type=CRAWL, required=False)
@click.option("-o", "--out", type=NEW, required=True, help="Folder of the run.")
@SET
@click.option(
    "--purity", type=click.FloatRange(0, 1), help="Wanted share of right labels; more rejects more."
)
@click.option("--meanings", type=FILE, help="Table of meanings, see vsgraph describe.")
@ASK
@click.option("--image-encoder", help="See vsgraph embed.  [default: lite0]")
@click.option("--text-encoder", help="See vsgraph embed.  [default: minilm]")
@click.option("--runtime", help="See vsgraph embed.  [default: auto]")
@click.option("--precision", help="See vsgraph embed.  [default: auto]")
@click.option("--features", type=FILE, help="Your own visual features (.npy), one row per image.")
@click.option("--text-embeddings", type=FILE, help="Your own vectors of texts (.npy).")
@click.option("--label-embeddings", type=FILE, help="Your own vectors of meanings (.npy).")
@click.option("--cnn-probs", type=FILE, help="Your own classifier's probabilities (.npy).")
@click.option("--graph", type=FILE, help="Your own similarity graph (.npz).")
@click.option("--probe/--no-probe", default=None, help="Train a linear probe for p_c.")
@click.option("--forget", is_flag=True, help="Start from the defaults again.")
@click.option("--redo-from", type=click.Choice(NAMES), help="Repeat a stage and all later ones.")
@click.option("--report/--no-report", default=True, help="Write the report.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done, and an estimate.")
@click.option("--anyway", is_flag=True, help="Start even if memory or disk seem too small.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Let a Ray cluster do the work: HOST:PORT, or auto for the one of this machine.",
)
@QUIET
@crawl_options
def correct_command(
    path: Path | None, out: Path, *, changes: tuple[str, ...], report: bool, dry_run: bool,
    anyway: bool, quiet: bool, ask: bool, cluster: str | None,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Correct the labels of CRAWL: read, encode, correct, report.

    Each stage is saved in the folder of the run when it is finished. A run that is started again
    resumes. If settings have changed, only the stages that depend on them are repeated. A run
    remembers its crawl and options: give only what should change, or --forget.

    CRAWL may be a .npy file of web labels. In this case also give --features, --text-embeddings and
    --label-embeddings.
    """
    started = time.monotonic()
    choices = {field.name: options.pop(field.name) for field in dataclasses.fields(Choices)}
    asked: dict[str, Any] = {
        "settings": dict(map(read_change, changes)) | given_purity(options.pop("purity")),
        "choices": {name: value for name, value in choices.items() if value is not None},
        "forget": options.pop("forget"),
        "redo_from": options.pop("redo_from"),
        "with_report": report,
        "reading": reading(**options),
    }
    if dry_run:
        preview(path, out, **asked, tell=click.echo)
        return
    asked["ask"] = ask_meanings if ask and can_ask() else None
    tell = None if quiet else click.echo
    finished = run(
        path, out, **asked, anyway=anyway, progress=not quiet, tell=tell, cluster=cluster
    )
    if quiet:
        return
    counts = finished.counts
    click.echo(
        f"{sum(counts.values()):,} images: {decided(counts)}; took "
        f"{time.monotonic() - started:.0f} s"
    )
    estimate = finished.correction.estimate
    if estimate is not None:
        click.echo(
            f"estimated: {estimate['left']:.0%} of the labels left are right (web labels: "
            f"{estimate['web']:.0%}); --purity sets the share"
        )
    if not finished.correction.is_checked:
        click.echo("unchecked meaning: without text, the majority of each class is believed")
    if "report" in finished.keys:
        click.echo(f"report: {finished.top_page.resolve()}")
