"""Horizontal bars with intervals, as plain SVG in the style of `vsgraph.common.plot`."""

import html
from collections.abc import Mapping

from vsgraph.common.plot import COLORS, STYLE

NAMES, WIDTH, ROW, TOP, GAP = 290, 260, 22, 56, 30
Bar = tuple[float, float]  # the value, and how far its interval goes to both sides


def draw_bars(panels: Mapping[str, Mapping[str, Bar]], *, title: str, strong: str) -> str:
    r"""Return an SVG document: one panel per name, one bar per row, all on one scale.

    >>> draw_bars({"top-1": {"web": (70, 1), "ours": (80, 1)}}, title="Right", strong="ours")[:4]
    '<svg'
    """
    rows = list(next(iter(panels.values())))
    values = [value for panel in panels.values() for value in panel.values()]
    low, high = min(v - e for v, e in values), max(v + e for v, e in values)
    low -= 0.25 * (high - low)
    scale = WIDTH / (high - low or 1)
    names = "".join(
        f'<text x="{NAMES - 8}" y="{TOP + ROW * i + 15}" text-anchor="end">'
        f"{html.escape(row)}</text>"
        for i, row in enumerate(rows)
    )
    drawn = "".join(
        f'<g transform="translate({NAMES + i * (WIDTH + GAP + 40)},{TOP})">'
        f'<text y="-10">{html.escape(panel)}</text>'
        + "".join(
            _bar(ROW * place, (own[row][0] - low) * scale, own[row], scale, strong=row == strong)
            for place, row in enumerate(rows)
        )
        + "</g>"
        for i, (panel, own) in enumerate(panels.items())
    )
    box = f"0 0 {NAMES + len(panels) * (WIDTH + GAP + 40)} {TOP + ROW * len(rows) + 16}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" '
        f'aria-label="{html.escape(title)}"><style>{STYLE}</style>'
        f'<text x="8" y="18">{html.escape(title)}</text>{names}{drawn}</svg>\n'
    )


def _bar(y: float, width: float, value: Bar, scale: float, *, strong: bool) -> str:
    """Draw a bar, its interval and its value."""
    middle, reach = y + 10, value[1] * scale
    return (
        f'<rect y="{y + 3}" width="{width:.1f}" height="14" fill="{COLORS[1 if strong else 0]}"/>'
        f'<line stroke="currentColor" x1="{width - reach:.1f}" x2="{width + reach:.1f}" '
        f'y1="{middle}" y2="{middle}"/>'
        f'<text x="{width + reach + 5:.1f}" y="{middle + 5}">{value[0]:.1f}</text>'
    )
