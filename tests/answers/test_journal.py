"""Journals: what is written is there, whatever ends the writer; and how journals merge."""

import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsgraph.answers import AUDIT, Answer, Journal, picture_keys, read_answers
from vsgraph.answers.journal import Change, read_journal
from vsgraph.answers.merged import merge_entries
from vsgraph.errors import FileError, InputError

CLASSES = ("owl", "bat")


def say(picture, *new, **more):
    return Answer(picture, f"{picture}.jpg", ("owl",), new, **more)


def shown(folder):
    return {picture: answer.new for picture, answer in read_answers(folder).given.items()}


def test_answers_are_read_as_they_were_given_and_the_last_one_counts(tmp_path):
    journal = Journal.open(tmp_path / "answers", "ann")
    first = journal.add([say("01", "bat"), say("02")])
    second = journal.add([say("01", "owl", purpose=AUDIT), say("02", "owl")])
    answers = read_answers(tmp_path / "answers")
    assert first != second
    assert {a.picture: a.new for a in answers.given.values()} == {"01": ("bat",), "02": ("owl",)}
    assert answers.audit["01"].new == ("owl",)
    assert answers.n_by_reviewer == {"ann": 2}
    assert answers.problems == answers.conflicts == []
    assert answers.agreement is None
    line = json.loads((tmp_path / "answers" / "ann.jsonl").read_text().splitlines()[0])
    assert list(line) == ["who", "when", "picture", "image", "old", "new", "batch", "for"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["when"])


def test_a_batch_is_undone_and_redone_as_a_whole(tmp_path):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    batch = journal.add([say("01"), say("02", "bat")])
    journal.undo(batch)
    assert shown(tmp_path) == {"01": ("owl",)}
    journal.redo(batch)
    assert shown(tmp_path) == {"01": (), "02": ("bat",)}
    journal.undo(batch)
    journal.add([say("02", "owl")], batch=batch)  # after the undo: it holds
    assert shown(tmp_path) == {"01": ("owl",), "02": ("owl",)}


def test_reviewers_agree_and_disagree(tmp_path):
    ann, bob = Journal.open(tmp_path, "ann"), Journal.open(tmp_path, "bob")
    ann.add([say("01", "owl"), say("02", "owl"), say("03", "owl")])
    bob.add([say("01", "owl"), say("02", "bat"), say("04", "bat")])
    answers = read_answers(tmp_path)
    assert answers.agreement == 0.5
    assert [(c.picture, c.said) for c in answers.conflicts] == [
        ("02", {"ann": ("owl",), "bob": ("bat",)})
    ]
    assert answers.given["02"].new == ("bat",)
    assert answers.n_by_reviewer == {"ann": 3, "bob": 3}
    ann.add([say("02", "owl")])
    assert read_answers(tmp_path).given["02"].new == ("owl",)
    assert "disagree on 1 pictures" in answers.lines(["01"], CLASSES)[-1]


@pytest.mark.parametrize("rest", [b'{"who": "ann", "wh', b'"', "{é".encode()[:2]])
def test_a_line_that_is_cut_off_is_told_left_out_and_removed_by_the_next_write(tmp_path, rest):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + rest)
    answers = read_answers(tmp_path)
    assert set(answers.given) == {"01"}
    assert answers.problems == [f"{journal.path}: its last line is cut off and is left out"]
    journal.add([say("02", "bat")])
    assert journal.path.read_bytes().startswith(whole + b'{"who"')
    assert set(shown(tmp_path)) == {"01", "02"}
    assert read_answers(tmp_path).problems == []


def test_a_journal_that_is_one_long_cut_line_is_begun_again(tmp_path):
    journal = Journal.open(tmp_path, "ann")
    journal.path.write_bytes(b'{"who": "' + b"x" * 200_000)
    journal.add([say("01", "owl")])
    assert shown(tmp_path) == {"01": ("owl",)}


def test_a_complete_last_line_without_its_end_is_kept(tmp_path):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    journal.path.write_bytes(journal.path.read_bytes().rstrip())  # by an editor
    assert set(shown(tmp_path)) == {"01"}
    journal.add([say("02", "bat")])
    assert set(shown(tmp_path)) == {"01", "02"}


