"""Line charts in panels side by side, as plain SVG.

Lines differ by dashes and marks as well as by color. The chart adapts to a dark background.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from vsgraph.errors import InputError

WIDTH, HEIGHT, GAP, TOP = 260, 200, 70, 50
LINE = 16  # height of a line of the legend
TICKS = 5
COLORS = ("#2563eb", "#d97706", "#059669", "#be185d", "#7c3aed", "#57534e")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "12 4", "1 5")
MARKS = (
    '<circle r="3.5"/>',
    '<rect x="-3.5" y="-3.5" width="7" height="7"/>',
    '<path d="M0 -3.5l4.5 7h-9z"/>',
    '<path d="M0 3.5l4.5-7h-9z"/>',
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}"
    "svg{color:#222;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#ddd;background:#111}}"
    ".g{stroke:currentColor;opacity:.2}polyline{fill:none;stroke-width:2}"
)

Line = Sequence[tuple[Any, float]]


def draw_lines(
    panels: Mapping[str, Mapping[str, Line]], *, title: str, x_name: str, y_name: str
) -> str:
    r"""Return an SVG document with one panel per name, and in it one line per name.

    Each line is a sequence of points (x, y). If any x is not a number, all are set side by side in
    the order in which they come. Points with a y of NaN are left out.

    >>> lines = {"w = 0": [(3, 0.8), (5, 0.9)]}
    >>> draw_lines({"": lines}, title="Right", x_name="k", y_name="share")
    '<svg xmlns=...</svg>\n'
    """
    lines = [line for panel in panels.values() for line in panel.values()]
    values = [y for line in lines for _, y in _known(line)]
    if not values:
        raise InputError("panels must hold at least one point to draw")
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    places = _places([x for line in lines for x, _ in line])
    ticks = _ticks(min(values), max(values))
    frame = _frame(x_name, y_name, places, ticks)
    drawn = "".join(
        f'<g transform="translate({GAP + i * (WIDTH + GAP)},{TOP})">'
        f'<text y="-10">{html.escape(panel)}</text>{frame}'
        f"{''.join(_line(names.index(n), line, places, ticks) for n, line in own.items())}</g>"
        for i, (panel, own) in enumerate(panels.items())
    )
    width, below = GAP + len(panels) * (WIDTH + GAP), TOP + HEIGHT + 60
    box = f"0 0 {width} {below + LINE * len(names)}"
    legend = "".join(_entry(i, name, below + LINE * i) for i, name in enumerate(names) if name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" '
        f'aria-label="{html.escape(title)}"><style>{STYLE}</style>'
        f'<text x="{GAP}" y="18">{html.escape(title)}</text>{drawn}{legend}</svg>\n'
    )


def _known(line: Line) -> list[tuple[Any, float]]:
    """Return the points whose value is not NaN."""
    return [(x, y) for x, y in line if not math.isnan(y)]


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from below the lowest value to above the highest.

    >>> _ticks(0.81, 0.93)
    [0.8, 0.85, 0.9, 0.95]
    """
    rough = max(high - low, 1e-6 * max(abs(high), 1e-3)) / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [round(step * i, 12) for i in range(first, last + 1)]


def _places(values: Sequence[Any]) -> dict[Any, float]:
    """Return the position of each value across a panel, 0 to 1.

    >>> _places([1, 3, 2]), _places(["b", "a"])
    ({1: 0.0, 2: 0.5, 3: 1.0}, {'b': 0.0, 'a': 1.0})
    """
    different = list(dict.fromkeys(values))
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in different):
        different.sort()
        wide = different[-1] - different[0]
        return {x: (x - different[0]) / wide if wide else 0.5 for x in different}
    return {x: i / max(len(different) - 1, 1) for i, x in enumerate(different)}


def _frame(x_name: str, y_name: str, places: Mapping[Any, float], ticks: Sequence[float]) -> str:
    """Draw the grid and axes of a panel."""
    grid = "".join(
        f'<line class="g" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
        for y in [_down(tick, ticks)]
    )
    marks = "".join(
        f'<text x="{WIDTH * place:.1f}" y="{HEIGHT + 18}" text-anchor="middle">'
        f"{html.escape(_short(x))}</text>"
        for x, place in places.items()
    )
    return (
        f'{grid}{marks}<text x="{WIDTH / 2}" text-anchor="middle" y="{HEIGHT + 36}">'
        f'{html.escape(x_name)}</text><text transform="translate(-52,{HEIGHT / 2}) rotate(-90)" '
        f'text-anchor="middle">{html.escape(y_name)}</text>'
    )


def _line(number: int, line: Line, places: Mapping[Any, float], ticks: Sequence[float]) -> str:
    """Draw a line with a mark at each point, which shows its value under the pointer."""
    points = sorted((WIDTH * places[x], _down(y, ticks), x, y) for x, y in _known(line))
    path = " ".join(f"{across:.1f},{down:.1f}" for across, down, _, _ in points)
    marks = "".join(
        f"<g>{_mark(number, across, down)}<title>{html.escape(_short(x))}: {y:.4g}</title></g>"
        for across, down, x, y in points
    )
    return f'<polyline {_pen(number)} points="{path}"/>{marks}'


def _entry(number: int, name: str, y: float) -> str:
    """Draw a line of the legend."""
    return (
        f'<polyline {_pen(number)} points="{GAP},{y - 4} {GAP + 36},{y - 4}"/>'
        f"{_mark(number, GAP + 18, y - 4)}"
        f'<text x="{GAP + 46}" y="{y}">{html.escape(name)}</text>'
    )


def _pen(number: int) -> str:
    """Return color and dashes of a line."""
    dashes = DASHES[number % len(DASHES)]
    return f'stroke="{COLORS[number % len(COLORS)]}" stroke-dasharray="{dashes or "none"}"'


def _mark(number: int, x: float, y: float) -> str:
    """Draw the mark of a line."""
    color = COLORS[number % len(COLORS)]
    return (
        f'<g transform="translate({x:.1f},{y:.1f})" fill="{color}">{MARKS[number % len(MARKS)]}</g>'
    )


def _down(y: float, ticks: Sequence[float]) -> float:
    """Return the distance of a value from the top of a panel."""
    return HEIGHT - (y - ticks[0]) / (ticks[-1] - ticks[0]) * HEIGHT


def _short(value: object) -> str:
    """Format a number briefly, and anything else as it is."""
    return f"{value:g}" if isinstance(value, float) else str(value)
