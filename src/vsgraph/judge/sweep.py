"""Corrections over a grid of settings, which share common stages."""

import dataclasses
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vsgraph.common.checks import check_one_of, check_vector
from vsgraph.common.formatting import plain
from vsgraph.common.progress import bar
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.judge.counts import Truth
from vsgraph.judge.evaluation import Evaluation, evaluate
from vsgraph.judge.sweep_table import SweepTable
from vsgraph.method.algorithm import STAGES, Solver
from vsgraph.method.inputs import check_inputs
from vsgraph.result.correction import Correction
from vsgraph.settings import Settings, by_full_name

ALWAYS = ("keep", "relabel", "reject", "left", "confidence", "estimated", "seconds")
JUDGED: dict[str, Callable[[Evaluation], float]] = {
    "right": lambda judged: judged.accuracy["all"]["after"],
    "right_kept": lambda judged: judged.accuracy["not rejected"]["after"],
    "right_in_set": lambda judged: judged.accuracy["in set"]["after"],
    "right_likeliest": lambda judged: judged.accuracy["in set"]["likeliest"],
    "noise_precision": lambda judged: judged.noise["precision"],
    "noise_recall": lambda judged: judged.noise["recall"],
    "auroc": lambda judged: judged.auroc["confidence"],
    "calibration_error": lambda judged: judged.calibration.error,
}
SEVERAL = {"c_f1": "C-F1", "o_f1": "O-F1", "map": "mAP"}
OF_EQ_8 = ("confidence_threshold", "gnn_weight")


def sweep(
    *arrays: Any,  # noqa: ANN401
    grid: Mapping[str, Sequence[Any]],
    settings: Settings | None = None,
    truth: Truth | None = None,
    known: ArrayLike | None = None,
    progress: bool = False,
    **named: Any,  # noqa: ANN401
) -> SweepTable:
    """Correct a crawl with every combination of some settings, and measure the results.

    Each row equals what :func:`correct` gives with these settings. Graphs, smoothed texts, anchors
    and networks that combinations have in common are computed once.

    Parameters
    ----------
    *arrays, **named
        What :func:`correct` takes: features of shape (n_images, n_dims) and so on, a graph,
        sources.
    grid : mapping of str to sequence
        Values to try, by the name of a setting or its symbol in the paper: k, w, m, L, lambda,
        tau_f.
    settings : Settings, optional
        All other settings; the defaults if not given.
    truth, known
        What the images show, and for which images it is known, as in :func:`evaluate`. Without
        them only the decisions are counted.
    progress : bool
        Show progress bars.

    Returns
    -------
    table : SweepTable
        One row per combination, in the order of the grid.

    Examples
    --------
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> table = sweep(texts, texts, np.eye(2), [0, 1] * 3 + [1, 1], grid={"k": [2, 3], "m": [1, 2]},
    ...               truth=[0, 1] * 4)
    >>> [(row["n_neighbors"], row["anchors_per_class"], row["right"]) for row in table.rows]
    [(2, 1, 1.0), (2, 2, 1.0), (3, 1, 1.0), (3, 2, 1.0)]
    """
    base = Settings() if settings is None else settings
    if not isinstance(base, Settings):
        raise InputError(f"settings must be a vsgraph.Settings, got {type(base).__name__}")
    parameters = _check_grid(grid)
    given = check_inputs(*arrays, **named)
    chosen = list(_combinations(parameters, base))
    _warn_of_silent(parameters, chosen, with_cnn=given.cnn_probs is not None)
    if known is not None:
        check_vector("known", known, length=len(given.features), dtype=bool)
    solver = Solver(given, progress=progress)
    rows: list[dict[str, Any]] = [{} for _ in chosen]
    order = sorted(range(len(chosen)), key=lambda i: _place(parameters, chosen[i]))
    with bar(len(order), "sweep", progress=progress) as steps:
        for i in order:
            started = time.perf_counter()
            correction = solver.correct(chosen[i])
            seconds = time.perf_counter() - started
            varied = {name: getattr(chosen[i], name) for name in parameters}
            rows[i] = varied | _measures(correction, truth, known) | {"seconds": seconds}
            steps.update()
    return SweepTable(parameters, rows, base)


def check_measure(measure: str, *, judged: bool, several: bool) -> None:
    """Raise an error if a sweep will not have a measure.

    It depends on whether the truth is given and whether images have several labels.

    >>> check_measure("right", judged=False, several=False)
    Traceback (most recent call last):
    vsgraph.errors.InputError: measure must be one of keep, relabel, reject, left, confidence,
    estimated, seconds, got 'right'
    """
    known = ALWAYS + tuple(JUDGED) * judged + tuple(SEVERAL) * (judged and several)
    check_one_of("measure", measure, known)


def _check_grid(grid: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the values to try by the full name of each setting."""
    if not isinstance(grid, Mapping) or not grid:
        raise InputError("grid must name at least one setting, as in {'k': [3, 5, 8]}")
    parameters: dict[str, tuple[Any, ...]] = {}
    for name, values in by_full_name(grid).items():
        if isinstance(values, str) or not np.iterable(values):
            raise InputError(f"grid must give {name} a list of values, got {values!r}")
        parameters[name] = tuple(dict.fromkeys(plain(value) for value in values))
        if not parameters[name]:
            raise InputError(f"grid must give {name} at least one value")
    return parameters


def _combinations(parameters: Mapping[str, tuple[Any, ...]], base: Settings) -> Iterator[Settings]:
    """Yield all combinations, the last parameter changing fastest."""
    for values in itertools.product(*parameters.values()):
        yield dataclasses.replace(base, **dict(zip(parameters, values, strict=True)))


def _place(parameters: Mapping[str, tuple[Any, ...]], settings: Settings) -> tuple[int, ...]:
    """Return a sort key of settings: those of early stages change slowest."""
    staged = [name for stage in STAGES for name in stage.settings]
    order = sorted(parameters, key=lambda n: staged.index(n) if n in staged else len(staged))
    return tuple(parameters[name].index(getattr(settings, name)) for name in order)


def _warn_of_silent(
    parameters: Mapping[str, Any], chosen: Sequence[Settings], *, with_cnn: bool
) -> None:
    """Warn that lambda and tau_f change nothing if Eq. 8 is not used."""
    used = with_cnn and not all(one.text_evidence for one in chosen)
    silent = [name for name in OF_EQ_8 if name in parameters and not used]
    if any(one.rounds > 1 for one in chosen):
        silent = [name for name in silent if name != "confidence_threshold"]
    if silent:
        warnings.warn(
            f"no effect without Eq. 8: {' and '.join(silent)}; to use Eq. 8, give cnn_probs and "
            "Settings(text_evidence=False)",
            VSGraphWarning,
            stacklevel=3,
        )


def _measures(
    correction: Correction, truth: Truth | None, known: ArrayLike | None
) -> dict[str, float]:
    """Return the measures of a correction by name."""
    measures = {name: count / len(correction) for name, count in correction.counts.items()}
    measures["left"] = 1 - measures["reject"]
    measures["confidence"] = float(correction.confidence.mean())
    measures["estimated"] = (correction.estimate or {}).get("left", float("nan"))
    if truth is None:
        return measures
    judged = evaluate(correction, truth, known=known)
    measures |= {name: read(judged) for name, read in JUDGED.items()}
    after = judged.several.get("after", {})
    return measures | {name: after[title] for name, title in SEVERAL.items() if after}
