"""``vsgraph demo``."""

from pathlib import Path

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import NEW, how_to_review
from vsgraph.common.formatting import decided, percent
from vsgraph.demo.run_demo import run_demo


@main.command("demo")
@click.option("-o", "--out", type=NEW, default=Path("demo-run"), show_default=True,
              help="Folder for the results.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an earlier demo.")
def demo_command(out: Path, *, overwrite: bool) -> None:
    """Draw a small made-up crawl, correct its labels and write a report."""
    result = run_demo(out, overwrite=overwrite, progress=True, tell=click.echo)
    judged = result.judged
    click.echo(f"made-up crawl: {judged.n_images} drawn pictures of words with two meanings")
    click.echo(f"labels right before: {percent(judged.accuracy['all']['before'])}")
    click.echo(
        f"labels right after:  {percent(judged.accuracy['not rejected']['after'])} of those "
        "not rejected"
    )
    rightly = percent(judged.rejected["share"], ".0%")
    click.echo(f"{decided(result.run.counts)} ({rightly} of them rightly)")
    click.echo(f"report: {result.run.top_page.resolve()}")
    click.echo(how_to_review(result.run.path))
