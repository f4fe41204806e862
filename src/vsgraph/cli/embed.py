"""``vsgraph embed``."""

import time
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, crawl_options, reading
from vsgraph.crawls import read_crawl
from vsgraph.encoders import embed_crawl

ENCODING = ("long_texts", "runtime", "precision", "dtype", "overwrite")


@main.command("embed")
@click.argument("path", metavar="CRAWL", type=CRAWL)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder to fill.")
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
    show_default=True, help="Read the start of a long text, or its pieces.",
)  # fmt: skip
@click.option(
    "--runtime", type=click.Choice(["auto", "openvino", "onnxruntime", "torch"]), default="auto",
    show_default=True, help="What runs the models.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["auto", "fp32", "bf16", "int8"]), default="auto",
    show_default=True, help="What they compute in.",
)  # fmt: skip
@click.option(
    "--dtype", type=click.Choice(["float16", "float32"]), default="float16", show_default=True,
    help="What is kept.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace vectors of another encoder.")
@crawl_options
def embed_command(path: Path, out: Path, **options: Any) -> None:  # noqa: ANN401
    """Encode the pictures and texts of CRAWL into OUT/images and OUT/texts.

    Interrupted and started again, it goes on where it ended.
    """
    started = time.monotonic()
    encoding = {name: options.pop(name) for name in ENCODING}
    encoding |= {"images": options.pop("image_encoder"), "texts": options.pop("text_encoder")}
    found = read_crawl(path, **reading(**options))
    made = embed_crawl(found, out, progress=True, **encoding)
    seconds = time.monotonic() - started
    click.echo(f"pictures: {made.image_encoder}; texts: {made.text_encoder}")
    for line in found.problems.lines():
        click.echo(line)
    click.echo(f"{len(found)} images in {seconds:.0f} s; saved in {out.resolve()}")
