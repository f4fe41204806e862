"""Turns what was gathered into files: templates that escape everything they are given."""

import functools
import json
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from vsgraph.report.cards import clip

FILES = Path(__file__).parent / "files"
STATIC = ("report.css", "report.js", "icon.svg", "no-picture.svg")
LONGEST_SLUG = 40


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FILES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clip": clip, "number": _number, "percent": _percent, "data": as_data}
    return made


def copy_static(folder: Path) -> None:
    """Put style, script and pictures of the report's own in place."""
    folder.mkdir()
    for name in STATIC:
        shutil.copyfile(FILES / name, folder / name)


def write_page(path: Path, template: str, values: dict[str, Any]) -> None:
    """Fill a template; what no file can hold (half of a character) becomes a question mark."""
    content = _environment().get_template(template).render(values)
    path.write_text(content, encoding="utf-8", errors="replace")


def page_name(number: int, name: str) -> str:
    """Return the file of a class: its number, and what its name has of plain letters and digits.

    >>> page_name(3, "../Crème brûlée <b>"), page_name(12, "鶴")
    ('0003-creme-brulee-b.html', '0012.html')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:LONGEST_SLUG].strip("-")
    return f"{number:04d}-{slug}.html" if slug else f"{number:04d}.html"


def as_data(value: Any) -> Markup:  # noqa: ANN401
    r"""Return JSON that no text can end: it stands in a script element that is never run.

    >>> print(as_data(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704  nothing in it can be read as HTML any more


def _number(value: int) -> str:
    return f"{value:,}"


def _percent(share: float) -> str:
    """Return a share in percent; little is not nothing, and nearly all is not all."""
    rounded = round(100 * share)
    if share > 0 and rounded == 0:
        return "<1%"
    return ">99%" if share < 1 and rounded == 100 else f"{rounded}%"
