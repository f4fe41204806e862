"""``vsgraph review``."""

import getpass
from pathlib import Path

import click

from vsgraph.cli.group import main
from vsgraph.cli.options import FOLDER
from vsgraph.errors import MissingExtraError


@main.command("review")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--reviewer", help="Who answers.  [default: the name of the user]")
@click.option("--port", type=click.IntRange(0, 65535), default=8350, show_default=True,
              help="Port to listen at; 0 for any that is free.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen at; only this machine can reach the default.")  # fmt: skip
def review_command(path: Path, *, reviewer: str | None, port: int, host: str) -> None:
    """Look at RUN in the browser, answer what images show, and let the answers teach.

    Every answer is saved in RUN/answers when it is given. Exports, evaluations and trainings use
    the answers at once; vsgraph correct, or the button in the page, learns from them.
    """
    try:
        from vsgraph.review.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] in {"starlette", "uvicorn", "anyio"}:
            raise MissingExtraError("the review", "review") from error
        raise
    serve(path, reviewer=reviewer or getpass.getuser(), host=host, port=port, tell=click.echo)
