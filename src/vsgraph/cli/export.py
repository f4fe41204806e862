"""``vsgraph export``."""

from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import (
    CRAWL,
    CRAWL_OPTIONS,
    FOLDER,
    NEW,
    all_options,
    official_split,
    reading,
)
from vsgraph.crawls import read_crawl
from vsgraph.errors import InputError
from vsgraph.exports import FORMATS, export
from vsgraph.result.correction import Correction
from vsgraph.runs import Run
from vsgraph.screening.screened import DROPS

OWN_OPTIONS = (
    "mode", "shard_images", "shard_bytes", "url", "scores", "n_neighbors", "soft", "rejected",
    "min_confidence", "top", "purity",
)  # fmt: skip


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
@click.option("--min-confidence", type=click.FloatRange(0, 1),
              help="Leave out labels that are less probable.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), help="Only so many of each class, the surest first.")
@click.option("--purity", type=click.FloatRange(0, 1),
              help="Only as many as leave this share right, by estimate.")  # fmt: skip
@click.option("--drop", metavar="KINDS", help=f"Leave out, joined by commas: {', '.join(DROPS)}.")
@click.option(
    "--split", "shares", metavar="SHARES",
    help="Share of train, as in 0.9; or of train, validation, test, as in 0.8,0.1,0.1.",
)  # fmt: skip
@all_options([*CRAWL_OPTIONS, official_split("--crawl-split")])
def export_command(
    path: Path, crawl: Path | None, to: str, out: Path, *, overwrite: bool, shares: str | None,
    drop: str | None,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Write the corrected labels of RUN in a format that other programs read.

    RUN is a folder of `vsgraph correct`. If it is a folder of Correction.save, also give --crawl,
    the crawl that was corrected: the same images in the same order.

    --min-confidence, --top and --purity narrow what the run kept. --drop leaves out copies (one of
    each picture stays) and flawed pictures. --split divides by the content of each picture: copies
    stay together, and images stay where they are when the crawl grows.
    """
    values = {name: options.pop(name) for name in OWN_OPTIONS}
    own = {name: value for name, value in values.items() if value is not None}
    if shares is not None:
        own["split"] = read_shares(shares)
    if drop is not None:
        own["drop"] = [name.strip() for name in drop.split(",")]
    own |= {"to": to, "overwrite": overwrite, "progress": True}
    if crawl is None:
        exported = Run.open(path).export(out, **own)
    else:
        corrected, correction = read_crawl(crawl, **reading(**options)), Correction.load(path)
        exported = export(corrected, correction, out, **own)
    click.echo(str(exported))


def read_shares(text: str) -> float | list[float]:
    """Read the shares of a split."""
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--split needs shares, as in 0.9 or 0.8,0.1,0.1, got {text!r} (--crawl-split names "
            "the official split of a crawl)"
        ) from error
    return shares[0] if len(shares) == 1 else shares
