"""The group of commands, and how errors and warnings are told."""

import warnings
from typing import Any

import click

from vsgraph.common.version import __version__
from vsgraph.errors import VSGraphError, VSGraphWarning


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
        except KeyboardInterrupt:
            click.echo("stopped; what is finished is kept, start again to go on", err=True)
            ctx.exit(130)


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as one line."""
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vsgraph")
def main() -> None:
    """Correct the labels of images collected by search query, using the text beside them."""
