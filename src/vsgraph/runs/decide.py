"""Answers from files, written to the journals of a run: tables, other programs, other journals."""

import json
from pathlib import Path
from typing import NamedTuple

from vsgraph.answers import Answer
from vsgraph.answers.decided import Said, read_decided
from vsgraph.answers.journal import Entry, journal_path, read_journal
from vsgraph.answers.merged import merge_entries
from vsgraph.common.regular import is_regular, open_regular, read_regular
from vsgraph.crawls.columns import below
from vsgraph.encoders.store import content_key
from vsgraph.errors import InputError
from vsgraph.pictures.opener import MOST_BYTES
from vsgraph.result.parts import count_decisions
from vsgraph.runs.run import Run

LONGEST_LINE = 2**20


class Written(NamedTuple):
    """What was taken from a file."""

    n_answers: int  # new ones, or new entries of a journal
    n_before: int  # that the journal had already
    n_same: int  # rows of a table of all images that say what the run says
    counts: dict[str, int]  # of the new answers: keep, relabel, reject
    batch: str | None = None  # the name to undo them by
    problems: tuple[str, ...] = ()  # lines of a journal that were left out


def decide(
    run: Run, path: Path, reviewer: str, *, label_separator: str | None = None, every: bool = False
) -> Written:
    """Write the answers in a file to the journal of a reviewer; nothing if one is not understood.

    A table of all images, as vsgraph exports it, has answers only where it says something else than
    the run; with `every`, each of its rows is an answer.
    """
    if is_journal(path):
        return _copy(run, path)
    crawl = run.crawl
    decided = read_decided(path, crawl.class_names, label_separator=label_separator)
    rows = _Rows(run)
    answers: dict[int, Answer] = {}
    said_by: dict[int, Said] = {}
    n_same = 0
    for said in decided.said:
        row = rows.find(said)
        answer = rows.answer(row, said)
        if row in answers and set(answers[row].new) != set(answer.new):
            raise InputError(f"{said.where}: differs from {said_by[row].where} on the same image")
        is_same = decided.is_whole and not every and set(answer.new) == set(answer.old)
        n_same += is_same
        if not is_same:
            answers[row], said_by[row] = answer, said
    return _write(run, reviewer, answers, n_same)


def _write(run: Run, reviewer: str, answers: dict[int, Answer], n_same: int) -> Written:
    """Write the answers that the reviewer has not given before."""
    own = journal_path(run.folder.answers, reviewer)
    given = merge_entries(read_journal(own, []) if own.exists() else ()).given
    new = {
        row: answer
        for row, answer in answers.items()
        if answer.picture not in given or set(given[answer.picture].new) != set(answer.new)
    }
    batch = None
    if new:
        journal = run.folder.journal(reviewer)
        batch = journal.add(list(new.values()))
    decisions = Run.open(run.path).correction.decisions[list(new)]
    return Written(len(new), len(answers) - len(new), n_same, count_decisions(decisions), batch)


class _Rows:
    """The images of a run, found by path or by content."""

    def __init__(self, run: Run) -> None:
        self.crawl, self.correction = run.crawl, run.correction
        self.images: list[str] = self.crawl.table["image"].to_pylist()
        self.keys = run.outputs.picture_keys(self.crawl)
        self.by_image = {image: row for row, image in enumerate(self.images)}
        self.by_key = {key: row for row, key in enumerate(self.keys)}

    def find(self, said: Said) -> int:
        """Return the row of an image; InputError if the run has no such image."""
        inside = below(self.crawl.root, said.image)
        row = self.by_image.get(said.image, self.by_image.get(inside or ""))
        if row is None and Path(said.image).is_absolute() and is_regular(Path(said.image)):
            content = read_regular(Path(said.image), MOST_BYTES)
            row = self.by_key.get(content_key(content).hex())
        if row is None:
            raise InputError(
                f"{said.where}: {said.image[:200]!r} is no image of this run; paths are those of "
                f"the crawl, such as {self.images[0]!r}"
            )
        return row

    def answer(self, row: int, said: Said) -> Answer:
        """Return the answer of a row."""
        found = self.correction
        web, old = (
            found.names_of(labels[row]) for labels in (found.web_labels, found.final_labels)
        )
        new = web if said.new is None else said.new
        if len(new) > 1 and not self.crawl.has_several_labels:
            raise InputError(
                f"{said.where}: names {len(new)} classes, but images of this crawl have one"
            )
        return Answer(self.keys[row], self.images[row], old, new)


def take_back(run: Run, reviewer: str, batch: str) -> None:
    """Take back a batch of a reviewer's answers; InputError if there is none of that name."""
    own = journal_path(run.folder.answers, reviewer)
    entries = read_journal(own, []) if own.exists() else ()
    batches = {e.batch: None for e in entries if isinstance(e, Answer)}
    if batch not in batches:
        last = f"; the last one is {list(batches)[-1]}" if batches else ""
        raise InputError(f"{reviewer} has no batch {batch!r:.60} in this run{last}")
    run.folder.journal(reviewer).undo(batch)


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal of answers."""
    if path.suffix != ".jsonl" or not is_regular(path):
        return False
    with open_regular(path) as file:
        try:
            first = json.loads(file.readline(LONGEST_LINE))
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and {"who", "when"} <= first.keys()


def _copy(run: Run, path: Path) -> Written:
    """Copy the entries of a journal that the run does not have, to their reviewers' journals."""
    problems: list[str] = []
    entries = list(dict.fromkeys(read_journal(path, problems)))
    known: set[Entry] = set()
    for other in run.folder.answers.glob("*.jsonl"):
        known |= set(read_journal(other, []))
    new = [entry for entry in entries if entry not in known]
    reviewers = list(dict.fromkeys(entry.who for entry in new))
    for who in reviewers:
        journal_path(run.folder.answers, who)  # refuses what is no name before anything is written
    for who in reviewers:
        run.folder.journal(who).copy([entry for entry in new if entry.who == who])
    return Written(len(new), len(entries) - len(new), 0, {}, problems=tuple(problems))
