"""A run from a crawl on disk to corrected labels: resumed, redone in part, killed, judged."""

import dataclasses
import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from small_crawl import Tiny, write_small_crawl

import vsgraph
from made_pictures import put
from vsgraph.cli import main
from vsgraph.common.formatting import percent
from vsgraph.demo.made_up import make_crawl, picture_features, text_vectors, write_crawl
from vsgraph.errors import InputError
from vsgraph.meanings import words
from vsgraph.meanings.wordnet import WordNet
from vsgraph.runs import Choices, Run, preview, run, stages

FEW = vsgraph.Settings(n_neighbors=4, anchors_per_class=5)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """Return a small made-up crawl on disk with vectors of its own."""
    folder = tmp_path_factory.mktemp("crawl")
    made = make_crawl(per_class=15)
    table = write_crawl(made, folder)
    texts, meanings = text_vectors(made.titles, made.descriptions)
    np.save(folder / "features.npy", picture_features(made.pictures).astype(np.float32))
    order = np.argsort(made.class_names)  # a reader sorts the classes
    np.save(folder / "texts.npy", texts.astype(np.float32))
    np.save(folder / "labels.npy", meanings[order].astype(np.float32))
    return table


def own_vectors(table, **more):
    where = table.parent
    return Choices(
        features=where / "features.npy", text_embeddings=where / "texts.npy",
        label_embeddings=where / "labels.npy", meanings=where / "meanings.csv", **more,
    )  # fmt: skip


def told_by(*arguments, **options):
    lines = []
    made = run(*arguments, tell=lines.append, **options)
    told = [line for line in lines if not line.startswith(("expected:", "a table", *SCREENED))]
    return made, told


SCREENED = ("measures", "screening", "copies:", "pictures that may")  # see tests/screening


LABELS = ("graph", "anchors", "network", "scores", "decisions")


def test_a_run_keeps_every_stage_and_is_not_done_twice(crawl, tmp_path):
    made, first = told_by(crawl, tmp_path / "run", settings=FEW, choices=own_vectors(crawl))
    _, again = told_by(crawl, tmp_path / "run", settings=FEW, choices=own_vectors(crawl))

    assert first == [f"{s} ..." for s in ("crawl", "meanings", "probe", *LABELS, "report")]
    assert all(line.endswith("done before") for line in again)
    assert len(made.correction) == len(made.crawl) == 105
    assert made.page.exists()
    assert made.page.parent.name in made.top_page.read_text()
    record = json.loads((tmp_path / "run" / "run.json").read_text())["made"]
    assert record["versions"]["vsgraph"] == vsgraph.__version__
    assert record["asked"]["settings"]["n_neighbors"] == 4
    assert set(record["stages"]["decisions"]) >= {"key", "seconds", "finished", "counts"}


@pytest.mark.slow
def test_changed_settings_redo_only_what_depends_on_them(crawl, tmp_path):
    out = tmp_path / "run"
    run(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False)
    _, lines = told_by(None, out, settings={"m": 3}, with_report=False)
    _, more = told_by(None, out, settings={"n_neighbors": 5}, with_report=False)
    _, last = told_by(None, out, settings={"relabel_threshold": 0.6}, with_report=False)
    again = " again: its inputs changed ..."

    assert lines[0].startswith("changed since the last run: anchors_per_class (was 5, now 3); dep")
    assert lines[-5:] == ["graph: done before", *(f"{s}{again}" for s in LABELS[1:])]
    assert more[-5:] == [f"{stage}{again}" for stage in LABELS]
    assert last[-2:] == ["scores: done before", f"decisions{again}"]


