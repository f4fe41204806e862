"""``vsgraph label``."""

import sys
from pathlib import Path
from typing import Any

import click
import pyarrow.csv

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, NEW, QUIET, crawl_options, reading
from vsgraph.errors import InputError
from vsgraph.runs.label import label


@main.command("label")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.argument("new", metavar="IMAGES", type=CRAWL, nargs=-1, required=True)
@click.option("-o", "--out", type=NEW, help="CSV file to write; printed if not given.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@crawl_options
@QUIET
def label_command(
    path: Path, new: tuple[Path, ...], *, out: Path | None, overwrite: bool, quiet: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Label new images by what RUN has learned, without changing it.

    IMAGES are pictures, a folder of pictures without labels, or a crawl in any format; its web
    labels and texts count. The table says the label or that none is sure enough, how sure, and why.
    """
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists already; choose another name, or pass --overwrite")

    def tell(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    labeled = label(path, new, progress=not quiet, tell=tell, **reading(**options))
    for line in labeled.problems:
        click.echo(f"problem: {line}", err=True)
    if out is None:
        pyarrow.csv.write_csv(labeled.table, sys.stdout.buffer)
        return
    labeled.save(out, overwrite=overwrite)
    n_labeled = len(labeled.table["label"].drop_null())
    tell(f"{n_labeled:,} of {len(labeled):,} images labeled: {out}")
