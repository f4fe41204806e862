"""``vsgraph export``."""

from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, crawl_options, reading
from vsgraph.crawls import read_crawl
from vsgraph.exports import FORMATS, cleanlab_bytes, export
from vsgraph.result.correction import Correction
from vsgraph.runs import Run

OWN = ("mode", "rejected", "metadata", "shard_images", "shard_bytes", "url", "scores",
       "n_neighbors", "soft")  # fmt: skip


@main.command("export")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--crawl", type=CRAWL, help="The crawl, where RUN is a correction by itself.")
@click.option("--to", type=click.Choice(FORMATS), required=True, help="The format.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Where to.")
@click.option("--overwrite", is_flag=True, help="Replace an export that is there already.")
@click.option(
    "--mode",
    type=click.Choice(["link", "hardlink", "copy"]),
    help="imagefolder, hf: how pictures get there.",
)
@click.option(
    "--rejected", is_flag=True, default=None, help="Take rejected images along, marked as such."
)
@click.option("--metadata", type=click.Choice(["jsonl", "csv"]), help="hf: which file.")
@click.option("--shard-images", type=click.IntRange(1), help="webdataset: images a shard.")
@click.option("--shard-bytes", type=click.IntRange(1), help="webdataset: bytes a shard.")
@click.option("--url", help="labelstudio: what stands before each path.")
@click.option(
    "--scores", type=click.Choice(["final", "gnn", "cnn"]), help="cleanlab: which probabilities."
)
@click.option("--neighbors", "n_neighbors", type=click.IntRange(1), help="cleanlab: neighbors.")
@click.option("--soft", is_flag=True, default=None, help="imglist: soft labels beside it.")
@crawl_options
def export_command(
    path: Path,
    crawl: Path | None,
    to: str,
    out: Path,
    *,
    overwrite: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Write the corrected labels of RUN in a format that other programs read.

    RUN is what `vsgraph correct` left; or what `vsgraph correct-arrays` or Correction.save left,
    then say by --crawl what it was made of: the same images, row by row.
    """
    own = {name: options.pop(name) for name in OWN}
    given = {name: value for name, value in own.items() if value is not None}
    if crawl is None:
        run = Run.open(path)
        found, correction = run.crawl, run.correction
    else:
        found, correction = read_crawl(crawl, **reading(**options)), Correction.load(path)
    if to == "cleanlab":
        click.echo(f"writing {cleanlab_bytes(correction) / 1e9:.2f} GB")
    done = export(found, correction, out, to=to, overwrite=overwrite, progress=True, **given)
    click.echo(str(done))
