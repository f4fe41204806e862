"""Images by class, decision, rule, confidence, source, picture, answer and words."""

import dataclasses
import math
from collections.abc import Mapping
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from vsgraph.errors import InputError
from vsgraph.report.tallies import Rows
from vsgraph.result.parts import UNANSWERED, Decision, Rule
from vsgraph.review.view import View
from vsgraph.screening.screened import FLAWS

ORDERS = ("least sure", "most sure", "crawl")
ANSWERED = ("", "no", "yes", "conflict")
COPIES, DIFFERING = "copies", "copies under several labels"
PICTURES = (COPIES, DIFFERING, *FLAWS)


@dataclasses.dataclass(frozen=True)
class Filters:
    """What to look for; empty values ask for nothing."""

    label: str = ""  # the web label
    final: str = ""
    decision: str = ""
    rule: str = ""
    least: float = 0.0  # of the confidence
    most: float = 1.0
    source: str = ""
    pictures: str = ""  # copies, those whose labels differ, or a flaw
    answered: str = ""
    words: str = ""
    order: str = ORDERS[0]

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> "Filters":
        """Read filters from the query of an address; InputError if a value makes no sense."""
        known = {f.name: asked[f.name].strip() for f in dataclasses.fields(cls) if f.name in asked}
        values: dict[str, str | float] = {name: text for name, text in known.items() if text}
        for name in ("least", "most"):
            if name in values:
                values[name] = _share(name, str(values[name]))
        filters = cls(**values)  # type: ignore[arg-type]
        _check(filters)
        return filters

    def query(self) -> str:
        """Return the filters that differ from the default, for an address."""
        default = Filters()
        differ = {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if value != getattr(default, name)
        }
        return urlencode(differ)


def _share(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if math.isnan(share):
        raise InputError(f"{name} must be a number from 0 to 1, got {text!r:.40}")
    return min(1.0, max(0.0, share))


def _check(filters: Filters) -> None:
    """Refuse values that are none of the choices."""
    for name, known in (
        ("decision", {d.name.lower() for d in Decision}),
        ("rule", {r.name.lower() for r in Rule}),
        ("order", set(ORDERS)),
        ("answered", set(ANSWERED)),
        ("pictures", set(PICTURES)),
    ):
        value = getattr(filters, name)
        if value and value not in known:
            raise InputError(f"{name} must be one of {', '.join(sorted(known))}, got {value!r:.40}")


def find(
    view: View, filters: Filters, answered: NDArray[np.intp], conflicts: NDArray[np.intp]
) -> Rows:
    """Return the rows that fit, in the order asked for.

    `answered` has the answer to each image, -2 if there is none; `conflicts` are rows on which
    reviewers differ.
    """
    fits = _by_answer(filters.answered, answered, conflicts)
    fits &= _by_labels(view, filters)
    correction = view.correction
    if filters.decision:
        fits &= correction.decisions == Decision[filters.decision.upper()]
    if filters.rule:
        fits &= correction.rules == Rule[filters.rule.upper()]
    if filters.least > 0 or filters.most < 1:
        fits &= (view.confidence >= filters.least) & (view.confidence <= filters.most)
    if filters.source and view.sources is not None:
        names, numbers = view.sources
        fits &= numbers == (names.index(filters.source) if filters.source in names else -1)
    if filters.pictures:
        fits &= _by_pictures(view, filters.pictures)
    rows = np.flatnonzero(fits)
    if filters.words:
        rows = view.with_words(rows, filters.words)
    if filters.pictures in {COPIES, DIFFERING} and view.screening is not None:
        return rows[np.lexsort((view.screening.ranks[rows], view.screening.groups[rows]))]
    return _ordered(view, rows, filters.order)


def _by_pictures(view: View, asked: str) -> NDArray[np.bool_]:
    """Return which images have copies, or the flaw asked for; none if the run did not look."""
    screening = view.screening
    if screening is None:
        return np.zeros(len(view), bool)
    if asked == COPIES:
        return np.asarray(screening.sizes > 1)
    if asked == DIFFERING:
        return screening.differing(view.crawl.labels_matrix())
    return screening.has(asked)


def count_pictures(view: View) -> dict[str, int]:
    """Return how many images there are of each kind of picture, if there are any."""
    counts = {name: int(_by_pictures(view, name).sum()) for name in PICTURES}
    return {name: count for name, count in counts.items() if count}


def _by_labels(view: View, filters: Filters) -> NDArray[np.bool_]:
    """Return which images have the web label and the final label asked for."""
    fits = np.ones(len(view), bool)
    for name, columns in ((filters.label, view.web), (filters.final, view.final)):
        if name:
            inside = np.zeros(len(view), bool)
            if name in view.names:
                inside[columns.rows(view.names.index(name))] = True
            fits &= inside
    return fits


def _by_answer(
    asked: str, answered: NDArray[np.intp], conflicts: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return which images are answered, or not, or in conflict, as asked."""
    is_answered = answered != UNANSWERED
    if asked == "conflict":
        inside = np.zeros(len(answered), bool)
        inside[conflicts] = True
        return inside
    return {"yes": is_answered, "no": ~is_answered}.get(asked, np.ones(len(answered), bool))


def _ordered(view: View, rows: Rows, order: str) -> Rows:
    """Sort rows by confidence or leave them in the order of the crawl."""
    if order == "crawl":
        return rows
    sign = 1 if order == ORDERS[0] else -1
    return rows[np.argsort(sign * view.confidence[rows], kind="stable")]
