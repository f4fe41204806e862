"""``vsgraph decide``: tables, what other programs export, and other journals."""

import json

import pyarrow.csv
from click.testing import CliRunner

from vsgraph.answers import Answer, Journal, read_answers
from vsgraph.cli import main
from vsgraph.runs import Run


def decide(world, file, *more, reviewer="ann"):
    words = ["decide", str(world / "run"), str(file), "--reviewer", reviewer, *more]
    return CliRunner().invoke(main, words)


def labels(world):
    """Return the final label of each image by its name, None if it is rejected."""
    run = Run.open(world / "run")
    columns = run.correction.to_columns()
    return dict(zip(run.crawl.table["image"].to_pylist(), columns["final_label"], strict=True))


def write_table(path, rows, head="image,label"):
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_a_table_is_taken_once_and_can_be_taken_back(world, tmp_path):
    before = labels(world)
    one, two, three = list(before)[:3]
    other = next(name for name in Run.open(world / "run").crawl.class_names if name != before[one])
    absolute = (Run.open(world / "run").root / two).absolute()
    table = write_table(tmp_path / "t.csv", [f"{one},{other}", f"{absolute},", f"./{three},none"])
    done = decide(world, table)
    assert done.exit_code == 0, done.output
    assert "3 new answers: kept 0, relabeled 1, rejected 2" in done.output
    assert labels(world) == before | {one: other, two: None, three: None}
    assert read_answers(world / "run" / "answers").given.keys() == {
        Run.open(world / "run").outputs.picture_keys(Run.open(world / "run").crawl)[row]
        for row in range(3)
    }
    again = decide(world, table)
    assert "0 new answers, 3 were there before" in again.output
    assert "of bob" not in again.output
    assert "3 new answers" in decide(world, table, reviewer="bob").output
    batch = done.output.rsplit(maxsplit=1)[-1]
    assert decide(world, table, "--undo", batch).exit_code == 1
    words = ["decide", str(world / "run"), "--reviewer", "ann", "--undo", batch]
    assert "taken back" in CliRunner().invoke(main, words).output
    assert set(read_answers(world / "run" / "answers").n_by_reviewer) == {"bob"}


def test_nothing_is_written_if_a_row_is_not_understood(world, tmp_path):
    first = next(iter(labels(world)))
    for rows, told in (
        ([f"{first},", "nowhere.jpg,none"], "row 2: 'nowhere.jpg' is no image of this run; paths"),
        ([f"{first},", f"{first},dog"], "row 2: 'dog' is no class of this run"),
        ([f"{first},none", f"{first},{labels(world)[first]}"], "row 2: differs from"),
        ([f"{first},{'|'.join(Run.open(world / 'run').crawl.class_names)}"], "names 2 classes"),
    ):
        done = decide(world, write_table(tmp_path / "t.csv", rows))
        assert done.exit_code == 1
        assert told in done.output
        assert len(done.output.splitlines()) == 1
        assert not (world / "run" / "answers").exists()


def test_an_edited_table_of_ours_has_answers_where_it_was_changed(world, tmp_path):
    path = tmp_path / "t.csv"
    Run.open(world / "run").export(path, to="csv")
    rows = pyarrow.csv.read_csv(path).to_pylist()
    rows[0] |= {"decision": "reject", "final_label": None}
    rows[1] |= {"final_label": next(r["web_label"] for r in rows if r != rows[1])}
    changed = pyarrow.csv.read_csv(path).schema
    pyarrow.csv.write_csv(pyarrow.Table.from_pylist(rows, changed), path)
    n_changed = 1 + (rows[1]["final_label"] != labels(world)[rows[1]["image"]])
    done = decide(world, path)
    assert f"{n_changed} new answers" in done.output
    assert f"{12 - n_changed} rows say what the run says" in done.output
    assert labels(world)[rows[0]["image"]] is None
    assert f"{12 - n_changed} new answers" in decide(world, path, "--all").output


def test_tasks_of_label_studio_come_back(world, tmp_path):
    Run.open(world / "run").export(tmp_path / "studio", to="labelstudio")
    tasks = json.loads((tmp_path / "studio" / "tasks.json").read_text())
    for task in tasks[:2]:
        answer = {"type": "choices", "value": {"choices": ["_rejected"]}}
        task["annotations"] = [{"id": 1, "was_cancelled": False, "result": [answer]}]
    for task in tasks[2:]:
        task["annotations"] = []
    (tmp_path / "project.json").write_text(json.dumps(tasks))
    assert (
        "2 new answers: kept 0, relabeled 0, rejected 2"
        in decide(world, tmp_path / "project.json").output
    )
    assert labels(world)[tasks[0]["data"]["path"]] is None


