"""Pieces of HTML that a notebook shows; every text in them is escaped, every picture a data URI."""

import base64
import dataclasses
from collections.abc import Iterable, Sequence
from html import escape

CELL = "text-align:left;padding:2px 10px 2px 0"
FIGURE = "display:inline-block;vertical-align:top;width:{width}px;margin:4px;font-size:11px"
LONGEST = 160  # characters of a text that are shown


@dataclasses.dataclass(frozen=True)
class Html:
    """What a notebook shows as HTML and everything else as plain text.

    >>> Html("<b>2</b> images", "2 images")
    2 images
    """

    html: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def heading(text: str) -> str:
    """Return a line in bold.

    >>> heading("a < b")
    '<div style="margin:4px 0"><b>a &lt; b</b></div>'
    """
    return f'<div style="margin:4px 0"><b>{_plain(text)}</b></div>'


def line(text: str) -> str:
    """Return a line."""
    return f'<div style="margin:4px 0">{_plain(text)}</div>'


def table(rows: Iterable[Sequence[object]], heads: Sequence[str] = ()) -> str:
    """Return a table.

    >>> "<td" in table([("crane", 3)]) and "<th" in table([], ["class"])
    True
    """
    head = "".join(f'<th style="{CELL}">{_plain(name)}</th>' for name in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{_plain(value)}</td>' for value in row) + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def grid(figures: Iterable[tuple[bytes, str]], *, width: int = 104) -> str:
    """Return small JPEGs side by side, each with a text below it; empty bytes have no picture."""
    style = FIGURE.format(width=width)
    return "".join(
        f'<figure style="{style}">{_picture(jpeg)}<figcaption>{_plain(text)}</figcaption></figure>'
        for jpeg, text in figures
    )


def _picture(jpeg: bytes) -> str:
    if not jpeg:
        return "<div>no picture</div>"
    return f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}">'


def _plain(value: object) -> str:
    text = str(value)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
