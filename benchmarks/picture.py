"""Draw the cost curves: seconds and memory against N, d, C, k and m, on logarithmic axes."""

import html
import math
from collections.abc import Sequence

WIDTH, HEIGHT, GAP = 190, 200, 50

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}"
    "svg{color:#222;background:#fff}@media(prefers-color-scheme:dark){svg{color:#ddd;background:#111}}"
    ".s{stroke:#2563eb;fill:none;stroke-width:2}.m{stroke:#d97706;fill:none;stroke-width:2;"
    "stroke-dasharray:5 3}.g{stroke:currentColor;opacity:.2}"
)


def draw(curves: dict[str, tuple[Sequence[float], Sequence[float], Sequence[float]]]) -> str:
    """Return an SVG with a panel an axis: values, seconds, gigabytes."""
    everything = [y for _, seconds, memory in curves.values() for y in (*seconds, *memory)]
    low, high = math.floor(math.log10(min(everything))), math.ceil(math.log10(max(everything)))
    panels = "".join(
        f'<g transform="translate({GAP + i * (WIDTH + GAP)},30)">'
        f"{_panel(name, curve, low, high)}</g>"
        for i, (name, curve) in enumerate(curves.items())
    )
    width, height = GAP + len(curves) * (WIDTH + GAP), HEIGHT + 80
    title = "Seconds (solid) and gigabytes held (dashed) of a whole correction"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{title}"><style>{STYLE}</style><text x="{GAP}" y="16">{title}</text>'
        f"{panels}</svg>\n"
    )


def _panel(
    name: str, curve: tuple[Sequence[float], Sequence[float], Sequence[float]], low: int, high: int
) -> str:
    values, seconds, memory = curve
    left, right = math.log10(values[0]), math.log10(values[-1])

    def place(x: float, y: float) -> str:
        across = (math.log10(x) - left) / (right - left) * WIDTH
        up = (math.log10(y) - low) / (high - low) * HEIGHT
        return f"{across:.1f},{HEIGHT - up:.1f}"

    grid = "".join(
        f'<line class="g" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
        f'<text x="-6" y="{y + 4}" text-anchor="end">{10.0**power:g}</text>'
        for power in range(low, high + 1)
        for y in [HEIGHT - (power - low) / (high - low) * HEIGHT]
    )
    lines = "".join(
        f'<polyline class="{kind}" points="{" ".join(map(place, values, ys))}"/>'
        for kind, ys in (("s", seconds), ("m", memory))
    )
    ends = (
        f'<text y="{HEIGHT + 18}">{values[0]:,}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">{values[-1]:,}</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT + 34}" text-anchor="middle">{html.escape(name)}</text>'
    )
    return grid + lines + ends
