"""Start a run, resume it, or preview it."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from vsgraph.cluster import cluster_at_work
from vsgraph.common.files import (
    file_errors,
    mend_leftovers,
    remove_folder,
    replaced_folder,
    write_whole,
)
from vsgraph.common.stores import is_stored, place
from vsgraph.crawls import load_crawl, read_crawl
from vsgraph.crawls.inspection import text_coverage
from vsgraph.errors import InputError
from vsgraph.method.estimate import Estimate, check_room, estimate_run
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import (
    RunFolder,
    changes,
    key_of,
    recall_path,
    remember_path,
    remember_paths,
)
from vsgraph.runs.job import RunJob, Tell
from vsgraph.runs.meaning_table import ask_meanings, show_table
from vsgraph.runs.names import PARTS, STAGE_RECORD
from vsgraph.runs.refusals import refuse_early
from vsgraph.runs.request import Request, again_from, plain_reading, settled, with_paths
from vsgraph.runs.run import Run
from vsgraph.runs.stages import (
    NAMES,
    STAGES,
    check_meanings,
    plan_keys,
)
from vsgraph.runs.table import keep_table
from vsgraph.runs.taught import say_taught
from vsgraph.settings import Settings

FIRST = ("crawl", "meanings")  # quick, and may need a person


@file_errors()
def run(
    crawl: Any,  # noqa: ANN401
    out: str | Path,
    *,
    anyway: bool = False,
    progress: bool = False,
    tell: Tell | None = None,
    cluster: str | None = None,
    **asked: Any,  # noqa: ANN401
) -> Run:
    """Correct the labels of a crawl: read, encode, correct, report.

    Each stage is saved in the folder when it is finished. A run that is started again resumes. If
    settings or inputs have changed, only the stages that depend on them are repeated. A run
    remembers its options.

    Parameters
    ----------
    crawl : path, table or None
        What :func:`~vsgraph.crawls.read_crawl` reads; or a table in memory (pandas, polars, Arrow,
        a Hugging Face dataset, a list of dicts), which is kept in the folder, with paths relative
        to the working directory; None for what the run remembers.
    out : path
        The folder of the run, new or existing; or an address in an object store
        (``s3://bucket/run``).
    anyway : bool
        Start even if memory or disk seem too small.
    progress : bool
        Show progress bars.
    tell : callable, optional
        Called with lines of text: the size of the crawl, the estimate, each stage.
    cluster : str, optional
        The address of a Ray cluster, ``HOST:PORT`` or ``auto``, whose machines do the work; all of
        them must see `crawl` and `out` under the same paths. Without it, this machine does it.
    settings, choices : Settings and Choices, or mappings, optional
        All settings, encoders and own arrays; or only changes to those that the run remembers.
    reading : mapping, optional
        Options of :func:`~vsgraph.crawls.read_crawl` to change.
    forget : bool
        Start from the defaults instead of what the run remembers.
    redo_from : str, optional
        Repeat this stage and all later ones.
    with_report : bool
        Write the report (the default).
    meanings, features, purity, columns, ... : optional
        Single choices, settings and options of reading, by their names.
    ask : callable, optional
        Is given the senses of all classes, if they must be found, and returns them with those
        chosen that are meant.

    Returns
    -------
    run : Run
        The finished run. Its labels equal those of :func:`vsgraph.correct` for the same arrays, of
        shape (n_images, n_dims) and so on.

    Examples
    --------
    >>> vsgraph.run("my-crawl", "run")  # doctest: +SKIP
    Run('run': keep 696, relabel 77, reject 228, unreadable 0)
    """
    say = tell or (lambda _: None)
    with cluster_at_work(cluster, say) if cluster else nullcontext() as parts:
        folder = RunFolder.open(place(out), create=True)
        with folder.locked():
            if crawl is not None and not isinstance(crawl, str | Path):
                crawl, images = keep_table(crawl, folder.path)
                asked = {"images": images} | asked
            job = _prepare(folder, Request.of(crawl, asked), say, progress=progress)
            job.work_on(parts)
            _run_job(job, has_room=anyway or parts is not None)
    return Run.open(folder.path)


def _run_job(job: RunJob, *, has_room: bool) -> None:
    """Do what is to be done of a job, and say so."""
    folder, todo = job.folder, _todo(job)
    estimate = _tell_start(job, todo)
    if estimate is not None and not has_room:
        check_room(estimate, folder.path)
    folder.save()
    folder.show_report()
    folder.sweep({folder.stage_folder(name, key) for name, key in job.keys.items()})
    former = folder.made
    _do(job, todo)
    if job.parts and todo:
        job.tell(job.parts.say_cost())
    if (folder.path / PARTS).exists():
        with contextlib.suppress(OSError):  # some may still be open over a network
            remove_folder(folder.path / PARTS)
    taught = say_taught(job, former)
    if taught is not None:
        job.tell(taught)


@file_errors()
def preview(crawl: str | Path | None, out: str | Path, *, tell: Tell, **asked: Any) -> None:  # noqa: ANN401
    """Print what :func:`run` would do with the same parameters; nothing is encoded or written."""
    path = place(out)
    exists = is_stored(path) or path.exists()  # but may be empty
    folder = RunFolder.open(path, create=True) if exists else RunFolder(path, {}, None)
    job = _prepare(folder, Request.of(crawl, asked), tell, progress=False)
    todo = _todo(job)
    _tell_start(job, todo)
    for name in _kept_stages(job):
        what = f"would be done{_again(job, name)}" if name in todo else "done before"
        tell(f"{name}: {what}")


@file_errors()
def report_again(path: str | Path, *, progress: bool = False) -> Run:
    """Write the report of a finished run again, and make it the current one."""
    with RunFolder.open(place(path)).locked():
        run = Run.open(path)
        folder = run.folder
        key = key_of("report", dict(run.keys), time.time_ns())
        target, started = folder.stage_folder("report", key), time.monotonic()
        run.write_report(target, heading=run.record["asked"]["crawl"]["name"], progress=progress)
        run.record["stages"]["report"] = _record(key, target, started, {})
        folder.publish_stage("report", key)
        folder.save()
        folder.show_report()
    return Run.open(path)


def _prepare(folder: RunFolder, request: Request, tell: Tell, *, progress: bool) -> RunJob:
    """Read the crawl and compute the keys of all stages."""
    former = {} if request.forget else folder.asked
    path = _crawl_path(folder, request)
    settings = settled(Settings, request.settings, former.get("settings", {}))
    choices = settled(Choices, request.choices, former.get("choices", {}))
    reading = former.get("reading", {}) | plain_reading(request.reading or {})
    chosen = choices.to_dict()
    asked = {
        "crawl": {"name": path.name, **remember_path(path, folder.path)},
        "reading": reading,
        "settings": dataclasses.asdict(settings),
        "choices": chosen,
        "paths": remember_paths([*reading.values(), *chosen.values()], folder.path),
        "again": former.get("again", {}) | again_from(request.redo_from),
    }
    crawl = read_crawl(path, **with_paths(reading))
    refuse_early(crawl, choices, settings)
    differ = changes(folder.asked, asked)
    if differ:
        tell(f"changed since the last run: {', '.join(differ)}; dependent stages are repeated")
    folder.asked = asked
    job = RunJob(folder, crawl, settings, choices, progress, tell)
    if request.ask is not None:
        ask_meanings(job, request.ask)
    check_meanings(job)
    plan_keys(job)
    if not request.with_report:
        job.keys.pop("report", None)
    return job


def _crawl_path(folder: RunFolder, request: Request) -> Path:
    """Return the path of the crawl; it is an error if the run is of another crawl."""
    former = folder.asked.get("crawl")
    if former is None:
        if request.crawl is None:
            raise InputError(f"{folder.path} is a new run; give the crawl to correct")
        return place(request.crawl)
    if request.crawl is None:
        return recall_path(former, folder.path)
    path = place(request.crawl)
    same = path.resolve() == recall_path(former, folder.path).resolve()
    moved = not place(former["absolute"]).exists()
    if not same and not moved and request.redo_from != NAMES[0]:
        raise InputError(
            f"{folder.path} is a run of {former['absolute']}; choose another folder, or replace it "
            f"with redo_from={NAMES[0]!r} (--redo-from {NAMES[0]})"
        )
    return path


def _kept_stages(job: RunJob) -> list[str]:
    """Return the stages of a run whose results are written to disk."""
    return [stage.name for stage in STAGES if stage.is_kept and stage.name in job.keys]


def _todo(job: RunJob) -> set[str]:
    """Return the stages to do, with those between them that are never kept."""
    todo = {name for name in _kept_stages(job) if not job.is_kept(name)}
    todo |= {"trust", "smoothing"} if todo & {"anchors", "scores"} else set()
    return todo | ({"evidence", "doubt"} if "scores" in todo else set())


def _tell_start(job: RunJob, todo: set[str]) -> Estimate | None:
    """Print the size of the crawl and the estimate for the remaining stages; return the latter."""
    crawl = job.crawl
    job.tell(f"{crawl.format}: {len(crawl):,} images, {len(crawl.class_names):,} classes")
    for line in crawl.problems.lines():
        job.tell(f"problem: {line}")
    if not todo:
        return None
    n_texts = round(text_coverage(crawl)["any"] * len(crawl))
    whole = estimate_run(
        job.settings, n_images=len(crawl), n_texts=n_texts, n_classes=len(crawl.class_names)
    )
    known = _known_count(job) or 0
    estimate = whole.only(todo, new=1 - known / len(crawl))
    job.tell(f"expected: {estimate}")
    return estimate


def _again(job: RunJob, name: str) -> str:
    """Return why a stage is repeated, or nothing; for vectors, how many are known."""
    former = job.folder.stages.get(name)
    if not former or former["key"] == job.keys[name]:
        return ""
    counts = _known_count(job) if name in {"pictures", "texts"} else None
    if counts is None:
        return " again: its inputs changed"
    return f" again: {counts:,} images known, {len(job.crawl) - counts:,} new"


def _known_count(job: RunJob) -> int | None:
    """Return how many images are in the current result already; None if it is not the paths.

    If all paths are known, files have changed, and nobody knows how many before they are read.
    """
    if "crawl" not in job.folder.stages:
        return None
    try:
        before = load_crawl(job.folder.fetched("crawl", job.folder.stages["crawl"]["key"]))
    except InputError:  # damaged
        return None
    known = pc.is_in(job.crawl.table["image"], before.table["image"].combine_chunks())
    count = int(pc.sum(known).as_py() or 0)
    return count if count < len(job.crawl) else None


def _do(job: RunJob, todo: set[str]) -> None:
    """Do the stages that are not done, and make them the current result."""
    table = {stage.name: stage for stage in STAGES}
    last = [name for name in _kept_stages(job) if name != "report"][-1]
    for name in sorted(_kept_stages(job), key=lambda name: name not in FIRST):
        stage, target = table[name], job.folder.stage_folder(name, job.keys[name])
        if name in todo:
            job.tell(f"{name}{_again(job, name)} ...")
            started = time.monotonic()
            made_in = nullcontext(target) if stage.in_place else replaced_folder(target)
            with job.doing(name), made_in as folder:
                _record(job.keys[name], folder, started, stage.make(job, folder))
            job.finish(name)
        else:
            job.tell(f"{name}: done before")
        job.folder.publish_stage(name, job.keys[name])
        if name == "meanings":
            show_table(job)
        if name == last:
            _finish(job, before_report=True)
    _finish(job, before_report=False)


def _record(key: str, folder: Path, started: float, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the key, time and facts of a stage into its folder, and return them."""
    record = {
        "key": key,
        "seconds": round(time.monotonic() - started, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts,
    }
    mend_leftovers(folder)
    write_whole(folder / STAGE_RECORD, json.dumps(record, indent=1) + "\n")
    return record


def _finish(job: RunJob, *, before_report: bool) -> None:
    """Make the finished stages the current result, and show its report."""
    names = [n for n in _kept_stages(job) if not (before_report and n == "report")]
    stages = {name: job.folder.stage_record(name, job.keys[name]) or {} for name in names}
    former = job.folder.made or {"stages": {}, "asked": {}}
    asked = json.loads(json.dumps(job.folder.asked, default=str))
    if not former["stages"].items() >= stages.items() or former["asked"] != asked:
        job.folder.finish(stages, root=remember_path(job.crawl.root, job.folder.path))
    job.folder.show_report()
