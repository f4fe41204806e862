"""The table of a sweep: as text, CSV, Markdown, JSON and a chart."""

import csv
import dataclasses
import io
import json
from typing import Any

import numpy as np

from vsgraph.common.checks import check_one_of
from vsgraph.common.formatting import markdown_table, number, plain
from vsgraph.common.plot import draw_lines
from vsgraph.errors import InputError
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True, eq=False)
class SweepTable:
    """One row per combination of settings: their values and the measures.

    Attributes
    ----------
    parameters : dict of str to tuple
        Settings that were varied, with their values.
    rows : list of dict
        The values, then `keep`, `relabel`, `reject` and `left` (shares of images), mean
        `confidence`, `estimated` (share of right labels among those left) and `seconds`. With
        the truth also `right` (after, all images), `right_kept`, `right_in_set`,
        `right_likeliest` (likeliest class, among images that show one), `noise_precision`,
        `noise_recall`, `auroc` of confidence and `calibration_error`. With several labels per image
        also `c_f1`, `o_f1` and `map`.
    settings : Settings
        All other settings.

    Examples
    --------
    >>> rows = [{"n_neighbors": 3, "right": 0.8}, {"n_neighbors": 5, "right": 0.9}]
    >>> table = SweepTable({"n_neighbors": (3, 5)}, rows, Settings())
    >>> table.best("right")["n_neighbors"], table.measures
    (5, ['right'])
    >>> print(table.to_csv())
    n_neighbors,right
    3,0.8
    5,0.9
    """

    parameters: dict[str, tuple[Any, ...]]
    rows: list[dict[str, Any]]
    settings: Settings

    @property
    def measures(self) -> list[str]:
        """Names of the measures."""
        return [name for name in self.rows[0] if name not in self.parameters]

    def best(self, measure: str) -> dict[str, Any]:
        """Return the row with the highest value of a measure, the first one if several tie."""
        check_one_of("measure", measure, tuple(self.measures))
        known = [row for row in self.rows if not np.isnan(row[measure])]
        if not known:
            raise InputError(f"measure {measure!r} has no value in any row")
        return max(known, key=lambda row: row[measure])

    def to_csv(self) -> str:
        """Return the table as CSV, in full precision."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown, measures to four digits."""
        rows = [
            [v if name in self.parameters else number(v, ".4g") for name, v in row.items()]
            for row in self.rows
        ]
        return markdown_table(list(self.rows[0]), rows) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return plain(dataclasses.asdict(self))

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __str__(self) -> str:
        return self.to_markdown().rstrip()

    def to_svg(self, measure: str | None = None) -> str:
        """Draw a measure over the first parameter, with one line per value of the second, as SVG.

        Further parameters get one panel per combination of their values. The default measure is
        `right` if the truth was given, otherwise `keep`. Of a sweep over the purity alone, it is
        drawn what is left, and how much of that is right, by estimate and by the truth.
        """
        if measure is None and list(self.parameters) == ["purity"]:
            return self._purity_svg()
        drawn = measure or ("right" if "right" in self.measures else "keep")
        check_one_of("measure", drawn, tuple(self.measures))
        across, *others = self.parameters
        panels: dict[str, dict[str, list[tuple[Any, float]]]] = {}
        for row in self.rows:
            line, *rest = [f"{name} = {row[name]}" for name in others] or [""]
            panel = ", ".join(rest)
            points = panels.setdefault(panel, {}).setdefault(line, [])
            points.append((row[across], row[drawn]))
        title = f"{drawn} by {' and '.join(self.parameters)}"
        return draw_lines(panels, title=title, x_name=across, y_name=drawn)

    def _purity_svg(self) -> str:
        """Draw coverage and share of right labels over the purity asked for."""
        names = {"left": "images left", "estimated": "right of those, estimated",
                 "right_kept": "right of those, true"}  # fmt: skip
        lines = {
            name: [(row["purity"], row[key]) for row in self.rows]
            for key, name in names.items()
            if key in self.rows[0]
        }
        return draw_lines({"": lines}, title="Coverage and purity", x_name="purity", y_name="share")