def test_a_run_remembers_its_crawl_and_options(crawl, tmp_path):
    out = tmp_path / "run"
    first = run(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False)
    second = run(None, out, with_report=False)
    forgotten = run(
        None, out, settings={"m": 5}, choices=own_vectors(crawl, probe=False), forget=True,
        with_report=False,
    )  # fmt: skip

    assert second.settings == first.settings == FEW
    assert second.choices == first.choices
    assert forgotten.settings == vsgraph.Settings(anchors_per_class=5)
    assert not forgotten.choices.probe
    with pytest.raises(InputError, match="is a new run; give the crawl to correct"):
        run(None, tmp_path / "new")
    with pytest.raises(InputError, match="unknown choice 'probes'; did you mean probe"):
        run(None, out, choices={"probes": True})


def test_a_table_of_meanings_that_was_edited_in_the_run_counts(crawl, tmp_path, model_cache):
    out = tmp_path / "run"
    choices = Choices(features=crawl.parent / "features.npy", text_encoder="lsa",
                      meanings=crawl.parent / "meanings.csv")  # fmt: skip
    run(crawl, out, settings=FEW, choices=choices, with_report=False)
    table = out / "meanings.csv"
    table.write_text(table.read_text().replace("nocturnal flying mammal", "flying mouse"))
    _, lines = told_by(crawl, out, settings=FEW, choices=choices, with_report=False)

    assert "texts: done before" in lines
    assert "descriptions again: its inputs changed ..." in lines
    assert any("flying mouse" in meaning.description for meaning in Run.open(out).meanings)


def test_meanings_of_another_version_are_found_again_but_not_those_of_the_user(
    crawl, tmp_path, model_cache, monkeypatch
):
    out = tmp_path / "run"
    choices = Choices(features=crawl.parent / "features.npy", text_encoder="lsa")
    run(crawl, out, settings=FEW, choices=choices, with_report=False)
    monkeypatch.setattr(stages, "__version__", "1.0")
    _, lines = told_by(crawl, out, settings=FEW, choices=choices, with_report=False)
    assert "meanings again: its inputs changed ..." in lines

    table = out / "meanings.csv"
    edited = table.read_text().replace("nocturnal mouselike mammal", "flying mouse")
    table.write_text(edited)
    for version in ("1.0", "1.0", "2.0", "2.0"):
        monkeypatch.setattr(stages, "__version__", version)
        made = run(crawl, out, settings=FEW, choices=choices, with_report=False)
        assert any("flying mouse" in meaning.description for meaning in made.meanings), version
        assert table.read_text() == edited


def test_a_report_without_meanings_says_what_to_do(crawl, tmp_path):
    choices = dataclasses.replace(own_vectors(crawl), meanings=None)
    run(crawl, tmp_path / "run", settings=FEW, choices=choices)
    ran = CliRunner().invoke(main, ["report", str(tmp_path / "run")])
    assert ran.exit_code == 1
    assert "has label embeddings of your own and no meanings" in ran.output
    assert "--meanings TABLE" in ran.output


@pytest.fixture
def no_wordnet(monkeypatch):
    """A computer without WordNet's files."""

    def refuse(folder=None):
        raise InputError("WordNet 3.0 was not found. To get it: ...")

    monkeypatch.setattr(WordNet, "open", staticmethod(refuse))
    words._wordnet.cache_clear()
    words._clean_word.cache_clear()


def test_a_run_with_descriptions_of_the_user_needs_no_wordnet(crawl, tmp_path, no_wordnet):
    made = run(crawl, tmp_path / "run", settings=FEW, choices=own_vectors(crawl))

    pages = "".join(page.read_text() for page in made.page.parent.rglob("*.html"))
    assert "a nocturnal flying mammal" in pages
    assert "in WordNet" not in pages


def test_a_run_that_needs_wordnet_says_so_before_it_encodes(crawl, tmp_path, no_wordnet):
    ids = tmp_path / "ids.csv"
    ids.write_text("class,wnid\nbat,n02139199\n")
    for more in ([], ["--meanings", ids], ["--dry-run"]):
        command = ["correct", crawl, "-o", tmp_path / "run", *more]
        ran = CliRunner().invoke(main, list(map(str, command)))
        assert ran.exit_code == 1
        assert ran.output == "Error: WordNet 3.0 was not found. To get it: ...\n"
    assert not (tmp_path / "run" / "stages").exists()


