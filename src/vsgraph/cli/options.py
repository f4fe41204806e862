"""Options that several commands share."""

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from vsgraph.common.stores import ADDRESS, place
from vsgraph.errors import InputError


class PlacePath(click.Path):
    """A path on this machine, or an address in an object store."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return a path; whether an address exists is found out when it is opened."""
        if isinstance(value, str) and ADDRESS.match(value):
            return place(value)
        return super().convert(value, param, ctx)


FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
SET = click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE",
    help="Change a setting, as in n_neighbors=10 (or k, w, m, L, lambda, tau_f); may be repeated.",
)  # fmt: skip
FOLDER = PlacePath(path_type=Path, file_okay=False, exists=True)
CRAWL = PlacePath(path_type=Path, exists=True)
NEW = PlacePath(path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")

CRAWL_OPTIONS = (
    click.option("--format", "format_", metavar="NAME", help="The format, if it is not detected."),
    click.option("--images", type=FOLDER, help="Folder that paths in a table are relative to."),
    click.option(
        "--column", "columns", multiple=True, metavar="ROLE=NAME",
        help="Column of the image, label, text, source or truth, as in label=query.",
    ),
    click.option("--label-separator", metavar="TEXT", help="Separator of several labels."),
    click.option("--classes", type=FILE, help="File of classes (names or wnids), one per line."),
    click.option("--queries", type=FILE, help="COCO: JSON of class to query."),
    click.option("--several-labels", is_flag=True, default=None,
                 help="COCO: label an image with every query that found it."),
    click.option("--strict", is_flag=True, help="Stop at the first problem."),
)  # fmt: skip


def all_options(
    options: Sequence[Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command several options."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def official_split(name: str) -> Callable[..., Any]:
    """Return the option that chooses a split of the crawl."""
    return click.option(name, "split", metavar="NAME", help="Official split, as in train, val.")


crawl_options = all_options([*CRAWL_OPTIONS, official_split("--split")])  # those of read_crawl


def reading(**options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the options as arguments of :func:`~vsgraph.crawls.read_crawl`."""
    pairs = [split_pair(c, "--column", "ROLE=NAME", "label=query") for c in options.pop("columns")]
    return options | {"format": options.pop("format_"), "columns": dict(pairs) or None}


def how_to_review(run: Path) -> str:
    """Return the line that says how to answer in the browser."""
    return f"to look at it and answer in the browser: vsgraph review {shlex.quote(str(run))}"


def split_pair(text: str, option: str, form: str, example: str) -> tuple[str, str]:
    """Split the value of an option at its equals sign."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise InputError(f"{option} needs {form}, as in {example}, got {text!r}")
    return name, value


def read_change(change: str, example: str = "n_neighbors=10") -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is not JSON is text."""
    name, value = split_pair(change, "--set", "NAME=VALUE", example)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
