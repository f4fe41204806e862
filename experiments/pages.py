"""Tables put at their marks in a page whose prose is written by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click


def put(page: str, name: str, lines: Sequence[str]) -> str:
    """Replace what stands between a pair of marks; a page without them stays as it is."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if start not in page:
        return page
    before, rest = page.split(start)
    return before + start + "\n".join(lines) + "\n" + end + rest.split(end)[1]


def publish(
    tables: Mapping[str, Sequence[str]], figures: Mapping[str, str], page: Path | None
) -> None:
    """Print tables, or put them at their marks in a page, and figures into its folder of images."""
    text = page.read_text(encoding="utf-8") if page else ""
    for name, lines in tables.items():
        text = put(text, name, lines)
        if page is None:
            click.echo("\n".join(["", f"## {name}", "", *lines]))
    if page:
        page.write_text(text, encoding="utf-8")
        for name, svg in figures.items():
            if f"images/{name}.svg" not in text:
                continue
            (page.parent / "images" / f"{name}.svg").write_text(svg, encoding="utf-8")