def test_labels_of_fiftyone_come_back_by_path_or_by_content(world, tmp_path):
    run = Run.open(world / "run")
    run.export(tmp_path / "fifty", to="fiftyone", rejected=True)
    path = tmp_path / "fifty" / "labels.json"
    values = json.loads(path.read_text())
    places = json.loads((tmp_path / "fifty" / "data.json").read_text())
    first, second = list(values["labels"])[:2]
    values["labels"][first] = None
    number = values["labels"][second]["label"]
    values["labels"][second] = {"label": 1 - number}
    copy = tmp_path / "copy.png"  # a media folder of its own
    copy.write_bytes((run.root / places[second]).read_bytes())
    path.write_text(json.dumps(values))
    (tmp_path / "fifty" / "data.json").write_text(json.dumps(places | {second: str(copy)}))
    done = decide(world, tmp_path / "fifty")
    assert "2 new answers: kept" in done.output, done.output
    found = Run.open(world / "run").correction
    assert found.final_labels[[int(first), int(second)]].tolist() == [-1, 1 - number]


def test_the_journal_of_another_reviewer_is_taken(world, tmp_path):
    run = Run.open(world / "run")
    key = run.outputs.picture_keys(run.crawl)[0]
    journal = Journal.open(tmp_path / "other", "bob")
    journal.add([Answer(key, "x.jpg", (), ()), Answer("ff", "y.jpg", (), ("owl",))])
    journal.undo(journal.add([Answer(key, "x.jpg", (), ("owl",))]))
    with journal.path.open("a") as file:
        file.write('{"who": "bob", "wh')
    done = decide(world, journal.path)
    assert done.exit_code == 0, done.output
    assert "problem:" in done.output
    assert "cut off" in done.output
    assert "4 new answers" in done.output
    assert "1 of 2 answered pictures are not in this crawl" in done.output
    assert [p.name for p in (world / "run" / "answers").iterdir()] == ["bob.jsonl"]
    assert labels(world)[run.crawl.table["image"][0].as_py()] is None
    assert "0 new answers, 4 were there before" in decide(world, journal.path).output


def test_a_journal_is_taken_whole_or_not_at_all(world, tmp_path):
    lines = [
        {
            "who": who,
            "when": "2026-01-01",
            "picture": "ff",
            "image": image,
            "new": [],
            "batch": "b-1",
        }
        for who, image in (("bob", "x"), ("...", "y"), ("eve", "\ud800"))
    ]
    journal = tmp_path / "j.jsonl"
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = decide(world, journal)
    assert done.exit_code == 1
    assert done.output == "Error: '...' is no name of a reviewer; use letters or digits\n"
    assert not (world / "run" / "answers").exists()
    journal.write_text("".join(json.dumps(line) + "\n" for line in [lines[0], *lines[2:] * 30]))
    done = decide(world, journal)
    assert done.exit_code == 0, done.output
    assert done.output.count("not a line of a journal") == 5
    assert "problem: and 25 more lines" in done.output
    assert [path.name for path in (world / "run" / "answers").iterdir()] == ["bob.jsonl"]


def test_a_batch_that_is_not_there_is_not_taken_back(world, tmp_path):
    first = next(iter(labels(world)))
    batch = decide(world, write_table(tmp_path / "t.csv", [f"{first},none"])).output.split()[-1]
    for reviewer, name in (("ann", "b-0000"), ("bob", batch)):
        words = ["decide", str(world / "run"), "--reviewer", reviewer, "--undo", name]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 1
        assert done.output.startswith(f"Error: {reviewer} has no batch {name!r}")
    assert labels(world)[first] is None
    assert [path.name for path in (world / "run" / "answers").iterdir()] == ["ann.jsonl"]


def test_a_file_or_a_batch_is_needed(world):
    done = CliRunner().invoke(main, ["decide", str(world / "run")])
    assert done.exit_code == 1
    assert "give a file of decisions, or --undo" in done.output
