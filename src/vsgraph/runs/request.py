"""What a run is asked for: options sorted by kind, and joined with what the run remembers."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from vsgraph.common.checks import check_known
from vsgraph.common.stores import place
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning
from vsgraph.runs.choices import Choices
from vsgraph.runs.stages import NAMES
from vsgraph.settings import SYMBOLS, Settings, by_full_name

READING = (
    "format", "strict", "images", "columns", "label_separator", "classes", "queries", "split",
    "several_labels", "sources", "all_text",
)  # fmt: skip
READING_PATHS = ("images", "classes", "queries")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a run, see :func:`run`; None means what it remembers, or the default."""

    crawl: str | Path | None = None
    settings: Settings | Mapping[str, Any] | None = None
    choices: Choices | Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None
    forget: bool = False
    redo_from: str | None = None
    with_report: bool = True
    ask: Callable[[list[Meaning]], list[Meaning]] | None = None

    @classmethod
    def of(cls, crawl: str | Path | None, asked: Mapping[str, Any]) -> Self:
        """Return a request; single settings, choices and options of reading go where they belong.

        >>> Request.of("crawl", {"meanings": "m.csv", "purity": 0.9}).settings
        {'purity': 0.9}
        """
        own = [field.name for field in dataclasses.fields(cls) if field.name != "crawl"]
        kinds = {
            "settings": [*(field.name for field in dataclasses.fields(Settings)), *SYMBOLS],
            "choices": [field.name for field in dataclasses.fields(Choices)],
            "reading": READING,
        }
        check_known("option", asked, [*own, *(name for names in kinds.values() for name in names)])
        request = cls(crawl=crawl, **{name: asked[name] for name in own if name in asked})
        for kind, names in kinds.items():
            single = {name: asked[name] for name in names if name in asked}
            if single:
                whole = _changed(getattr(request, kind), single)
                request = dataclasses.replace(request, **{kind: whole})
        return request


def _changed(whole: Any, single: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return settings or choices, whole or changes only, with single ones changed."""
    if isinstance(whole, Settings):
        return dataclasses.replace(whole, **by_full_name(single))
    if isinstance(whole, Choices):
        return dataclasses.replace(whole, **single)
    return {**(whole or {}), **single}


def settled(kind: Any, given: Any, former: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return complete settings or choices, from changes and what the run remembers."""
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        name = kind.__name__
        raise InputError(f"{name.lower()} must be a vsgraph.{name}, got {type(given).__name__}")
    changed = by_full_name(given or {}) if kind is Settings else dict(given or {})
    return kind.from_dict({**former, **changed})


def plain_reading(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reading options that are not None as plain values, with absolute paths."""
    return {
        name: str(place(value).resolve()) if isinstance(value, Path) else value
        for name, value in reading.items()
        if value is not None
    }


def with_paths(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded reading options with their paths as paths."""
    return {
        name: place(value) if name in READING_PATHS and isinstance(value, str) else value
        for name, value in reading.items()
    }


def again_from(stage: str | None) -> dict[str, int]:
    """Return marks that change the keys of a stage and all later ones, to repeat them."""
    if stage is None:
        return {}
    if stage not in NAMES:
        raise InputError(f"redo_from must be one of {', '.join(NAMES)}, got {stage!r}")
    return dict.fromkeys(NAMES[NAMES.index(stage) :], time.time_ns())