def test_doubtful_meanings_are_told_at_the_start_and_can_be_asked_for(
    crawl, tmp_path, model_cache, monkeypatch
):
    renamed = crawl.parent / "signs.jsonl"
    renamed.write_text(crawl.read_text().replace('"query": "palm"', '"query": "stop sign"'))
    features = str(crawl.parent / "features.npy")
    words = ["correct", str(renamed), "--features", features, "--text-encoder", "lsa",
             "--set", "m=5", "--no-report", "-o"]  # fmt: skip
    told = CliRunner().invoke(main, [*words, str(tmp_path / "told")])
    monkeypatch.setattr("vsgraph.cli.correct.can_ask", lambda: True)
    asked = [*words, str(tmp_path / "asked"), "--ask"]
    answered = CliRunner().invoke(main, asked, input="lines and fingers\n" * 9)
    again = CliRunner().invoke(main, asked)
    redone = CliRunner().invoke(main, [*asked, "--redo-from", "meanings"])

    assert told.exit_code == answered.exit_code == again.exit_code == 0, answered.output
    lines = told.output.splitlines()
    doubt = "  stop sign (only its end is in WordNet) is taken as: stop sign, a kind of"
    where = next(i for i, line in enumerate(lines) if line.startswith(doubt))
    assert where < lines.index("texts ...")
    assert f"move its 'yes' in {tmp_path / 'told' / 'meanings.csv'}" in told.output
    assert "--meanings" in told.output
    assert "lines and fingers" in [m.description for m in Run.open(tmp_path / "asked").meanings]
    assert "your own are used, so nothing is asked" in again.output
    assert "meanings: done before" in again.output
    assert "remove meanings.csv of the run" in redone.output


def test_a_stage_can_be_done_again(crawl, tmp_path):
    out = tmp_path / "run"
    run(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False)
    _, lines = told_by(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False,
                       redo_from="graph")  # fmt: skip

    again = " again: its inputs changed ..."
    assert lines[-6:] == ["probe: done before", *(f"{stage}{again}" for stage in LABELS)]
    with pytest.raises(InputError, match="redo_from must be one of crawl"):
        run(crawl, out, redo_from="dinner")


def test_a_run_equals_the_plain_correction(crawl, tmp_path):
    choices = own_vectors(crawl, probe=False)
    made = run(crawl, tmp_path / "run", settings=FEW, choices=choices, with_report=False)
    arrays = made.arrays()
    plain = vsgraph.correct(**arrays, class_names=made.crawl.class_names, settings=FEW)

    assert arrays["cnn_probs"] is None
    np.testing.assert_array_equal(made.correction.final_labels, plain.final_labels)
    np.testing.assert_array_equal(made.correction.final_probs.values, plain.final_probs.values)
    assert made.correction.graph_recall == 1.0


def test_what_does_not_fit_is_refused_in_one_line(crawl, tmp_path):
    np.save(tmp_path / "few.npy", np.ones((3, 2), np.float32))
    with pytest.raises(InputError, match=r"few\.npy has 3 rows, but 105 are needed"):
        run(crawl, tmp_path / "a", choices=Choices(features=tmp_path / "few.npy"))
    texts_only = Choices(features=crawl.parent / "features.npy",
                         text_embeddings=crawl.parent / "texts.npy")  # fmt: skip
    with pytest.raises(InputError, match="give label_embeddings of the same encoder"):
        run(crawl, tmp_path / "b", choices=texts_only)
    put(tmp_path / "other" / "notes.txt", "mine")
    with pytest.raises(InputError, match="is not a run of vsgraph"):
        run(crawl, tmp_path / "other")
    with pytest.raises(InputError, match="is not a run of vsgraph"):
        Run.open(tmp_path / "nowhere")
    put(tmp_path / "begun" / "run.json", '{"format": "vsgraph-run-2", "asked": {}, "made": null}')
    with pytest.raises(InputError, match="has no corrected labels yet"):
        Run.open(tmp_path / "begun")
    put(tmp_path / "c" / "run.json", '{"format": "x"}')
    with pytest.raises(InputError, match="is not in the format vsgraph-run-2"):
        Run.open(tmp_path / "c")
    put(tmp_path / "g.npz", b"no")
    bad_graph = own_vectors(crawl, graph=tmp_path / "g.npz")
    with pytest.raises(InputError, match="is not a sparse matrix"):
        run(crawl, tmp_path / "d", choices=bad_graph)


