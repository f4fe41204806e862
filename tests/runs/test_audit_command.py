"""``vsgraph audit``: asked at the terminal, resumed, or answered by a table."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from small_crawl import correct_small

from vsgraph.answers import Answer, Journal, read_answers
from vsgraph.cli import main
from vsgraph.result.parts import Decision
from vsgraph.runs import Run
from vsgraph.runs.audit import Audit


def audit(world, *more, told=""):
    words = ["audit", str(world / "run"), "--images", "5", "--reviewer", "ann", *more]
    done = CliRunner().invoke(main, words, input=told)
    assert done.exit_code == 0, done.output
    return done.output


def n_exported(world):
    return int((Run.open(world / "run").correction.decisions != Decision.REJECT).sum())


def test_an_audit_is_asked_stopped_and_resumed(world):
    n = n_exported(world)
    first = audit(world, told="y\nq\n")
    assert "1 of 5: " in first
    assert "100.0 % of the exported labels are right" in first
    assert f"1 check of {n} images; 4 unanswered" in first
    other = next(name for name in Run.open(world / "run").crawl.class_names)
    second = audit(world, told=f"x\nn\nzebra\n{other}\nn\n\ns\ny\n")
    assert "1 of 5" not in second
    assert "'zebra' is no class of this run" in second
    assert f"4 checks of {n} images; 1 unanswered" in second
    assert audit(world, told="").splitlines()[-1] == second.splitlines()[-1]  # nobody answers
    answers = read_answers(world / "run" / "answers")
    assert answers.given == {}
    assert sorted(a.new == () for a in answers.audit.values()) == [False, False, False, True]


def test_answers_say_what_an_image_shows_and_count_for_the_labels_of_now(world):
    run = Run.open(world / "run")
    before = Audit.open(run, 12)
    audit(world, "--images", "12", told="y\n" * 12)
    assert before.statement().n_right == before.statement().n_checks == n_exported(world)
    assert before.statement().low == 1  # all were checked
    correct_small(None, world / "run", settings={"purity": 0.99}, with_report=False)
    after = Audit.open(Run.open(world / "run"), 12)
    left = after.run.correction.decisions != Decision.REJECT
    assert 0 < left.sum() < 12
    assert after.statement().n_checks == after.statement().n_right == left.sum()
    assert after.missing() == []
    row = int(after.rows[0])
    other = next(name for name in run.crawl.class_names if name not in after.labels(row))
    Journal.open(world / "run" / "answers", "ann").add([Answer(after.keys[0], "", (), (other,))])
    changed = Audit.open(Run.open(world / "run"), 12)
    assert changed.statement().n_right == left.sum() - 1


def test_a_table_of_the_truth_answers(world, tmp_path):
    run = Run.open(world / "run")
    images = run.crawl.table["image"].to_pylist()
    names = run.crawl.class_names
    final = run.correction.final_labels
    shown = [names[label] if label >= 0 else "none" for label in final]
    exported = np.flatnonzero(final >= 0)
    shown[exported[0]], shown[exported[1]] = "none", ""
    rows = [json.dumps({"image": i, "truth": t}) for i, t in zip(images, shown, strict=True) if t]
    (tmp_path / "truth.jsonl").write_text("\n".join(rows) + "\n")
    told = audit(world, "--images", "12", "--truth", str(tmp_path / "truth.jsonl"))
    n = len(exported)
    assert f"{100 * (n - 2) / (n - 1):.1f} % of the exported labels are right" in told
    assert f"{n - 1} checks of {n} images; 1 unanswered" in told
    assert not (world / "run" / "answers").exists()


@pytest.mark.parametrize("words", [["--images", "0"], ["--seed", "-1"]])
def test_numbers_that_make_no_sense_are_refused(world, words):
    assert CliRunner().invoke(main, ["audit", str(world / "run"), *words]).exit_code == 2
