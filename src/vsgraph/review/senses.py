"""The meaning of a class: the senses to choose from, and the table with another one chosen."""

import contextlib
import dataclasses
from pathlib import Path

from vsgraph.common.files import write_whole
from vsgraph.crawls.texts import plain_text
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning, candidate_senses
from vsgraph.meanings.table import choose_sense, read_table, write_meanings
from vsgraph.meanings.wordnet import WordNet
from vsgraph.review.view import View
from vsgraph.runs.names import RECORD, STAGES
from vsgraph.runs.outputs import TABLE

LONGEST_WORDS = 500


def senses_of(view: View, number: int) -> list[Meaning]:
    """Return the senses of a class, the chosen one first: those of the table, then WordNet's."""
    name = view.names[number]
    if "meanings" not in view.run.keys:
        return []
    own = [m for m in read_table(_table_of(view)) if m.class_name == name.strip()]
    own.sort(key=lambda meaning: (not meaning.chosen, meaning.unwanted))
    known = {(m.wnid, m.description) for m in own} | {(m.wnid, "") for m in own if m.wnid}
    with contextlib.suppress(InputError):  # no WordNet, or a name that is none
        own += [
            dataclasses.replace(sense, chosen=False)
            for sense in candidate_senses(name, WordNet.open())
            if not {(sense.wnid, sense.description), (sense.wnid, "")} & known
        ]
    return own


def picked(view: View, number: int, *, wnid: str = "", words: str = "") -> Meaning:
    """Return the sense that a person picked by its WordNet id, or wrote in own words."""
    name = view.names[number].strip()
    own = plain_text(words)[:LONGEST_WORDS].strip()
    for sense in senses_of(view, number):
        if (wnid and sense.wnid == wnid) or (not wnid and own and sense.description == own):
            return sense
    if wnid:
        raise InputError(f"{wnid!r:.40} is not the id of a sense of {name!r:.60}")
    if not own:
        raise InputError("write what the class means, or pick a sense")
    return Meaning(name, None, own)


def write_choice(view: View, chosen: Meaning, path: Path) -> None:
    """Write the run's table of meanings with one sense chosen."""
    meanings = choose_sense(read_table(_table_of(view)), chosen)
    write_meanings(path, meanings, overwrite=True)


def _table_of(view: View) -> Path:
    """Return the table of the current result."""
    return view.run.outputs["meanings"] / TABLE


def copy_run(view: View, folder: Path) -> None:
    """Make a run that shares the finished stages of another, to try something out."""
    run = view.run.folder
    (folder / STAGES).mkdir()
    shared = [run.fetched(name, key) for name, key in view.run.keys.items()]
    for path in [*shared, run.answers]:
        if path.exists():
            (folder / path.relative_to(run.path)).symlink_to(path.resolve())
    write_whole(folder / RECORD, (run.path / RECORD).read_text(encoding="utf-8"))