@pytest.mark.parametrize(
    "line",
    [
        b"null", b"[]", b"7", b"\x00\x00", b"\xff\xfe", b'{"who": "ann"}', b"[" * 100_000,
        b'{"who": "ann", "when": "yesterday", "undo": "b-1"}',
        b'{"who": "ann", "when": "9999-12-31T23:59:59.999999Z", "undo": "b-1"}',
        b'{"who": "ann", "when": "9999-12-31T23:59:59.999998Z", "undo": "b-1"}',
        b'{"who": "ann", "when": "2026-01-01", "undo": "\\ud800"}',
        b'{"who": "ann", "when": "2026-01-01", "undo": 1}',
        b'{"who":"a","when":"2026-01-01","picture":"1","image":"","new":"owl","batch":"b"}',
        b'{"who":"a","when":"2026-01-01","picture":"1","image":"","new":[],"batch":"b","for":"x"}',
    ],
)  # fmt: skip
def test_a_line_of_something_else_is_told_with_its_number_and_harms_no_other(tmp_path, line):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    with journal.path.open("ab") as file:
        file.write(line + b"\n")
    journal.add([say("02", "bat")])
    answers = read_answers(tmp_path)
    assert set(answers.given) == {"01", "02"}
    assert answers.problems == [f"{journal.path}, line 2: not a line of a journal, left out"]


def test_times_grow_even_if_the_clock_goes_back(tmp_path):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    journal.path.write_text(re.sub('"when": "....', '"when": "2999', journal.path.read_text()))
    journal.add([say("01", "bat")])
    assert shown(tmp_path) == {"01": ("bat",)}


def test_names_of_reviewers_are_safe_as_names_of_files(tmp_path):
    journal = Journal.open(tmp_path / "run" / "answers", "../../Jörg \x1b[31m")
    journal.add([say("01", "owl")])
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == ["Jörg_31m.jsonl"]
    assert journal.path.parent == tmp_path / "run" / "answers"
    assert "\x1b" not in read_answers(journal.path.parent).given["01"].who
    with pytest.raises(InputError, match="is no name of a reviewer"):
        Journal.open(tmp_path, "../..")


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "answers").write_text("a file")
    with pytest.raises(FileError, match="answers"):
        Journal.open(tmp_path / "answers", "ann")


def test_a_full_disk_leaves_all_of_a_batch_or_nothing(tmp_path, monkeypatch):
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("01", "owl")])
    whole, write = journal.path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:150]))
    with pytest.raises(FileError, match="No space left on device; make room"):
        journal.add([say("02", "bat"), say("03", "bat")])
    assert journal.path.read_bytes() == whole


def test_writers_of_one_journal_do_not_mix_their_lines(tmp_path):
    def write(worker):
        journal = Journal.open(tmp_path, "ann")
        for number in range(20):
            journal.add([say(f"{worker}-{number}-{one}", "owl") for one in range(3)])

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = read_answers(tmp_path)
    assert len(answers.given) == 4 * 20 * 3
    assert answers.problems == []


WRITER = """
import sys
from pathlib import Path
from vsgraph.answers import Answer, Journal
journal = Journal.open(Path(sys.argv[1]), "ann")
for number in range(10**6):
    names = [f"{number}-{one}" for one in range(40)]
    journal.add([Answer(name, name * 20, ("owl",), ("bat",)) for name in names])
    print(number, flush=True)
"""


def test_nothing_that_was_confirmed_is_lost_by_kill_9(tmp_path):
    chance = random.Random(0)
    confirmed = set()
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            told = [child.stdout.readline() for _ in range(chance.randint(5, 60))]
            os.kill(child.pid, signal.SIGKILL)
            told += child.stdout.readlines()
        confirmed |= {f"{int(line)}-{one}" for line in told if line.strip() for one in range(40)}
        answers = read_answers(tmp_path)
        assert confirmed <= set(answers.given)
        assert all("cut off" in problem for problem in answers.problems)
    Journal.open(tmp_path, "ann").add([say("last", "owl")])
    assert read_answers(tmp_path).problems == []