def test_a_run_of_0_2_is_refused_in_one_line_that_says_what_to_do(crawl, tmp_path):
    old = tmp_path / "old"
    put(old / "run.json", '{"format": "vsgraph-run-1", "stages": {}}')
    advice = r"was made by vsgraph 0\.2.*correct the crawl again into a new folder"
    for call in (lambda: Run.open(old), lambda: run(crawl, old)):
        with pytest.raises(InputError, match=advice) as caught:
            call()
        assert "\n" not in str(caught.value)
    told = CliRunner().invoke(main, ["report", str(old)])
    assert told.exit_code == 1
    assert f"--features {old / 'pictures' / 'vectors.npy'}" in told.output
    assert told.output.count("\n") == 1


def test_nothing_of_the_users_is_replaced_or_lost_silently(crawl, tmp_path):
    out = tmp_path / "run"
    run(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False)
    table = out / "meanings.csv"
    table.write_text(table.read_text().replace("nocturnal flying mammal", "flying mouse"))
    _, lines = told_by(crawl, out, settings=FEW, choices=own_vectors(crawl), with_report=False,
                       redo_from="meanings")  # fmt: skip
    assert "flying mouse" in (out / "meanings-before.csv").read_text()
    assert "meanings: your former table is kept as meanings-before.csv" in lines
    other = put(tmp_path / "other.csv", "path,label,title\na.jpg,bat,a bat\n")
    with pytest.raises(InputError, match=r"is a run of .*; choose another folder, or replace it"):
        run(other, out)
    silent = put(tmp_path / "silent.csv", "path,label\na.jpg,bat\n")
    with pytest.raises(InputError, match="has no text for any image"):
        run(silent, tmp_path / "silent", settings={"text_evidence": False})


def test_a_crawl_that_is_gone_is_said_so(tmp_path):
    table = write_crawl(make_crawl(per_class=3), tmp_path / "crawl")
    made = make_crawl(per_class=3)
    texts, meanings = text_vectors(made.titles, made.descriptions)
    order = np.argsort(made.class_names)
    for name, array in (
        ("f", picture_features(made.pictures)),
        ("t", texts),
        ("l", meanings[order]),
    ):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    choices = Choices(features=tmp_path / "f.npy", text_embeddings=tmp_path / "t.npy",
                      label_embeddings=tmp_path / "l.npy", probe=False)  # fmt: skip
    few = vsgraph.Settings(n_neighbors=2, anchors_per_class=1)
    run(table, tmp_path / "run", settings=few, choices=choices, with_report=False)
    table.parent.rename(tmp_path / "moved")
    for command in (["report"], ["export", "--to", "imagefolder", "-o", str(tmp_path / "out")]):
        done = CliRunner().invoke(main, [command[0], str(tmp_path / "run"), *command[1:]])
        assert done.exit_code == 1
        assert "is gone; put it back" in done.output


def test_a_folder_in_use_is_refused(crawl, tmp_path):
    from vsgraph.runs.folder import RunFolder

    out = tmp_path / "run"
    with (
        RunFolder.open(out, create=True).locked(),
        pytest.raises(InputError, match="is in use by another process"),
    ):
        run(crawl, out, settings=FEW, choices=own_vectors(crawl))


