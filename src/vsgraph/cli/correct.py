"""``vsgraph correct``: the main job."""

import time
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FILE, SET, crawl_options, read_change, reading
from vsgraph.common.formatting import decided
from vsgraph.runs import Choices, run
from vsgraph.runs.folder import STAGES
from vsgraph.runs.running import preview
from vsgraph.settings import Settings

GIVEN = (
    "image_encoder", "text_encoder", "runtime", "precision", "meanings", "features",
    "text_embeddings", "label_embeddings", "cnn_probs", "graph", "probe",
)  # fmt: skip
FEW_CLASSES = 10  # with fewer, less is rejected
MORE = 0.7


@main.command("correct")
@click.argument("path", metavar="CRAWL", type=CRAWL)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder of the run."
)
@SET
@click.option("--meanings", type=FILE, help="Table of meanings, see vsgraph describe.")
@click.option("--image-encoder", default="lite0", show_default=True, help="See vsgraph embed.")
@click.option("--text-encoder", default="minilm", show_default=True, help="See vsgraph embed.")
@click.option("--runtime", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--precision", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--features", type=FILE, help="Your own visual features (.npy), a row an image.")
@click.option("--text-embeddings", type=FILE, help="Your own vectors of texts (.npy).")
@click.option("--label-embeddings", type=FILE, help="Your own vectors of meanings (.npy).")
@click.option("--cnn-probs", type=FILE, help="Your own classifier's probabilities (.npy).")
@click.option("--graph", type=FILE, help="Your own similarity graph (.npz).")
@click.option("--probe/--no-probe", default=True, help="Train a linear probe for p_c.")
@click.option("--redo-from", type=click.Choice(STAGES), help="Do a stage again, and all after it.")
@click.option("--report/--no-report", default=True, help="Write the report.")
@click.option("--dry-run", is_flag=True, help="Only say what it would take, and do again.")
@click.option("--anyway", is_flag=True, help="Start even if memory or disk seem too small.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@crawl_options
def correct_command(
    path: Path,
    out: Path,
    *,
    changes: tuple[str, ...],
    redo_from: str | None,
    report: bool,
    dry_run: bool,
    anyway: bool,
    quiet: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Correct the labels of CRAWL: read, encode, correct, report.

    Every stage is kept in the folder of the run as it finishes. Started again, it takes up where it
    was; with other settings it does again only what depends on them. What is not given has its
    default again, also where the run was begun otherwise; a line says what changed.
    """
    started = time.monotonic()
    choices = Choices(**{name: options.pop(name) for name in GIVEN})
    settings = Settings.from_dict(dict(map(read_change, changes)))
    how = reading(**options)
    given: dict[str, Any] = {
        "settings": settings, "choices": choices, "reading": how, "redo_from": redo_from,
        "with_report": report,
    }  # fmt: skip
    if dry_run:
        preview(path, out, **given, tell=click.echo)
        return
    tell = None if quiet else click.echo
    made = run(path, out, **given, anyway=anyway, progress=not quiet, tell=tell)
    if quiet:
        return
    click.echo(
        f"{len(made.correction):,} images: {decided(made.counts)}; took "
        f"{time.monotonic() - started:.0f} s"
    )
    few = len(made.correction.class_names) < FEW_CLASSES
    lower = settings.reject_threshold > 0 and settings.reject_nearness < MORE
    if few and lower and not made.counts["reject"]:
        click.echo(
            "no image was rejected; if some show none of the classes, reject more by --set "
            f"reject_nearness={MORE} (now {settings.reject_nearness})"
        )
    if report:
        click.echo(f"report: {made.page.resolve()}")