def test_answers_are_matched_with_a_crawl_by_the_content_of_pictures(tmp_path):
    contents = np.array([[1, 2], [0, 0], [3, 4], [1, 2]], np.uint8)
    keys = picture_keys(["a", "b", "c", "d"], contents)
    assert keys.tolist() == ["0102", "name:b", "0304", "0102"]
    journal = Journal.open(tmp_path, "ann")
    journal.add([say("0102", "bat"), say("name:b"), say("0304", "auk"), say("ffff", "owl")])
    answers = read_answers(tmp_path)
    assert answers.labels(keys, CLASSES).tolist() == [1, -1, -2, 1]
    assert answers.lines(keys, CLASSES) == [
        "1 of 4 answered pictures are not in this crawl; their answers stay in the journal",
        "1 answer names 'auk', which is no class here; not used",
    ]
    assert answers.labels(keys, (*CLASSES, "auk")).tolist() == [1, -1, 2, 1]
    assert picture_keys(["a"], None).tolist() == ["name:a"]


def test_answers_with_several_classes(tmp_path):
    Journal.open(tmp_path, "ann").add([say("01", "bat", "owl"), say("02"), say("03", "auk")])
    answers = read_answers(tmp_path)
    keys = ["00", "01", "02", "03"]
    matrix, rows = answers.matrix(keys, CLASSES)
    assert matrix.tolist() == [[True, True], [False, False]]
    assert rows.tolist() == [1, 2]
    assert answers.labels(keys, CLASSES).tolist() == [-2, -2, -1, -2]
    assert "1 answers name several classes" in answers.lines(keys, CLASSES)[-1]
    assert len(answers.lines(keys, CLASSES, several=True)) == 1


def test_a_run_without_answers_has_none(tmp_path):
    answers = read_answers(tmp_path / "nothing")
    assert answers.labels(["01"], CLASSES).tolist() == [-2]
    assert answers.lines(["01"], CLASSES) == []


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]), st.integers(0, 3), st.integers(0, 3),
        st.sampled_from([(), ("owl",), ("bat",)]), st.sampled_from(["add", "undo", "redo"]),
    ),
    max_size=14,
)  # fmt: skip


def entries_of(steps):
    """Entries at times that grow, as a journal makes them."""
    for second, (who, batch, picture, new, kind) in enumerate(steps):
        when = f"2026-01-01T00:00:{second:02d}.000Z"
        if kind == "add":
            yield say(f"{picture}", *new, who=who, when=when, batch=f"b-{batch}")
        else:
            yield Change(who, when, f"b-{batch}", is_undo=kind == "undo")


@given(ENTRIES, st.randoms(use_true_random=False))
def test_merging_depends_neither_on_order_nor_on_repetition(steps, chance):
    entries = list(entries_of(steps))
    shuffled = entries + chance.sample(entries, len(entries) // 2)
    chance.shuffle(shuffled)
    assert merge_entries(entries) == merge_entries(shuffled)


@given(ENTRIES)
def test_merging_agrees_with_a_state_that_is_kept_step_by_step(steps):
    entries = list(entries_of(steps))
    batches = {(entry.who, entry.batch): [] for entry in entries}
    undone = dict.fromkeys(batches, ())
    for entry in entries:
        batch = batches[entry.who, entry.batch]
        if isinstance(entry, Answer):
            batch.append(entry)
        else:
            undone[entry.who, entry.batch] = tuple(batch) if entry.is_undo else ()
    left = [a for key, batch in batches.items() for a in batch if a not in undone[key]]
    expected = {a.picture: a for a in sorted(left, key=lambda answer: answer.when)}
    assert merge_entries(entries).given == expected


@given(ENTRIES)
def test_undoing_everything_leaves_nothing_and_redoing_brings_it_back(steps):
    added = [entry for entry in entries_of(steps) if isinstance(entry, Answer)]
    names = {(answer.who, answer.batch) for answer in added}
    undo = [Change(*key[:1], "2026-01-02", key[1], is_undo=True) for key in names]
    redo = [dataclasses.replace(change, when="2026-01-03", is_undo=False) for change in undo]
    assert merge_entries([*added, *undo]).given == {}
    assert merge_entries([*added, *undo, *redo]) == merge_entries(added)


@settings(deadline=None)  # each answer waits for the disk
@given(st.text(max_size=20), st.lists(st.text(max_size=9), max_size=3))
def test_any_text_survives(tmp_path_factory, image, names):
    folder = tmp_path_factory.mktemp("answers")
    journal = Journal.open(folder, "ann")
    journal.add([Answer("01", image, (), tuple(names))])
    (read,) = read_journal(journal.path, problems := [])
    assert (read.image, read.new, problems) == (image, tuple(names), [])