# the command line


def vectors(table):
    where = table.parent
    return ["--features", f"{where / 'features.npy'}", "--text-embeddings",
            f"{where / 'texts.npy'}", "--label-embeddings", f"{where / 'labels.npy'}",
            "--meanings", f"{where / 'meanings.csv'}"]  # fmt: skip


SETTINGS = ["--set", "n_neighbors=4", "--set", "anchors_per_class=5"]


@pytest.fixture(scope="module")
def finished(crawl, tmp_path_factory):
    """Return the folder of a run made by the command."""
    out = tmp_path_factory.mktemp("runs") / "run"
    arguments = ["correct", str(crawl), "-o", str(out), *SETTINGS, *vectors(crawl)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "105 images, 7 classes" in done.output
    assert "expected: about" in done.output
    assert f"report: {out / 'report.html'}" in done.output
    return out


@pytest.mark.slow
def test_the_labels_are_judged_compared_and_swept(finished, crawl, tmp_path):
    judged = CliRunner().invoke(main, ["evaluate", str(finished), "-o", str(tmp_path / "e.md")])
    asked = CliRunner().invoke(main, ["evaluate", str(finished), "--json"])
    alike = CliRunner().invoke(main, ["compare", str(finished), str(finished)])
    grid = ["--grid", "k=3,4", "--grid", "m=2,5", "-o", str(tmp_path / "sweep")]
    swept = CliRunner().invoke(main, ["sweep", str(finished), *grid])
    rounds = CliRunner().invoke(
        main, ["progressive", str(finished), "--rounds", "2", "-o", str(tmp_path / "p")]
    )
    bogus = CliRunner().invoke(
        main, ["sweep", str(finished), "--grid", "k=3", "--measure", "bogus"]
    )
    wrong = CliRunner().invoke(main, ["sweep", str(finished), "--grid", "k"])
    twice = CliRunner().invoke(main, ["sweep", str(finished), "--grid", "k=3", "--grid", "k=4"])
    taken = CliRunner().invoke(main, ["evaluate", str(finished), "-o", str(tmp_path / "e.md")])

    for result in (judged, asked, alike, swept, rounds):
        assert result.exit_code == 0, result.output
    accuracy = json.loads(asked.output)["accuracy"]["all"]
    assert accuracy["after"] > accuracy["before"]
    page = (tmp_path / "e.md").read_text()
    left = percent(json.loads(asked.output)["accuracy"]["not rejected"]["after"])
    assert judged.output.startswith(f"{left} of the labels left are right, ")
    assert page.splitlines()[1].startswith("- 105 images judged of 105")
    assert "\n## Largest confusions\n" in page
    assert "0 of 105 images have other labels" in alike.output
    assert swept.output.count("\n") >= 6
    assert {p.name for p in (tmp_path / "sweep").iterdir()} == {
        "sweep.csv",
        "sweep.md",
        "sweep.json",
        "sweep.svg",
    }
    assert "rounds" in rounds.output
    assert {p.name for p in (tmp_path / "p").iterdir()} == {
        f"progressive.{ending}" for ending in ("csv", "md", "json", "svg")
    }
    assert (
        "measure must be one of keep, relabel, reject, left, confidence, estimated, seconds, right,"
        in bogus.output
    )
    assert "| n_neighbors |" not in bogus.output
    assert "--grid needs NAME=A,B" in wrong.output
    assert "names a setting twice" in twice.output
    assert "e.md exists already" in taken.output


def test_the_truth_may_come_from_a_table(finished, crawl, tmp_path):
    rows = [json.loads(line) for line in crawl.read_text().splitlines()][:40]
    lines = ["path,truth", *(f"{row['file_name']},{row['truth']}" for row in rows)]
    table = put(tmp_path / "truth.csv", "\n".join(lines))
    judged = CliRunner().invoke(main, ["evaluate", str(finished), "--truth", str(table), "--json"])
    lines[1] = f"{rows[0]['file_name']},"
    lines[2:4] = [f"{row['file_name']},bta" for row in rows[1:3]]
    partly = put(tmp_path / "partly.csv", "\n".join(lines))
    typos = CliRunner().invoke(main, ["evaluate", str(finished), "--truth", str(partly)])
    other = put(tmp_path / "other.csv", "path,truth\nelsewhere.jpg,bat\n")
    wrong = CliRunner().invoke(main, ["evaluate", str(finished), "--truth", str(other)])

    assert json.loads(judged.output)["n_judged"] == 40
    assert "39 images judged of 105" in typos.output
    assert "a name that is no class: 'bta' (2 images; is 'bat' meant?)" in typos.output
    assert "lists no image of the crawl" in wrong.output


def test_a_run_is_exported_and_its_report_written_anew(finished, tmp_path):
    done = CliRunner().invoke(
        main, ["export", str(finished), "--to", "imagefolder", "-o", str(tmp_path / "clean")]
    )
    page = CliRunner().invoke(main, ["report", str(finished)])

    assert done.exit_code == page.exit_code == 0, done.output + page.output
    assert "images as imagefolder" in done.output
    assert "report.html" in page.output
    assert Run.open(finished).page.exists()


def test_an_export_can_be_narrowed_and_split(finished, tmp_path):
    def export(name, *options):
        to = ["export", str(finished), "--to", "imagefolder", "-o", str(tmp_path / name)]
        return CliRunner().invoke(main, [*to, *options])

    done = export("a", "--split", "0.8,0.1,0.1", "--top", "5", "--min-confidence", "0.5")
    wrong, other = export("b", "--split", "train"), export("c", "--split", "0.5,0.1")

    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "train").is_dir()
    assert "split: train " in done.output
    assert "needs shares, as in 0.9 or 0.8,0.1,0.1, got 'train'" in wrong.output
    assert "split must be the share of train" in other.output


