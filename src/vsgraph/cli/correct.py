"""``vsgraph correct``: the main job."""

import time
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FILE, SET, crawl_options, read_change, reading
from vsgraph.common.formatting import decided
from vsgraph.runs import preview, run
from vsgraph.runs.stages import NAMES

CHOICES = (
    "image_encoder", "text_encoder", "runtime", "precision", "meanings", "features",
    "text_embeddings", "label_embeddings", "cnn_probs", "graph", "probe",
)  # fmt: skip
FEW_CLASSES = 10  # with fewer, less is rejected
MORE = 0.7


@main.command("correct")
@click.argument("path", metavar="[CRAWL]", type=CRAWL, required=False)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder of the run."
)
@SET
@click.option("--meanings", type=FILE, help="Table of meanings, see vsgraph describe.")
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
@click.option("--redo-from", type=click.Choice(NAMES), help="Do a stage again, and all after it.")
@click.option("--report/--no-report", default=True, help="Write the report.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done and what it would take.")
@click.option("--anyway", is_flag=True, help="Start even if memory or disk seem too small.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@crawl_options
def correct_command(
    path: Path | None,
    out: Path,
    *,
    changes: tuple[str, ...],
    report: bool,
    dry_run: bool,
    anyway: bool,
    quiet: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Correct the labels of CRAWL: read, encode, correct, report.

    Every stage is kept in the folder of the run as it finishes. Started again, a run resumes; with
    other settings it does again only what depends on them. A run remembers its crawl and options:
    give only what should change, or --forget.

    CRAWL may be a .npy file of web labels; then give --features, --text-embeddings and
    --label-embeddings, too.
    """
    started = time.monotonic()
    choices = {name: options.pop(name) for name in CHOICES}
    asked: dict[str, Any] = {
        "settings": dict(map(read_change, changes)),
        "choices": {name: value for name, value in choices.items() if value is not None},
        "forget": options.pop("forget"),
        "redo_from": options.pop("redo_from"),
        "with_report": report,
        "reading": reading(**options),
    }
    if dry_run:
        preview(path, out, **asked, tell=click.echo)
        return
    tell = None if quiet else click.echo
    finished = run(path, out, **asked, anyway=anyway, progress=not quiet, tell=tell)
    if quiet:
        return
    counts, settings = finished.counts, finished.settings
    click.echo(
        f"{sum(counts.values()):,} images: {decided(counts)}; took "
        f"{time.monotonic() - started:.0f} s"
    )
    few = len(finished.correction.class_names) < FEW_CLASSES
    lower = settings.reject_threshold > 0 and settings.reject_nearness < MORE
    if few and lower and not counts["reject"]:
        click.echo(
            "no image was rejected; if some show none of the classes, reject more by --set "
            f"reject_nearness={MORE} (now {settings.reject_nearness})"
        )
    if "report" in finished.keys:
        click.echo(f"report: {finished.top_page.resolve()}")
