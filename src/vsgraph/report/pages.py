"""Files of the report, from templates that escape every value."""

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
def templates(folder: Path = FILES) -> jinja2.Environment:
    """Return the templates of a folder, which escape every value."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clip": clip, "number": "{:,}".format, "percent": _percent, "data": as_data,
    }  # fmt: skip
    return environment


def copy_static(folder: Path) -> None:
    """Copy the report's style, script and icons."""
    folder.mkdir()
    for name in STATIC:
        shutil.copyfile(FILES / name, folder / name)


def write_page(path: Path, template: str, values: dict[str, Any]) -> None:
    """Fill a template; lone surrogates, which UTF-8 cannot hold, become question marks."""
    content = templates().get_template(template).render(values)
    path.write_text(content, encoding="utf-8", errors="replace")


def page_name(number: int, name: str) -> str:
    """Return the file of a class: its number, and the plain letters and digits of its name.

    >>> page_name(3, "../Crème brûlée <b>"), page_name(12, "鶴")
    ('0003-creme-brulee-b.html', '0012.html')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:LONGEST_SLUG].strip("-")
    return f"{number:04d}-{slug}.html" if slug else f"{number:04d}.html"


def as_data(value: Any) -> Markup:  # noqa: ANN401
    r"""Return JSON for a script element that is never run; no text in it can end the element.

    >>> print(as_data(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704  it contains no markup


def _percent(share: float) -> str:
    """Return a share in percent; only nothing is 0% and only all is 100%."""
    rounded = round(100 * share)
    if share > 0 and rounded == 0:
        return "<1%"
    return ">99%" if share < 1 and rounded == 100 else f"{rounded}%"
