"""Numbers and tables as text, for people and for JSON."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return plain Python values that JSON can hold, None for NaN and infinity.

    >>> plain({"a": np.float32(0.5), "b": [np.int64(2), float("nan")]})
    {'a': 0.5, 'b': [2, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: float | None, form: str = ".3f") -> str:
    """Format a number, '-' if there is none.

    >>> number(0.5), number(float("nan")), number(None)
    ('0.500', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else format(value, form)


def percent(share: float | None, form: str = ".1%") -> str:
    """Format a share in percent, '-' if there is none."""
    return number(share, form)


def decided(counts: Mapping[str, int]) -> str:
    """Return in words how many images were kept, relabeled, rejected or unreadable.

    >>> decided({"keep": 1000, "relabel": 20, "reject": 3, "unreadable": 2})
    'kept 1,000, relabeled 20, rejected 3, 2 unreadable (label left as it was)'
    """
    words = {"keep": "kept", "relabel": "relabeled", "reject": "rejected"}
    unreadable = counts.get("unreadable", 0)
    last = [f"{unreadable:,} unreadable (label left as it was)"] if unreadable else []
    return ", ".join([*(f"{word} {counts[name]:,}" for name, word in words.items()), *last])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    r"""Return a Markdown table; line breaks and bars in cells are escaped.

    >>> print(markdown_table(["a", "b"], [[1, "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\|y |
    """
    cells = [
        [" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in [head, *rows]
    ]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def markdown_text(text: str) -> str:
    r"""Return a stranger's words as plain text of Markdown: no link, picture, code or HTML.

    >>> print(markdown_text("![x](http://y) <b> a_b"))
    !\[x\](http://y) &lt;b&gt; a_b
    """
    return html.escape(re.sub(r"[\\`*\[\]]", r"\\\g<0>", text), quote=False)


def say_span(seconds: float) -> str:
    """Return a span of time in words.

    >>> say_span(5), say_span(300), say_span(9000)
    ('5 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
