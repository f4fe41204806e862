"""Start a run, resume it, or say what it would do."""

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vsgraph.common.files import open_array, replaced_folder, write_whole
from vsgraph.crawls import Crawl, read_crawl
from vsgraph.crawls.inspection import text_coverage
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.method.estimate import Estimate, check_room, estimate_run
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import PAGE, RunFolder, changes, key_of, recall_path, remember_path
from vsgraph.runs.job import RunJob, Tell
from vsgraph.runs.outputs import STAGE_RECORD
from vsgraph.runs.run import Run
from vsgraph.runs.stages import NAMES, STAGES, plan_keys, show_table
from vsgraph.settings import Settings, by_full_name

LAST = "decisions"  # with it the labels are there


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a run; None stands for what it remembers, or the default.

    Attributes
    ----------
    crawl : path, optional
        What :func:`~vsgraph.crawls.read_crawl` reads.
    settings : Settings or mapping, optional
        The numbers of the correction, or changes of what the run remembers.
    choices : Choices or mapping, optional
        Encoders, meanings, arrays of your own, or changes of what the run remembers.
    reading : mapping, optional
        Options of :func:`~vsgraph.crawls.read_crawl`, or changes of what the run remembers.
    forget : bool
        Start from the defaults instead of what the run remembers.
    redo_from : str, optional
        Do this stage again, and all that come after it.
    with_report : bool
        Write the report.
    """

    crawl: str | Path | None = None
    settings: Settings | Mapping[str, Any] | None = None
    choices: Choices | Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None
    forget: bool = False
    redo_from: str | None = None
    with_report: bool = True


def run(
    crawl: str | Path | None,
    out: str | Path,
    *,
    anyway: bool = False,
    progress: bool = False,
    tell: Tell | None = None,
    **asked: Any,  # noqa: ANN401
) -> Run:
    """Correct the labels of a crawl: read, encode, correct, report.

    Each stage is kept in the folder as it finishes. Started again, a run resumes; with other
    settings or inputs it does again only what depends on them. It remembers what it was made with.

    Parameters
    ----------
    crawl : path or None
        What :func:`~vsgraph.crawls.read_crawl` reads; None for the one that the run remembers.
    out : path
        The folder of the run, new or begun.
    anyway : bool
        Start even if memory or disk seem too small.
    progress : bool
        Show progress bars.
    tell : callable, optional
        Called with a line of text: what the crawl is, what a run takes, each stage as it begins
        or is found to be done.
    **asked
        See :class:`Request`: `settings`, `choices`, `reading`, `forget`, `redo_from`,
        `with_report`.

    Returns
    -------
    run : Run
        With crawl, meanings and correction, read from the folder. The labels are those of
        :func:`vsgraph.correct` on arrays of shape (n_images, n_dims) and so on.

    Examples
    --------
    >>> vsgraph.run("my-crawl", "run")  # doctest: +SKIP
    Run('run': keep 696, relabel 77, reject 228, unreadable 0)
    """
    request = Request(crawl=crawl, **asked)
    folder = RunFolder.open(Path(out), create=True)
    with folder.locked():
        job = _prepare(folder, request, tell or _silent, progress=progress)
        todo = _todo(job)
        estimate = _tell_start(job, todo)
        if estimate is not None and not anyway:
            check_room(estimate, folder.path)
        folder.save()
        folder.sweep({job.outputs[name] for name in job.keys})
        _do(job, todo)
    return Run.open(folder.path)


def preview(
    crawl: str | Path | None,
    out: str | Path,
    *,
    tell: Tell,
    **asked: Any,  # noqa: ANN401
) -> None:
    """Tell what :func:`run` would take and do; nothing is encoded or written.

    The parameters are those of :func:`run`.
    """
    request = Request(crawl=crawl, **asked)
    path = Path(out)
    folder = RunFolder.open(path) if path.exists() else RunFolder(path, {}, None)
    job = _prepare(folder, request, tell, progress=False)
    todo = _todo(job)
    _tell_start(job, todo)
    for name in _kept_stages(job):
        what = f"would be done{_again(job, name)}" if name in todo else "done before"
        tell(f"{name}: {what}")


def report_again(path: str | Path, *, progress: bool = False) -> Run:
    """Write the report of a finished run again, and make it the current one."""
    run = Run.open(path)
    folder = run.folder
    with folder.locked():
        key = key_of("report", dict(run.keys), time.time_ns())
        target, started = folder.stage_folder("report", key), time.monotonic()
        run.write_report(target, heading=run.record["asked"]["crawl"]["name"], progress=progress)
        _record(key, target, started, {})
        run.record["stages"]["report"] = _read_record(target)
        folder.save()
        _lead_to_report(folder, target)
    return Run.open(path)


def _prepare(folder: RunFolder, request: Request, tell: Tell, *, progress: bool) -> RunJob:
    """Read the crawl and find the keys of all stages."""
    former = {} if request.forget else folder.asked
    path = _crawl_path(folder, request)
    settings = _settled(Settings, request.settings, former.get("settings", {}))
    choices = _settled(Choices, request.choices, former.get("choices", {}))
    reading = former.get("reading", {}) | _plain(request.reading or {})
    asked = {
        "crawl": {"name": path.name, **remember_path(path, folder.path)},
        "reading": reading,
        "settings": dataclasses.asdict(settings),
        "choices": choices.to_dict(),
        "again": former.get("again", {}) | _again_from(request.redo_from),
    }
    crawl = read_crawl(path, **reading)
    _refuse_early(crawl, choices)
    differ = changes(folder.asked, asked)
    if differ:
        tell(f"changed since the last run: {', '.join(differ)}; what depends on it is done again")
    folder.asked = asked
    job = RunJob(folder, crawl, settings, choices, progress, tell)
    plan_keys(job)
    if not request.with_report:
        job.keys.pop("report", None)
    return job


def _crawl_path(folder: RunFolder, request: Request) -> Path:
    """Return the crawl that is asked for; refuse to replace the run of another one unasked."""
    former = folder.asked.get("crawl")
    if former is None:
        if request.crawl is None:
            raise InputError(f"{folder.path} is a new run; say which crawl to correct")
        return Path(request.crawl)
    if request.crawl is None:
        return recall_path(former, folder.path)
    path = Path(request.crawl)
    same = path.resolve() == recall_path(former, folder.path).resolve()
    moved = not Path(former["absolute"]).exists()
    if not same and not moved and request.redo_from != NAMES[0]:
        raise InputError(
            f"{folder.path} is a run of {former['absolute']}; choose another folder, or replace it "
            f"with redo_from={NAMES[0]!r} (--redo-from {NAMES[0]})"
        )
    return path


def _settled(kind: Any, given: Any, former: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return what is given, or changes on top of what the run remembers."""
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        name = kind.__name__
        raise InputError(f"{name.lower()} must be a vsgraph.{name}, got {type(given).__name__}")
    changed = by_full_name(given or {}) if kind is Settings else dict(given or {})
    return kind.from_dict({**former, **changed})


