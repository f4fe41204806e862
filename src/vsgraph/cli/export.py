"""``vsgraph export``."""

from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, NEW, crawl_options, reading
from vsgraph.crawls import read_crawl
from vsgraph.exports import FORMATS, export
from vsgraph.result.correction import Correction
from vsgraph.runs import Run

FORMAT_OPTIONS = ("mode", "shard_images", "shard_bytes", "url", "scores", "n_neighbors", "soft")


@main.command("export")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--crawl", type=CRAWL, help="The crawl, if RUN is only a correction.")
@click.option("--to", type=click.Choice(list(FORMATS)), required=True, help="The format.")
@click.option("-o", "--out", type=NEW, required=True, help="The file or folder to write.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier export.")
@click.option("--rejected", is_flag=True, help="Include rejected images, marked as such.")
@click.option("--mode", type=click.Choice(["link", "hardlink", "copy"]),
              help="imagefolder, hf: how pictures get there.")  # fmt: skip
@click.option("--shard-images", type=click.IntRange(1), help="webdataset: images per shard.")
@click.option("--shard-bytes", type=click.IntRange(1), help="webdataset: bytes per shard.")
@click.option("--url", help="labelstudio: what precedes the path of each image.")
@click.option("--scores", type=click.Choice(["final", "gnn", "cnn"]),
              help="cleanlab: which probabilities.")  # fmt: skip
@click.option("--neighbors", "n_neighbors", type=click.IntRange(1),
              help="cleanlab: neighbors per image.")  # fmt: skip
@click.option("--soft", is_flag=True, default=None, help="imglist: write soft labels, too.")
@crawl_options
def export_command(
    path: Path, crawl: Path | None, to: str, out: Path, *, overwrite: bool, rejected: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Write the corrected labels of RUN in a format that other programs read.

    RUN is a folder of `vsgraph correct`. If it is a folder of Correction.save, also give --crawl,
    the crawl that was corrected: the same images in the same order.
    """
    values = {name: options.pop(name) for name in FORMAT_OPTIONS}
    own = {name: value for name, value in values.items() if value is not None}
    if crawl is None:
        run = Run.open(path)
        corrected, correction = run.crawl, run.correction
    else:
        corrected, correction = read_crawl(crawl, **reading(**options)), Correction.load(path)
    exported = export(
        corrected, correction, out, to=to, overwrite=overwrite, rejected=rejected, progress=True,
        **own,
    )  # fmt: skip
    click.echo(str(exported))