def test_purity_is_asked_for_by_an_option_and_the_estimate_is_told(crawl, tmp_path):
    arguments = ["correct", str(crawl), *vectors(crawl), "--no-report", *SETTINGS, "--no-probe"]
    loose = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "a"), "--purity", "0.6"])
    strict = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "b"), "--purity", "0.97"])

    assert loose.exit_code == strict.exit_code == 0, loose.output + strict.output
    assert "of the labels left are right (web labels: " in strict.output
    rejected = [Run.open(tmp_path / name).counts["reject"] for name in "ab"]
    assert rejected[0] < rejected[1]


def test_a_dry_run_and_a_quiet_one(crawl, tmp_path):
    arguments = ["correct", str(crawl), *SETTINGS, *vectors(crawl), "--no-report", "--no-probe"]
    dry = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "dry"), "--dry-run"])
    quiet = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "quiet"), "-q"])

    assert dry.exit_code == quiet.exit_code == 0, dry.output + quiet.output
    assert not (tmp_path / "dry").exists()
    assert quiet.output == ""


def test_a_dry_run_says_what_is_done_and_what_would_be_done_again(finished, crawl, tmp_path):
    arguments = ["correct", str(crawl), "-o", str(finished), *vectors(crawl), "--dry-run"]
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    same = CliRunner().invoke(main, [*arguments, *SETTINGS])
    again = CliRunner().invoke(main, [*arguments, "--redo-from", "decisions"])
    other = CliRunner().invoke(main, [*arguments, "--set", "k=5"])

    assert same.output.count("done before") == 11
    assert "would be" not in same.output
    assert "scores: done before\ndecisions: would be done again" in again.output
    assert "n_neighbors (was 4, now 5)" in other.output
    assert "meanings: done before" in other.output
    for stage in ("graph", "decisions", "report"):
        assert f"{stage}: would be done again: its inputs changed" in other.output
    assert before == {path: path.stat().st_mtime_ns for path in finished.rglob("*")}


