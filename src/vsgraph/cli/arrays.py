"""``vsgraph correct-arrays``."""

import time
from pathlib import Path

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import FILE, SET, read_change
from vsgraph.common.files import open_array, refuse_taken
from vsgraph.common.formatting import decided
from vsgraph.method.estimate import check_room
from vsgraph.runs.arrays import ArrayFiles, peak_memory
from vsgraph.settings import Settings


@main.command("correct-arrays")
@click.option("--features", type=FILE, required=True, help="Visual features, a row an image.")
@click.option("--text-embeddings", type=FILE, required=True, help="Text, a row an image.")
@click.option("--label-embeddings", type=FILE, required=True, help="Meanings, a row a class.")
@click.option(
    "--web-labels", type=FILE, required=True,
    help="Class numbers, or a table of booleans where images have several.",
)  # fmt: skip
@click.option("--cnn-probs", type=FILE, help="A classifier's probabilities, a column a class.")
@click.option("--class-names", type=FILE, help="Text file with a name a line.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="New folder.")
@SET
@click.option("--overwrite", is_flag=True, help="Replace a correction that is there already.")
@click.option("--dry-run", is_flag=True, help="Only say what it would take.")
@click.option("--anyway", is_flag=True, help="Start even if memory or disk seem too small.")
def correct_arrays_command(
    out: Path,
    changes: tuple[str, ...],
    *,
    overwrite: bool,
    dry_run: bool,
    anyway: bool,
    **paths: Path | None,
) -> None:
    """Correct the labels of a crawl given as .npy files (fp16 or fp32, read in blocks).

    Says what it will take before it starts, and leaves a folder that vsgraph.Correction.load reads.
    Settings and their defaults: python -c 'import vsgraph; help(vsgraph.Settings)'.
    """
    started = time.monotonic()
    settings = Settings.from_dict(dict(map(read_change, changes)))
    files = ArrayFiles(**paths)  # type: ignore[arg-type]
    expected = files.expect(settings)
    click.echo(f"expected: {expected}")
    if not anyway:
        check_room(expected, out)
    refuse_taken(out, overwrite=overwrite)
    if dry_run:
        return
    correction = files.correct(settings, progress=True)
    correction.save(out, overwrite=overwrite)
    counts = correction.counts_with(open_array(files.features))
    click.echo(
        f"{len(correction)} images: {decided(counts)}; recall of the graph "
        f"{correction.graph_recall:.3f}"
    )
    click.echo(
        f"took {time.monotonic() - started:.0f} s and {peak_memory() / 1e9:.1f} GB of memory, "
        f"mapped files included; saved in {out.resolve()}"
    )
