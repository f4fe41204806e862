"""``vsgraph doctor``."""

import click

from vsgraph.cli.group import main
from vsgraph.runs.doctor import examine


@main.command("doctor")
def doctor_command() -> None:
    """Show what is installed, what can be used here, and what to type for the rest."""
    for line in examine():
        click.echo(line)
