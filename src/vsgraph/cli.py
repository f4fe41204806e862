"""The command line: one function a command, no logic."""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import click

import vsgraph
from vsgraph.arrays import ArrayFiles, peak_memory
from vsgraph.demo import run_demo
from vsgraph.errors import InputError, VSGraphError, VSGraphWarning
from vsgraph.estimate import check_room
from vsgraph.settings import Settings
from vsgraph.storage import refuse_taken


class Commands(click.Group):
    """Turns our own errors into one line on stderr; anything else is a bug and keeps its trace."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the chosen command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", VSGraphWarning)
                warnings.showwarning = _tell
                return super().invoke(ctx)
        except VSGraphError as error:
            raise click.ClickException(str(error)) from error


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as one line."""
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(vsgraph.__version__, prog_name="vsgraph")
def main() -> None:
    """Correct the labels of images collected by search query, using the text beside them."""


@main.command("demo")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("demo-run"), show_default=True,
    help="Folder for the results.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the results of an earlier demo.")
def demo_command(out: Path, *, overwrite: bool) -> None:
    """Correct a small made-up crawl and leave a report to open."""
    result = run_demo(out, overwrite=overwrite, progress=True)
    counts = result.correction.counts
    click.echo(f"made-up crawl: {len(result.correction)} drawn pictures of words with two meanings")
    click.echo(f"labels right before: {result.right_before:.1%}")
    click.echo(f"labels right after:  {result.right_after:.1%} of those not rejected")
    click.echo(
        f"kept {counts['keep']}, relabeled {counts['relabel']}, rejected {counts['reject']} "
        f"({result.rejected_rightly:.0%} of them rightly)"
    )
    click.echo(f"report: {result.report.resolve()}")


FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@main.command("correct")
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
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting, as in n_neighbors=10; may be repeated.",
)
@click.option("--overwrite", is_flag=True, help="Replace a correction that is there already.")
@click.option("--dry-run", is_flag=True, help="Only say what it would take.")
@click.option("--anyway", is_flag=True, help="Start even if memory or disk seem too small.")
def correct_command(
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
    settings = Settings.from_dict(dict(map(_read_change, changes)))
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
    counts = correction.counts
    click.echo(
        f"{len(correction)} images: kept {counts['keep']}, relabeled {counts['relabel']}, rejected "
        f"{counts['reject']}; recall of the graph {correction.graph_recall:.3f}"
    )
    click.echo(
        f"took {time.monotonic() - started:.0f} s and {peak_memory() / 1e9:.1f} GB of memory, "
        f"mapped files included; saved in {out.resolve()}"
    )


@main.command("embed")
@click.argument("crawl", type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder to fill.")
@click.option(
    "--image-encoder", "images", default="lite0", show_default=True,
    help="lite0, lite1, lite2, a folder or hub name (transformers), timm:NAME, or an .onnx file.",
)  # fmt: skip
@click.option(
    "--text-encoder", "texts", default="minilm", show_default=True,
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
def embed_command(crawl: Path, out: Path, **options: Any) -> None:  # noqa: ANN401
    """Encode the pictures and texts of CRAWL into OUT/images and OUT/texts.

    Interrupted and started again, it goes on where it ended.
    """
    from vsgraph import crawls
    from vsgraph.encoders import embed_crawl

    started = time.monotonic()
    found = crawls.read_crawl(crawl)  # type: ignore[attr-defined]
    made = embed_crawl(found, out, progress=True, **options)
    seconds = time.monotonic() - started
    click.echo(f"pictures: {made.image_encoder}; texts: {made.text_encoder}")
    for line in found.problems.lines():
        click.echo(line)
    click.echo(f"{len(found)} images in {seconds:.0f} s; saved in {out.resolve()}")


def _read_change(change: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is no JSON is text."""
    name, equals, value = change.partition("=")
    if not equals:
        raise InputError(f"--set needs NAME=VALUE, as in n_neighbors=10, got {change!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
