"""Numbers and tables as text, for people and for JSON."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return plain Python values that JSON can hold, None for what is no number.

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
    """Print a number in a form, '-' where there is none.

    >>> number(0.5), number(float("nan")), number(None)
    ('0.500', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else format(value, form)


def percent(share: float | None, form: str = ".1%") -> str:
    """Print a share in percent, '-' where there is none.

    >>> percent(0.5), percent(float("nan"))
    ('50.0%', '-')
    """
    return number(share, form)


def decided(counts: Mapping[str, int]) -> str:
    """Say how many images were kept, relabeled, rejected, and could not be read.

    >>> decided({"keep": 1000, "relabel": 20, "reject": 3, "unreadable": 2})
    'kept 1,000, relabeled 20, rejected 3, 2 unreadable (label left as it was)'
    """
    told = (("keep", "kept"), ("relabel", "relabeled"), ("reject", "rejected"))
    lost = counts.get("unreadable", 0)
    last = [f"{lost:,} unreadable (label left as it was)"] if lost else []
    return ", ".join([*(f"{word} {counts[name]:,}" for name, word in told), *last])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    r"""Return a Markdown table; what would break a cell is escaped.

    >>> print(markdown_table(["a", "b"], [[1, "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\|y |
    """
    lines = [head, ["---"] * len(head), *rows]
    cells = [[_cell(cell) for cell in line] for line in lines]
    return "\n".join(
        f"|{'|'.join(line)}|" if i == 1 else f"| {' | '.join(line)} |"
        for i, line in enumerate(cells)
    )


def _cell(value: object) -> str:
    """Return a value on one line, with bars escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def say_span(seconds: float) -> str:
    """Return a span of time in words.

    >>> say_span(5), say_span(300), say_span(9000)
    ('5 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
