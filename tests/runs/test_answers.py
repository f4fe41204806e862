"""Answers in a run: every reader honours them, and they outlive runs, settings and places."""

import json
import shutil

import numpy as np
import pyarrow.csv
import pytest
from small_crawl import correct_small as correct
from small_crawl import write_small_crawl

from vsgraph.answers import AUDIT, Answer, Journal
from vsgraph.exports import FORMATS
from vsgraph.judge.comparison import compare
from vsgraph.judge.evaluation import evaluate
from vsgraph.result.parts import Rule, count_decisions
from vsgraph.runs import Run, run
from vsgraph.training.labels import corrected_labels


def answer(path, said, reviewer="ann", **more):
    """Write what a reviewer says of rows of a run."""
    opened = Run.open(path)
    keys, images = opened.outputs.picture_keys(opened.crawl), opened.crawl.table["image"]
    answers = [Answer(keys[row], images[row].as_py(), (), new, **more) for row, new in said.items()]
    return Journal.open(path / "answers", reviewer).add(answers)


def others(path):
    """Return the other class for two rows, and rows of which the tool says otherwise."""
    opened = Run.open(path)
    final, names = opened.correction.final_labels, opened.crawl.class_names
    kept = np.flatnonzero(final >= 0)[:2].tolist()
    return opened, kept, names[1 - final[kept[0]]]


def test_every_reader_honours_the_answers(world, tmp_path):
    before, (first, second), other = others(world / "run")
    answer(world / "run", {first: (other,), second: ()})
    after = Run.open(world / "run")
    images = after.crawl.table["image"].to_pylist()

    number = after.crawl.class_names.index(other)
    assert after.correction.final_labels[[first, second]].tolist() == [number, -1]
    assert sum(after.counts.values()) == 12
    unreadable = after.counts.pop("unreadable")
    assert after.correction.counts["keep"] == after.counts["keep"] + unreadable
    assert after.counts["reject"] == before.counts["reject"] + 1
    assert repr(after).endswith(f"unreadable {unreadable})")
    assert before.found.counts == after.found.counts

    after.export(tmp_path / "t.csv", to="csv", rejected=True)
    table = pyarrow.csv.read_csv(tmp_path / "t.csv").to_pylist()
    rows = {row["image"]: row for row in table}
    assert rows[images[first]]["final_label"] == other
    assert rows[images[first]]["confidence"] == 1
    assert rows[images[second]]["decision"] == "reject"
    assert rows[images[second]]["why"] == "a person decided"
    for to, form in FORMATS.items():
        exported = after.export(tmp_path / to / "out", to=to)
        n_left = after.counts["keep"] + after.counts["relabel"]
        assert exported.n_images == (12 if form.rejected == "always" else n_left), to
    after.export(tmp_path / "clean", to="imagefolder", mode="copy")
    assert (
        len(list((tmp_path / "clean").rglob(f"{other}/*")))
        == (after.correction.final_labels == number).sum()
    )

    decided = corrected_labels(after.correction, "decided").table.toarray()
    soft = corrected_labels(after.correction, "final")
    assert decided[first, number]
    assert not decided[second].any()
    assert soft.table[first][number] == pytest.approx(1)
    assert second not in soft.rows
    truth, known = after.read_truth()
    judged = [evaluate(r.correction, truth, known=known).to_dict() for r in (before, after)]
    assert judged[0] != judged[1]
    compared = compare(before.correction, after.correction, truth, known=known)
    assert compared.n_differ == 2
    assert "a person decided" in str(after.correction.explain(first))


def test_the_report_of_the_next_correction_has_the_answers_and_only_it_is_made_again(world):
    before, (first, second), other = others(world / "run")
    answer(world / "run", {first: (other,), second: ()})
    old, lines = before.found, []
    after = correct(None, world / "run", tell=lines.append)
    assert "pictures: done before" in lines
    assert "graph: done before" in lines
    assert "answers ..." in lines
    assert "report ..." in lines
    assert after.record["stages"]["answers"]["answered"] == 2
    changed = (old.final_labels != after.found.final_labels) | (
        old.decisions != after.found.decisions
    )
    changed[[first, second]] = False
    counts = count_decisions(after.found.decisions[changed])
    words = {"reject": "rejected", "relabel": "relabeled", "keep": "kept again"}
    listed = ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts[name])
    told = f"2 answers changed {changed.sum()} other labels"
    assert lines[-1] == (f"{told}: {listed}" if listed else told)
    pages = "".join(p.read_text() for p in after.page.parent.rglob("*.html"))
    assert "A person decided." in pages
    lines.clear()
    correct(None, world / "run", tell=lines.append)
    assert all(line.endswith("done before") for line in lines[1:]), lines
    assert after.arrays()["answers"].tolist().count(-2) == 10


