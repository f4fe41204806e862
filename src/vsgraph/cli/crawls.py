"""``vsgraph inspect`` and ``vsgraph describe``."""

import json
from pathlib import Path
from typing import Any

import click

from vsgraph.cli.asking import ASK, ask_meanings, can_ask
from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, JSON, NEW, crawl_options, reading
from vsgraph.crawls import inspect_crawl, read_crawl
from vsgraph.meanings.crawl_senses import describe_crawl
from vsgraph.meanings.senses import Meaning, doubt
from vsgraph.meanings.table import by_class, refuse_table, write_meanings
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method.estimate import estimate_run
from vsgraph.settings import Settings


@main.command("inspect")
@click.argument("path", type=CRAWL)
@crawl_options
@click.option("--every-picture", is_flag=True, help="Decode all pictures, not a sample.")
@click.option("--problems", type=NEW, help="Write every problem to a file.")
@JSON
def inspect_command(
    path: Path, *, every_picture: bool, problems: Path | None, as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Show what a crawl holds, and estimate the time, memory and disk of a run."""
    crawl = read_crawl(path, **reading(**options))
    inspection = inspect_crawl(crawl, every_picture=every_picture)
    n_texts = round(inspection.text_coverage["any"] * len(crawl))
    plan = estimate_run(
        Settings(), n_images=len(crawl), n_texts=n_texts, n_classes=len(crawl.class_names)
    )
    if as_json:
        plain = {"seconds": plan.seconds, "memory": plan.memory, "disk": plan.disk}
        click.echo(json.dumps(inspection.to_dict() | {"run": plain}, indent=2))
    else:
        click.echo(f"{inspection}\na run would take {plan}")
    if problems is not None:
        crawl.problems.save(problems)


@main.command("describe")
@click.argument("path", type=CRAWL)
@crawl_options
@click.option("-o", "--out", type=NEW, help="Write the table to edit (CSV).")
@click.option("--wordnet", type=FOLDER, help="Folder of WordNet 3.0's dict files.")
@click.option("--all", "show_all", is_flag=True, help="Also show classes with only one sense.")
@click.option("--overwrite", is_flag=True, help="Replace an existing table.")
@ASK
def describe_command(
    path: Path, *, out: Path | None, wordnet: Path | None, show_all: bool, overwrite: bool,
    ask: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """List what each class may mean, and mark the sense that fits the other classes and the text.

    A class is doubtful if another sense fits nearly as well, if most texts speak for another sense,
    or if WordNet does not know the word. Edit the table: move the mark "yes" to the sense you mean,
    or write your own description; or let --ask ask you.
    """
    if out is not None:
        refuse_table(out, overwrite=overwrite)
    crawl = read_crawl(path, **reading(**options))
    meanings = describe_crawl(crawl, wordnet=WordNet.open(wordnet))
    if ask and can_ask():
        meanings = ask_meanings(meanings)
    by_name = by_class(meanings)
    doubts = {name: why for name, senses in by_name.items() if (why := doubt(senses))}
    if doubts:
        are = "is" if len(doubts) == 1 else "are"
        click.echo(f"{len(doubts)} of {len(by_name)} classes {are} doubtful; look at these first:")
        for name, why in doubts.items():
            click.echo(f"  {name}: {why}")
    for name, senses in by_name.items():
        if show_all or len(senses) > 1 or senses[0].wnid is None:
            head = f"{name} (doubtful: {doubts[name]})" if name in doubts else name
            click.echo("\n".join([head, *map(_sense_line, senses)]))
    certain = sum(len(senses) == 1 and senses[0].wnid is not None for senses in by_name.values())
    click.echo(f"{len(by_name)} classes, {certain} of one sense, {len(doubts)} doubtful")
    if out is not None:
        write_meanings(out, meanings, overwrite=overwrite)
        click.echo(f"table to edit: {out.resolve()}")


def _sense_line(meaning: Meaning) -> str:
    """Return a sense as one line: the mark, the share of texts, the id, the description."""
    share = "    " if meaning.match is None else f"{meaning.match:4.0%}"
    mark = "*" if meaning.chosen else " "
    words = meaning.description if meaning.wnid else f"(not in WordNet) {meaning.description}"
    return f"  {mark} {share} {meaning.wnid or '         '} {words:.90}"
