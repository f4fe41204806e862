"""``vsgraph demo``."""

from pathlib import Path

import click

from vsgraph.cli.group import main
from vsgraph.demo import run_demo


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
