"""What came of each combination of settings: as text, JSON and a picture."""

import csv
import dataclasses
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from vsgraph.common.checks import check_one_of
from vsgraph.common.formatting import markdown_table, number, plain
from vsgraph.common.plot import draw_lines
from vsgraph.errors import InputError
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True, eq=False)
class SweepTable:
    """A row for every combination of settings: its values, and what came of them.

    Attributes
    ----------
    parameters : dict of str to tuple
        Settings that were varied, with their values.
    rows : list of dict
        The values, then `keep`, `relabel` and `reject` (shares of images), mean `confidence` and
        the `seconds` it took; with the truth also `right` (after, all images), `right_kept`,
        `right_in_set`, `right_likeliest` (likeliest class, among images that show one), the
        `noise_precision` and `noise_recall`, `auroc` of confidence and `calibration_error`; and
        with several labels an image `c_f1`, `o_f1` and `map`.
    settings : Settings
        The numbers that were not varied.

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
        """Names of what was measured."""
        return [name for name in self.rows[0] if name not in self.parameters]

    def best(self, measure: str) -> dict[str, Any]:
        """Return the row with the highest value of a measure, the first of equal ones."""
        check_one_of("measure", measure, tuple(self.measures))
        known = [row for row in self.rows if not np.isnan(row[measure])]
        if not known:
            raise InputError(f"measure {measure!r} has no value in any row")
        return max(known, key=lambda row: row[measure])

    def to_csv(self) -> str:
        """Return the table as CSV, as exact as it is."""
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
        """Draw a measure: over the first parameter, a line for each value of the second.

        Parameters
        ----------
        measure : str, optional
            What to draw: with the truth the share of right images, else that of kept ones. A third
            parameter, and more, get a panel for each combination of their values.

        Returns
        -------
        svg : str
            A whole SVG document.
        """
        drawn = measure or ("right" if "right" in self.measures else "keep")
        check_one_of("measure", drawn, tuple(self.measures))
        across, *others = self.parameters
        panels: dict[str, dict[str, list[tuple[Any, float]]]] = {}
        for row in self.rows:
            panel = ", ".join(_told(row, name) for name in others[1:])
            line = _told(row, others[0]) if others else ""
            points = panels.setdefault(panel, {}).setdefault(line, [])
            points.append((row[across], row[drawn]))
        title = f"{drawn} by {' and '.join(self.parameters)}"
        return draw_lines(panels, title=title, x_name=across, y_name=drawn)


def _told(row: Mapping[str, Any], name: str) -> str:
    """Say which value a parameter has."""
    return f"{name} = {row[name]}"