def _plain(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of reading as JSON keeps them, paths absolute; None is not given."""
    return {
        name: str(value.resolve()) if isinstance(value, Path) else value
        for name, value in reading.items()
        if value is not None
    }


def _again_from(stage: str | None) -> dict[str, int]:
    """Return marks that change the keys of a stage and of all after it, so they are done again."""
    if stage is None:
        return {}
    if stage not in NAMES:
        raise InputError(f"redo_from must be one of {', '.join(NAMES)}, got {stage!r}")
    return dict.fromkeys(NAMES[NAMES.index(stage) :], time.time_ns())


def _kept_stages(job: RunJob) -> list[str]:
    """Return the stages of a run whose results are kept."""
    return [stage.name for stage in STAGES if stage.is_kept and stage.name in job.keys]


def _todo(job: RunJob) -> set[str]:
    """Return the stages that are to be done, with those between them that are never kept."""
    todo = {name for name in _kept_stages(job) if not job.is_kept(name)}
    todo |= {"smoothing"} if todo & {"anchors", "scores"} else set()
    return todo | ({"evidence"} if "scores" in todo else set())


def _tell_start(job: RunJob, todo: set[str]) -> Estimate | None:
    """Tell what the crawl is and what is left to do takes; return the latter."""
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
    estimate = whole.only(todo)
    job.tell(f"expected: {estimate}")
    return estimate


def _again(job: RunJob, name: str) -> str:
    """Say that a stage is done again, and why."""
    made = job.folder.made["stages"].get(name) if job.folder.made else None
    return " again: its inputs changed" if made and made["key"] != job.keys[name] else ""


def _do(job: RunJob, todo: set[str]) -> None:
    """Do the stages that are not done, and make them the current result."""
    for stage in STAGES:
        name = stage.name
        if name not in _kept_stages(job):
            continue
        if name in todo:
            job.tell(f"{name}{_again(job, name)} ...")
            started = time.monotonic()
            if stage.in_place:
                facts = stage.make(job, job.outputs[name])
                _record(job.keys[name], job.outputs[name], started, facts)
            else:
                with replaced_folder(job.outputs[name]) as fresh:
                    facts = stage.make(job, fresh)
                    _record(job.keys[name], fresh, started, facts)
        else:
            job.tell(f"{name}: done before")
        if name == "meanings":
            show_table(job)
        if name == LAST:
            _finish(job, before_report=True)
    _finish(job, before_report=False)


def _record(key: str, folder: Path, started: float, facts: Mapping[str, Any]) -> None:
    """Write the key of a stage, and what came of it, into its folder."""
    record = {
        "key": key,
        "seconds": round(time.monotonic() - started, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts,
    }
    write_whole(folder / STAGE_RECORD, json.dumps(record, indent=1) + "\n")


def _read_record(folder: Path) -> dict[str, Any]:
    """Read what :func:`_record` wrote."""
    return json.loads((folder / STAGE_RECORD).read_text(encoding="utf-8"))


def _finish(job: RunJob, *, before_report: bool) -> None:
    """Make what is done the current result; at the end, let the page at the top lead to it."""
    names = [n for n in _kept_stages(job) if not (before_report and n == "report")]
    stages = {name: _read_record(job.outputs[name]) for name in names}
    made = job.folder.made or {"stages": {}, "asked": {}}
    same = made["stages"].items() >= stages.items() and made["asked"] == _as_json(job.folder.asked)
    if not same:
        job.folder.finish(stages, root=remember_path(job.crawl.root, job.folder.path))
    if "report" in stages:
        _lead_to_report(job.folder, job.outputs["report"])


def _lead_to_report(folder: RunFolder, report: Path) -> None:
    """Write the page at the top of the run's folder, which leads to the report."""
    target = f"stages/{report.name}/index.html"
    write_whole(
        folder.path / PAGE,
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Report</title>'
        f'<meta http-equiv="refresh" content="0; url={target}">'
        f'<a href="{target}">The report of this run</a></html>\n',
    )


def _as_json(value: Any) -> Any:  # noqa: ANN401
    return json.loads(json.dumps(value, default=str))


def _refuse_early(crawl: Crawl, choices: Choices) -> None:
    """Refuse before anything long what could only fail after it."""
    if choices.is_trained:
        model = Path(choices.image_encoder)
        Checkpoint.load(model).refuse_other_classes(crawl.class_names, "the crawl")
    n_images, n_classes = len(crawl), len(crawl.class_names)
    for name, n_rows in (
        ("features", n_images),
        ("text_embeddings", n_images),
        ("label_embeddings", n_classes),
        ("cnn_probs", n_images),
    ):
        own = getattr(choices, name)
        if own is not None and len(open_array(own)) != n_rows:
            raise InputError(f"{own} has {len(open_array(own))} rows, but {n_rows} are needed")
    if choices.features is None and not crawl.has_pictures:
        raise InputError("the crawl has no pictures; give their vectors (--features)")
    if choices.text_embeddings is not None and choices.label_embeddings is None:
        raise InputError("with text_embeddings give label_embeddings of the same encoder, too")
    if choices.text_embeddings is None and not text_coverage(crawl)["any"]:
        raise InputError(
            "the crawl has no text beside any image, and anchors are chosen by text; say which "
            "columns hold it (--column text=NAME)"
        )


def _silent(_: str) -> None:
    """Print nothing."""
