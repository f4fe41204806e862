"""The command group, which imports commands when they are called and prints errors."""

import importlib
import warnings
from typing import Any

import click

from vsgraph.common.version import __version__
from vsgraph.errors import FileError, StoreError, VSGraphError, VSGraphWarning

COMMANDS = {  # in the order of work: name, module of vsgraph.cli, help
    "Look at a crawl": (
        ("inspect", "crawls", "Show what a crawl holds, and estimate a run."),
        ("describe", "crawls", "List what each class may mean; write the table to edit."),
    ),
    "Correct it": (
        ("correct", "correct", "Correct the labels of a crawl: read, encode, correct, report."),
        ("review", "review", "Look at a run in the browser, answer, and let the answers teach."),
        ("report", "judge", "Write the report of a run again, and print its path."),
        ("label", "label", "Label new images by what a run has learned, without changing it."),
        ("export", "export", "Write the corrected labels in a format that other programs read."),
    ),
    "Review it": (
        ("decide", "decide", "Take decisions of people from a table or another program."),
        ("audit", "decide", "Check a random sample, and say how many labels are right."),
    ),
    "Judge it": (
        ("evaluate", "judge", "Judge the corrected labels of a run by the truth."),
        ("compare", "judge", "Compare the labels of two runs on the same crawl."),
        ("sweep", "judge", "Correct with every combination of some settings."),
        ("progressive", "judge", "Let sure labels become anchors, round by round."),
    ),
    "Train on it": (
        ("train", "train", "Train a network on the labels of a crawl as they are."),
        ("finetune", "train", "Train a network on the corrected labels of a run."),
        ("test", "train", "Judge a network that was trained, on images of known classes."),
        ("classify", "train", "Print what pictures show, by a trained model."),
        ("predict", "train", "Write a trained network's features and probabilities."),
        ("export-model", "train", "Write a model as a file that loads without vsgraph."),
    ),
    "Other": (
        ("doctor", "doctor", "Show what is installed, and what to type for the rest."),
        ("embed", "embed", "Only encode a crawl's pictures and texts, with any encoder."),
        ("demo", "demo", "Correct a small made-up crawl and write a report."),
    ),
}
MODULES = {name: module for group in COMMANDS.values() for name, module, _ in group}


class Commands(click.Group):
    """Imports a command when it is called, and prints vsgraph's own errors as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of work."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, which registers it."""
        if cmd_name in MODULES:
            importlib.import_module(f"vsgraph.cli.{MODULES[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, _, line in group])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the chosen command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", VSGraphWarning)
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # click ends quietly
        except (VSGraphError, OSError) as error:
            raise _one_line(error) from error
        except KeyboardInterrupt:
            click.echo("stopped; finished work is saved, start again to resume", err=True)
            ctx.exit(130)


class _FileProblem(click.ClickException):
    """A file that cannot be read or written, or a store that refuses."""

    exit_code = 3


def _one_line(error: VSGraphError | OSError) -> click.ClickException:
    """Return an error as one line, with its exit code."""
    if isinstance(error, OSError) and not isinstance(error, VSGraphError):
        error = FileError.of(error)
    is_file = isinstance(error, FileError | StoreError)
    kind = _FileProblem if is_file else click.ClickException
    return kind(str(error))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as one line."""
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vsgraph")
def main() -> None:
    """Correct the labels of images collected by search query, using the text beside them.

    \b
    vsgraph inspect my-crawl               what it holds
    vsgraph correct my-crawl -o run        correct its labels; open run/report.html
    vsgraph export run --to imagefolder -o clean
    """  # noqa: D301
