"""``vsgraph decide`` and ``vsgraph audit``."""

import getpass
from pathlib import Path

import click
import numpy as np

from vsgraph.answers.decided import ClassWords
from vsgraph.cli.asking import QUIT, ask_shown
from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER
from vsgraph.common.formatting import decided
from vsgraph.crawls.problems import one_line
from vsgraph.errors import InputError
from vsgraph.runs import Run
from vsgraph.runs.audit import Audit
from vsgraph.runs.decide import decide, take_back

N_SHOWN = 5  # problems
LONGEST_TEXT = 300  # shown of an image


def own_name() -> str:
    """Return the name of the user, for the journal."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without users
        return "reviewer"


REVIEWER = click.option(
    "--reviewer", metavar="NAME", default=own_name, show_default="your user name",
    help="Whose answers they are.",
)  # fmt: skip


@main.command("decide")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.argument("file", metavar="[FILE]", type=CRAWL, required=False)
@REVIEWER
@click.option("--label-separator", metavar="TEXT", help="Separator of several labels.")
@click.option("--all", "every", is_flag=True,
              help="Of a table from vsgraph export, take unchanged rows as well.")  # fmt: skip
@click.option("--undo", metavar="BATCH", help="Take back what an earlier call wrote.")
def decide_command(
    path: Path, file: Path | None, *, reviewer: str, label_separator: str | None, every: bool,
    undo: str | None,
) -> None:  # fmt: skip
    """Take the decisions of people on images of RUN from FILE.

    FILE is a table with the columns image and label, and perhaps decision (keep, relabel, reject);
    an export of Label Studio (JSON) or of FiftyOne (a folder); or the journal of a reviewer of
    another run. If a row is not understood, nothing is written. Exports and trainings use the
    decisions at once, and the next `vsgraph correct -o RUN` learns from them.
    """
    run = Run.open(path)
    if (file is None) == (undo is None):
        raise InputError("give a file of decisions, or --undo and the name of a batch")
    if undo is not None:
        take_back(run, reviewer, undo)
        click.echo(f"taken back: batch {undo} of {reviewer}")
        return
    if file is None:
        return
    written = decide(run, file, reviewer, label_separator=label_separator, every=every)
    for line in written.problems[:N_SHOWN]:
        click.echo(f"problem: {line}")
    if len(written.problems) > N_SHOWN:
        click.echo(f"problem: and {len(written.problems) - N_SHOWN:,} more lines")
    more = f", {written.n_before:,} were there before" if written.n_before else ""
    more += f", {written.n_same:,} rows say what the run says" if written.n_same else ""
    told = f": {decided(written.counts)}" if written.counts and written.n_answers else ""
    click.echo(f"{written.n_answers:,} new answers{told}{more}")
    now = Run.open(path)
    keys, names = now.outputs.picture_keys(now.crawl), now.crawl.class_names
    for line in now.answers.lines(keys, names, several=now.crawl.has_several_labels):
        click.echo(line)
    if written.batch is not None:
        click.echo(f"to take them back: vsgraph decide {path} --reviewer {reviewer} "
                   f"--undo {written.batch}")  # fmt: skip


@main.command("audit")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--images", type=click.IntRange(1), default=200, show_default=True,
              help="How many images to check.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Another seed draws other images.")  # fmt: skip
@click.option("--truth", type=CRAWL, help="Take the answers from a table of paths and classes.")
@click.option("--label-separator", metavar="TEXT", help="Separator of several true classes.")
@REVIEWER
def audit_command(
    path: Path, *, images: int, seed: int, truth: Path | None, label_separator: str | None,
    reviewer: str,
) -> None:  # fmt: skip
    """Check a random sample of the labels that RUN exports, and say how many are right.

    Each image is asked about at the terminal: whether it shows its label, and if not, what else.
    Answers are kept: stop at any time and start again to go on. They are kept apart from
    decisions: they change no label, and nothing learns from them, so that the figure stays honest.
    """
    audit = Audit.open(Run.open(path), images, seed)
    if truth is not None:
        click.echo(str(audit.statement_by(truth, label_separator)))
        return
    journal = audit.run.folder.journal(reviewer)
    crawl, missing = audit.run.crawl, audit.missing()
    words = ClassWords(crawl.class_names, label_separator)
    for number, row in enumerate(missing, len(audit.rows) - len(missing) + 1):
        place = crawl.image_path(row) or crawl.table["image"][row].as_py()
        click.echo(f"{number} of {len(audit.rows)}: {one_line(str(place))}")
        click.echo(f"  {one_line(crawl.texts(np.array([row]))[0])[:LONGEST_TEXT]}")
        shown = ask_shown(audit.labels(row), words)
        if shown is QUIT:
            break
        if shown is not None:
            audit.record(journal, row, shown)
    click.echo(str(audit.statement()))