def test_answers_outlive_other_settings_and_a_crawl_that_moved_grew_and_changed_its_order(
    world, tmp_path
):
    world = tmp_path / "other"
    correct(write_small_crawl(world / "crawl"), world / "run", with_report=False)
    before, (first, second), other = others(world / "run")
    answer(world / "run", {first: (other,), second: ()})
    names = before.crawl.table["image"].to_pylist()

    settled = correct(None, world / "run", settings={"n_neighbors": 2}, with_report=False)
    assert settled.correction.final_labels[second] == -1

    moved = world / "moved"
    (world / "crawl").rename(moved)
    rows = [json.loads(line) for line in (moved / "plain.jsonl").read_text().splitlines()]
    for row in rows[::2]:  # other names
        (moved / row["file_name"]).rename(moved / f"{row['file_name']}.renamed.png")
        row["file_name"] += ".renamed.png"
    copied = next(row for row in rows if row["file_name"].startswith(names[first]))
    shutil.copy(moved / copied["file_name"], moved / "copy.png")
    rows = [*rows[::-1], {**copied, "file_name": "copy.png"}]
    (moved / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    grown = correct(moved / "plain.jsonl", world / "run", with_report=False)
    final = dict(
        zip(grown.crawl.table["image"].to_pylist(), grown.correction.final_labels, strict=True)
    )
    found = {name.removesuffix(".renamed.png"): label for name, label in final.items()}
    number = grown.crawl.class_names.index(other)
    assert len(found) == 13
    assert found[names[first]] == found["copy.png"] == number
    assert found[names[second]] == -1
    assert (grown.correction.rules == Rule.ANSWERED).sum() == 3


def test_answers_of_an_audit_change_nothing(world):
    before, (first, second), other = others(world / "run")
    answer(world / "run", {first: (other,), second: ()}, purpose=AUDIT)
    after = Run.open(world / "run")
    assert after.answers.audit
    np.testing.assert_array_equal(after.correction.final_labels, before.correction.final_labels)
    lines = []
    correct(None, world / "run", tell=lines.append)
    assert all(line.endswith("done before") for line in lines[1:]), lines


def test_a_journal_of_another_crawl_is_told_with_the_number_of_unknown_pictures(world):
    _, (first, _), other = others(world / "run")
    answer(world / "run", {first: (other,)})
    strange = [Answer(f"{n:032x}", "x.jpg", (), ("dog",)) for n in range(1, 4)]
    Journal.open(world / "run" / "answers", "bob").add(strange)
    lines = []
    correct(None, world / "run", tell=lines.append, with_report=False)
    assert [line for line in lines if "answered" in line] == [
        "3 of 4 answered pictures are not in this crawl; their answers stay in the journal"
    ]


def test_a_run_of_own_arrays_knows_its_images_by_name(tmp_path):
    texts = np.tile(np.eye(2, dtype=np.float32), (4, 1))
    for name, array in (("x", texts), ("t", texts), ("l", np.eye(2)), ("y", np.tile([0, 1], 4))):
        np.save(tmp_path / f"{name}.npy", array)
    run(
        tmp_path / "y.npy", tmp_path / "run", settings={"n_neighbors": 2, "anchors_per_class": 2},
        choices={"features": tmp_path / "x.npy", "text_embeddings": tmp_path / "t.npy",
                 "label_embeddings": tmp_path / "l.npy"},
    )  # fmt: skip
    answer(tmp_path / "run", {3: ()})
    found = Run.open(tmp_path / "run")
    assert found.correction.final_labels.tolist() == [0, 1, 0, -1, 0, 1, 0, 1]
    assert next(iter(found.answers.given)).startswith("name:")