def test_a_dry_run_without_the_meanings_that_were_given(crawl, tmp_path):
    out = tmp_path / "run"
    lines = []
    choices = Choices(features=crawl.parent / "features.npy", text_encoder="lsa",
                      meanings=crawl.parent / "meanings.csv")  # fmt: skip
    run(crawl, out, settings=FEW, choices=choices, with_report=False)
    other = dataclasses.replace(choices, meanings=None, probe=False)
    preview(crawl, out, settings=FEW, choices=other, with_report=False, tell=lines.append)

    assert f"meanings (was {crawl.parent / 'meanings.csv'}, now not given), probe (was" in lines[0]
    assert [line for line in lines[3:] if not line.startswith(SCREENED)] == [
        "crawl: done before",
        "texts: done before",
        "meanings: would be done again: its inputs changed",
        "descriptions: would be done again: its inputs changed",
        "words: would be done again: its inputs changed",
        "graph: done before",
        *(f"{stage}: would be done again: its inputs changed" for stage in LABELS[1:]),
    ]


# killed


def start(crawl, out):
    command = [sys.executable, "-m", "vsgraph", "correct", str(crawl), "-o", str(out), *SETTINGS,
               "--meanings", str(crawl.parent / "meanings.csv"), "--no-report"]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_a_run_killed_at_every_stage_ends_as_one_that_was_not(crawl, tmp_path, model_cache):
    whole = start(crawl, tmp_path / "whole")
    told = whole.communicate()[0]
    assert whole.returncode == 0, told
    dice = random.Random(0)
    for n_stages in range(1, 13):
        process = start(crawl, tmp_path / "killed")
        begun = (line for line in process.stdout if line.rstrip().endswith(("...", "before")))
        for _ in range(n_stages):
            next(begun, None)
        time.sleep(dice.uniform(0, 0.2))
        process.kill()
        process.communicate()
    last = start(crawl, tmp_path / "killed")
    told = last.communicate()[0]

    assert last.returncode == 0, told
    assert "done before" in told
    one, two = Run.open(tmp_path / "whole").correction, Run.open(tmp_path / "killed").correction
    np.testing.assert_array_equal(one.final_labels, two.final_labels)
    np.testing.assert_array_equal(one.final_probs.values, two.final_probs.values)
    left = [p.name for p in (tmp_path / "killed").iterdir() if p.name.startswith(".")]
    assert left == [".lock"]


# hostile


