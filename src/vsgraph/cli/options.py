"""Options that several commands share: how a crawl is to be read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vsgraph.errors import InputError

FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
SET = click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE",
    help="Change a setting, as in n_neighbors=10 (or k, w, m, L, lambda, tau_f); may be repeated.",
)  # fmt: skip
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
CRAWL = click.Path(path_type=Path, exists=True)

_OPTIONS = (
    click.option("--format", "format_", metavar="NAME", help="The format, where it is not found."),
    click.option("--images", type=FOLDER, help="What paths in a table are relative to."),
    click.option(
        "--column", "columns", multiple=True, metavar="ROLE=NAME",
        help="Which column is the image, label, text, source or truth, as in label=query.",
    ),
    click.option("--label-separator", metavar="TEXT", help="What stands between several labels."),
    click.option("--classes", type=FILE, help="File of classes (names or wnids), one a line."),
    click.option("--queries", type=FILE, help="COCO: JSON of class to query."),
    click.option("--split", metavar="NAME", help="Official split, as in train, val, test."),
    click.option("--several-labels", is_flag=True, default=None, help="COCO: every hit counts."),
    click.option("--strict", is_flag=True, help="Stop at the first problem instead of counting."),
)  # fmt: skip


def crawl_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of :func:`~vsgraph.crawls.read_crawl`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reading(**options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the options as :func:`~vsgraph.crawls.read_crawl` takes them."""
    columns = dict(map(_split_column, options.pop("columns")))
    return options | {"format": options.pop("format_"), "columns": columns or None}


def _split_column(column: str) -> tuple[str, str]:
    """Read ROLE=NAME."""
    role, equals, name = column.partition("=")
    if not equals:
        raise InputError(f"--column needs ROLE=NAME, as in label=query, got {column!r}")
    return role, name


def read_change(change: str, example: str = "n_neighbors=10") -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is no JSON is text."""
    name, equals, value = change.partition("=")
    if not equals:
        raise InputError(f"--set needs NAME=VALUE, as in {example}, got {change!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
