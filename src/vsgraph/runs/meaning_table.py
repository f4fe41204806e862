"""The table of meanings in a run: found, asked for, or edited by the user."""

import hashlib
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vsgraph.common.files import write_whole
from vsgraph.errors import InputError
from vsgraph.meanings.crawl_senses import describe_crawl
from vsgraph.meanings.crawl_words import propose_unwanted
from vsgraph.meanings.senses import Meaning, doubt
from vsgraph.meanings.table import (
    by_class,
    read_meanings,
    read_unwanted,
    senses_in,
    write_meanings,
)
from vsgraph.meanings.wordnet import WordNet
from vsgraph.runs.job import RunJob
from vsgraph.runs.names import STAGES as STAGES_FOLDER
from vsgraph.runs.outputs import TABLE

MOST_DOUBTS = 10  # named at the start of a run


def write_table(job: RunJob, folder: Path) -> dict[str, Any]:
    """Find what the classes mean, or use the user's table."""
    source, digest = meaning_source(job)
    if source is None:
        senses, known = describe_crawl(job.crawl), set()
        _tell_doubts(job, senses)
    else:
        senses = read_meanings(source, job.crawl.class_names) + read_unwanted(source)
        known = senses_in(source)
    if knows_words(job):
        chosen = [sense for sense in senses if sense.chosen]
        proposed = propose_unwanted(job.crawl, chosen, job.text_encoder.encode)
        senses += [sense for sense in proposed if (sense.class_name, sense.wnid) not in known]
    write_meanings(folder / TABLE, senses)
    return {"source": digest if source == job.choices.meanings else _last_source(job)}


def _tell_doubts(job: RunJob, meanings: list[Meaning]) -> None:
    """Say which meanings are doubtful, and how to change them."""
    senses_by_name = by_class(meanings)
    doubts = {name: why for name, senses in senses_by_name.items() if (why := doubt(senses))}
    if not doubts:
        return
    are = "is" if len(doubts) == 1 else "are"
    job.tell(f"meanings: {len(doubts)} of {len(senses_by_name)} classes {are} doubtful")
    for name, why in list(doubts.items())[:MOST_DOUBTS]:
        meant = textwrap.shorten(senses_by_name[name][0].description, 100, placeholder=" ...")
        job.tell(f"  {name} ({why}) is taken as: {meant}")
    if len(doubts) > MOST_DOUBTS:
        job.tell(f"  and {len(doubts) - MOST_DOUBTS} more; they are marked in the table")
    again = f"vsgraph correct -o {job.folder.path}"
    job.tell(
        f"  to change one: {again} --ask asks at the terminal; or move its 'yes' in "
        f"{job.folder.path / TABLE} or write a description there, then {again}; or give a table of "
        "vsgraph describe by --meanings"
    )


def ask_meanings(job: RunJob, ask: Callable[[list[Meaning]], list[Meaning]]) -> None:
    """Let a person choose among the meanings found; the answers are the run's edited table."""
    if _is_redone(job):
        raise InputError("to be asked again, remove meanings.csv of the run instead of --redo-from")
    if job.choices.label_embeddings is not None or meaning_source(job)[0] is not None:
        job.tell("meanings: your own are used, so nothing is asked")
        return
    found = describe_crawl(job.crawl)
    answered = ask(found)
    if answered != found:
        write_meanings(job.folder.path / TABLE, answered, overwrite=True)


def meaning_source(job: RunJob) -> tuple[Path | None, str]:
    """Return the user's table of meanings and its digest, or None if the meanings must be found.

    A table edited in the run's folder is used, unless another one was given after that.
    """
    table, given = job.folder.path / TABLE, job.choices.meanings
    digest = _digest(given) if given else "found"
    if is_edited(job) and not _is_redone(job) and digest in {"found", _last_source(job)}:
        return table, _digest(table)
    return given, digest


def is_edited(job: RunJob) -> bool:
    """Return whether the table in the run's folder differs from all tables that stages wrote."""
    table = job.folder.path / TABLE
    job.folder.fetch_all("meanings")
    written = (job.folder.path / STAGES_FOLDER).glob(f"meanings-*/{TABLE}")
    return table.exists() and _digest(table) not in {_digest(path) for path in written}


def _is_redone(job: RunJob) -> bool:
    """Return whether the meanings must be found or read again, by --redo-from."""
    before = (job.folder.made or {}).get("asked", {})
    now, then = (asked.get("again", {}).get("meanings") for asked in (job.folder.asked, before))
    return now != then


def _last_source(job: RunJob) -> str | None:
    """Return the digest of the table that the current result's meanings come from."""
    return job.folder.stages.get("meanings", {}).get("source")


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def show_table(job: RunJob) -> None:
    """Copy the table of meanings to where the user edits it; an edited one is kept beside it."""
    table = job.folder.path / TABLE
    text = (job.outputs["meanings"] / TABLE).read_text(encoding="utf-8")
    is_same = table.exists() and table.read_text(encoding="utf-8") == text
    if is_same or (is_edited(job) and meaning_source(job)[0] == table):
        return
    if is_edited(job):
        table.replace(table.with_name("meanings-before.csv"))
        job.tell("meanings: your former table is kept as meanings-before.csv")
    write_whole(table, text)


def knows_words(job: RunJob) -> bool:
    """Return whether names can be compared with texts: by our encoder, one label, and WordNet."""
    own = job.choices.text_embeddings is not None or job.choices.label_embeddings is not None
    return not own and not job.crawl.has_several_labels and WordNet.is_found()