@pytest.mark.slow
def test_a_crawl_with_hostile_files_is_corrected_all_the_same(tmp_path, model_cache):
    table = write_crawl(make_crawl(per_class=15), tmp_path / "crawl")
    root = table.parent
    put(tmp_path / "secret.jpg")
    Image.new("1", (30_000, 30_000)).save(root / "bomb.png")
    put(root / "page.jpg", "<html>not found</html>")
    put(root / "cut.jpg", (root / "images" / "0000.jpg").read_bytes()[:700])
    put(root / "empty.jpg", b"")
    (root / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    names = ["bomb.png", "page.jpg", "cut.jpg", "empty.jpg", "out.jpg", "gone.jpg", "../secret.jpg"]
    title = "<script>alert(1)</script><img src=x onerror=alert(2)> bat & cave"
    rows = [{"file_name": name, "query": "bat", "title": title} for name in names]
    with table.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.write('{"broken\n')

    made = run(root, tmp_path / "run", settings=FEW, choices=Choices(text_encoder="lsa"))

    assert len(made.correction) == 105 + 6
    assert made.record["stages"]["crawl"]["problems"] == {
        "broken line": 1,
        "image path leads out of the folder": 1,
    }
    told = made.record["stages"]["pictures"]["problems"]
    assert told == {"not a picture": 1, "picture broken": 1, "picture missing or empty": 3,
                    "picture too large": 1}  # fmt: skip
    assert made.crawl.problems.counts.total() == 2 + 6
    assert not np.asarray(made.features[105:]).any()
    assert made.counts["unreadable"] == 6 - (made.correction.decisions[105:] != 0).sum()
    assert sum(made.counts.values()) == 111
    assert made.crawl.texts(slice(105, 106)) == ["bat & cave"]
    pages = "".join(page.read_text() for page in made.page.parent.rglob("*.html"))
    assert "onerror" not in pages
    assert "picture too large" in made.page.read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unchecked meaning")
def test_a_crawl_without_text_is_judged_by_its_pictures(crawl, tmp_path):
    rows = [json.loads(line) for line in crawl.read_text().splitlines()]
    lines = [json.dumps({"file_name": r["file_name"], "query": r["query"]}) for r in rows]
    silent = put(crawl.with_name("silent.jsonl"), "\n".join(lines))
    told = CliRunner().invoke(
        main, ["correct", str(silent), "-o", str(tmp_path / "run"), "--set", "anchors_per_class=4"]
    )
    assert told.exit_code == 0, told.output
    assert "unchecked meaning: without text, the majority of each class is believed" in told.output
    finished = Run.open(tmp_path / "run")
    assert not finished.correction.is_checked
    assert "Unchecked meaning." in finished.page.read_text()


def test_broken_pictures_are_told_and_the_estimate_counts_what_is_left(tmp_path, monkeypatch):
    table = write_small_crawl(tmp_path / "crawl")
    first = json.loads(table.read_text().splitlines()[0])["file_name"]
    (table.parent / first).write_text("<html>404</html>")
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())
    choices = Choices(text_encoder="lsa", meanings=table.parent / "meanings.csv", probe=False)
    options = {"settings": FEW, "choices": choices}
    lines = []
    run(table, tmp_path / "run", **options, with_report=False, tell=lines.append)
    assert f"problem: 1 x not a picture: {first}" in "\n".join(lines)
    assert "such images are judged by their text alone; exports of pictures leave them out" in lines
    expected = next(line for line in lines if line.startswith("expected:"))
    assert "pictures " in expected
    assert "report" not in expected
    rest = []
    preview(table, tmp_path / "run", **options, tell=rest.append)
    assert next(line for line in rest if line.startswith("expected:")).count(" s") <= 4
    assert "(reading" in "".join(rest)
    assert "report " in "".join(rest)
    assert "pictures " not in next(line for line in rest if line.startswith("expected:"))


def test_a_crawl_that_grew_is_encoded_and_compared_only_where_it_must(tmp_path, monkeypatch):
    table, seen = write_small_crawl(tmp_path / "crawl"), []

    class Counting(Tiny):
        def encode(self, pixels):
            seen.append(len(pixels))
            return super().encode(pixels)

    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Counting())
    choices = Choices(text_encoder="lsa", meanings=table.parent / "meanings.csv", probe=False)
    options = {"settings": FEW, "choices": choices, "with_report": False}
    first = run(table, tmp_path / "first", **options)
    encoded = sum(seen)
    rows = table.read_text().splitlines()
    for name, color in (("new1.png", "red"), ("new2.png", "blue")):
        Image.new("RGB", (9, 9), color).save(table.parent / name)
        rows.insert(1, json.dumps({"file_name": name, "query": "bat", "title": "a bat"}))
    table.write_text("\n".join(rows))
    lines = []
    preview(table, tmp_path / "first", **options, tell=lines.append)
    second = run(table, tmp_path / "second", **options)

    assert "pictures: would be done again: 12 images known, 2 new" in lines
    assert sum(seen) == encoded + 2
    assert (second.features[3:] == first.features[1:]).all()
    told = CliRunner().invoke(main, ["compare", str(first.path), str(second.path)])
    assert told.output.startswith(
        "12 images are in both; 2 only in the second, 0 only in the first"
    )
