"""``vsgraph embed``."""

import time
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, NEW, crawl_options, reading
from vsgraph.crawls import read_crawl
from vsgraph.encoders import embed_crawl

ENCODING = ("long_texts", "runtime", "precision", "dtype", "overwrite")


@main.command("embed")
@click.argument("path", metavar="CRAWL", type=CRAWL)
@click.option("-o", "--out", type=NEW, required=True, help="Folder for the vectors.")
@click.option(
    "--image-encoder", default="lite0", show_default=True,
    help="lite0, lite1, lite2, a folder or hub name (transformers), timm:NAME, or an .onnx file.",
)  # fmt: skip
@click.option(
    "--text-encoder", default="minilm", show_default=True,
    help="minilm, a folder or hub name (sentence-transformers or transformers), or lsa.",
)  # fmt: skip
@click.option(
    "--long-texts", type=click.Choice(["truncate", "chunk"]), default="truncate",
    show_default=True, help="Encode only the start of a long text, or the mean of its parts.",
)  # fmt: skip
@click.option(
    "--runtime", type=click.Choice(["auto", "openvino", "onnxruntime", "torch"]), default="auto",
    show_default=True, help="The library that runs the models.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["auto", "fp32", "bf16", "int8"]), default="auto",
    show_default=True, help="The precision of the computation.",
)  # fmt: skip
@click.option(
    "--dtype", type=click.Choice(["float16", "float32"]), default="float16", show_default=True,
    help="The type of the saved vectors.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace vectors of another encoder.")
@crawl_options
def embed_command(path: Path, out: Path, **options: Any) -> None:  # noqa: ANN401
    """Encode the pictures and texts of CRAWL into OUT/images and OUT/texts.

    If it is interrupted and started again, it resumes.
    """
    started = time.monotonic()
    encoding = {name: options.pop(name) for name in ENCODING}
    encoding |= {"images": options.pop("image_encoder"), "texts": options.pop("text_encoder")}
    crawl = read_crawl(path, **reading(**options))
    embedded = embed_crawl(crawl, out, progress=True, **encoding)
    seconds = time.monotonic() - started
    click.echo(f"pictures: {embedded.image_encoder}; texts: {embedded.text_encoder}")
    for line in crawl.problems.lines():
        click.echo(line)
    click.echo(f"{len(crawl)} images in {seconds:.0f} s; saved in {out.resolve()}")
