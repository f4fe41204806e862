"""From a crawl to corrected labels and a report, stage by stage, each kept as it finishes."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vsgraph.crawls import Crawl, read_crawl
from vsgraph.crawls.inspection import text_coverage
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.method.estimate import Estimate, check_room, estimate_run
from vsgraph.runs.folder import RECORD, STAGES, RunFolder
from vsgraph.runs.result import Run
from vsgraph.runs.steps import Choices, Runner, Tell
from vsgraph.settings import Settings


def run(
    crawl: str | Path,
    out: str | Path,
    *,
    settings: Settings | None = None,
    choices: Choices | None = None,
    reading: Mapping[str, Any] | None = None,
    redo_from: str | None = None,
    with_report: bool = True,
    anyway: bool = False,
    progress: bool = False,
    tell: Tell | None = None,
) -> Run:
    """Correct the labels of a crawl: read, encode, correct, report.

    Each stage is kept in the folder as it finishes. Started again, a run takes up where it was;
    with other settings or inputs it does again only what depends on them.

    Parameters
    ----------
    crawl : path
        What :func:`~vsgraph.crawls.read_crawl` reads.
    out : path
        The folder of the run, new or begun.
    settings : Settings, optional
        The numbers of the correction.
    choices : Choices, optional
        Encoders, meanings, arrays of your own.
    reading : mapping, optional
        Options of :func:`~vsgraph.crawls.read_crawl`.
    redo_from : str, optional
        Do this stage again, and all that come after it.
    with_report : bool
        Write the report.
    anyway : bool
        Start even if memory or disk seem too small.
    progress : bool
        Show progress bars.
    tell : callable, optional
        Called with a line of text: what the crawl is, what a run takes, each stage as it begins
        or is found to be done.

    Returns
    -------
    run : Run
        With crawl, meanings and correction, read from the folder.
    """
    folder = RunFolder.open(Path(out), make=True)
    settings, choices, tell = settings or Settings(), choices or Choices(), tell or _silent
    with folder.locked():
        if redo_from is not None:
            folder.forget(_from_stage(redo_from))
        _refuse_other_crawl(folder, Path(crawl), redo_from)
        found = read_crawl(crawl, **(reading or {}))
        _refuse_early(found, choices)
        plan = plan_run(found, settings, tell)
        if not anyway:
            check_room(plan, folder.path)
        given = _given(settings, choices, reading)
        _tell_changes(folder, given, tell)
        folder.describe(crawl=str(Path(crawl).resolve()), **given)
        Runner(folder, found, settings, choices, progress, tell).all(report=with_report)
    return Run.open(folder.path)


def preview(
    crawl: str | Path,
    out: str | Path,
    *,
    settings: Settings,
    choices: Choices,
    reading: Mapping[str, Any] | None = None,
    redo_from: str | None = None,
    with_report: bool = True,
    tell: Tell,
) -> None:
    """Tell what :func:`run` would take, and where a run is there already, what it would do again.

    Nothing is encoded or written. The parameters are those of :func:`run`.
    """
    found = read_crawl(crawl, **(reading or {}))
    _refuse_early(found, choices)
    plan_run(found, settings, tell)
    if not (Path(out) / RECORD).exists():
        return
    folder = RunFolder.open(Path(out))
    folder.forget(_from_stage(redo_from), save=False)
    _refuse_other_crawl(folder, Path(crawl), redo_from)
    _tell_changes(folder, _given(settings, choices, reading), tell)
    Runner(folder, found, settings, choices, progress=False, tell=tell, dry=True).all(
        report=with_report
    )


def _from_stage(stage: str | None) -> tuple[str, ...]:
    """Return a stage and all that come after it."""
    if stage is None:
        return ()
    if stage not in STAGES:
        raise InputError(f"redo_from must be one of {', '.join(STAGES)}, got {stage!r}")
    return STAGES[STAGES.index(stage) :]


def _given(
    settings: Settings, choices: Choices, reading: Mapping[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Return what a run was asked for, as it is recorded."""
    return {
        "reading": dict(reading or {}),
        "settings": dataclasses.asdict(settings),
        "choices": dataclasses.asdict(choices),
    }


def _tell_changes(folder: RunFolder, given: Mapping[str, Mapping[str, Any]], tell: Tell) -> None:
    """Say what differs from the last run in the folder."""
    changes = folder.changes(**given)
    if changes:
        tell(f"changed since the last run: {', '.join(changes)}; what depends on it is done again")


def plan_run(crawl: Crawl, settings: Settings, tell: Tell) -> Estimate:
    """Tell what a crawl is and what a run on it takes from nothing, and return the latter.

    Parameters
    ----------
    crawl : Crawl
        As it was read.
    settings : Settings
        The numbers of the correction.
    tell : callable
        Called with lines of text.

    Returns
    -------
    plan : Estimate
        Time, memory and disk.
    """
    tell(f"{crawl.format}: {len(crawl):,} images, {len(crawl.class_names):,} classes")
    for line in crawl.problems.lines():
        tell(f"problem: {line}")
    n_texts = round(text_coverage(crawl)["any"] * len(crawl))
    plan = estimate_run(
        settings, n_images=len(crawl), n_texts=n_texts, n_classes=len(crawl.class_names)
    )
    tell(f"from nothing it would take {plan}")
    return plan


def _refuse_other_crawl(folder: RunFolder, crawl: Path, redo_from: str | None) -> None:
    """Refuse to replace the run of another crawl unasked."""
    former = folder.record.get("crawl")
    if former is not None and former != str(crawl.resolve()) and redo_from != STAGES[0]:
        raise InputError(
            f"{folder.path} is a run of {former}; choose another folder, or say redo_from "
            f"(--redo-from {STAGES[0]}) to replace it"
        )


def _refuse_early(crawl: Crawl, choices: Choices) -> None:
    """Refuse before anything long what could only fail after it."""
    if choices.is_trained:
        model = Path(choices.image_encoder)
        Checkpoint.load(model).refuse_other_classes(crawl.class_names, "the crawl")
    if choices.text_embeddings is not None and choices.label_embeddings is None:
        raise InputError("with text_embeddings give label_embeddings of the same encoder, too")
    if choices.text_embeddings is None and not text_coverage(crawl)["any"]:
        raise InputError(
            "the crawl has no text beside any image, and anchors are chosen by text; say which "
            "columns hold it (--column text=NAME)"
        )


def _silent(_: str) -> None:
    """Tell nobody."""
