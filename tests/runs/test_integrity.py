"""A run cannot lie: what was interrupted, moved, made read-only or used twice."""

import contextlib
import dataclasses
import json
import os
import shutil
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner
from faults import EVERY, Fault, call
from scipy.sparse import csr_array, save_npz
from small_crawl import Tiny, change_crawl, grow_crawl, write_small_crawl

import vsgraph
from made_pictures import put
from vsgraph.cli import main
from vsgraph.common import files
from vsgraph.common.files import mend_leftovers, new_array, replaced_folder, whole_file
from vsgraph.crawls import read_crawl
from vsgraph.encoders.protocol import Encoded
from vsgraph.encoders.sources.architectures import Architecture
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.encoders.store import VectorStore
from vsgraph.errors import FileError, InputError
from vsgraph.runs import Choices, Run, run
from vsgraph.runs.folder import RunFolder
from vsgraph.training.recipe import network_to_finetune
from vsgraph.training.validation_set import read_validation

FEW = vsgraph.Settings(n_neighbors=3, anchors_per_class=2)
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())


@pytest.fixture
def table(tmp_path):
    """Return the table of a crawl that the test may change."""
    return write_small_crawl(tmp_path / "crawl")


def correct(table, out, **options):
    choices = Choices(text_encoder="lsa", meanings=table.parent / "meanings.csv")
    given = {"settings": FEW, "choices": choices, "with_report": False}
    return run(table, out, **(given | options))


def command(*arguments):
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    return done.exit_code, done.output


class Interrupted(Exception):
    """Stands for a kill, where the place of it matters."""


def interrupt(*_, **__):
    raise Interrupted


def half_removed(folder):
    next(folder.rglob("*.npy")).unlink()
    raise Interrupted


# interrupted


def test_an_export_after_an_interrupted_run_on_a_changed_crawl_is_of_the_old_one(
    table, tmp_path, monkeypatch
):
    out = tmp_path / "run"
    correct(table, out)
    first = command("export", out, "--to", "csv", "-o", tmp_path / "first.csv")
    change_crawl(table.parent)
    monkeypatch.setattr("vsgraph.runs.content_stages.embed_images", interrupt)
    with pytest.raises(Interrupted):
        correct(table, out)
    second = command("export", out, "--to", "csv", "-o", tmp_path / "second.csv")

    assert first[0] == second[0] == 0
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()


def test_a_run_interrupted_in_its_report_has_no_report_and_then_gets_it(
    table, tmp_path, monkeypatch
):
    out = tmp_path / "run"
    old = correct(table, out, with_report=True)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_report", interrupt)
        with pytest.raises(Interrupted):
            correct(table, out, settings={"m": 1}, with_report=True)
    new = Run.open(out)

    assert new.settings.anchors_per_class == 1
    assert not (out / "report.html").exists()
    with pytest.raises(InputError, match="has no stage 'report' yet"):
        _ = new.page
    lines = []
    done = run(None, out, tell=lines.append)
    assert "decisions: done before" in lines
    assert done.page.exists()
    assert done.page.parent.name in (out / "report.html").read_text()
    assert done.page != old.page


def test_settings_of_an_interrupted_run_are_finished_not_handed_out(table, tmp_path, monkeypatch):
    out = tmp_path / "run"
    old = correct(table, out).correction.anchors.rows.tolist()
    with monkeypatch.context() as patch:
        patch.setattr("vsgraph.runs.start._finish", interrupt)
        with pytest.raises(Interrupted):
            correct(table, out, settings={"m": 1})
    assert Run.open(out).correction.anchors.rows.tolist() == old
    finished = run(None, out, with_report=False)
    assert finished.settings.anchors_per_class == 1
    assert len(finished.correction.anchors) == 2


def test_a_start_killed_while_it_wrote_its_first_record_can_be_repeated(table, tmp_path):
    out = tmp_path / "run"
    put(out / ".lock", "")
    put(out / ".vsgraph-run.json-a1b2c3d4", '{"format": "vsgr')
    made = correct(table, out)
    assert len(made.correction) == 12
    assert sorted(p.name for p in out.iterdir() if p.name.startswith(".")) == [".lock"]


def test_a_sweep_that_was_interrupted_leaves_no_half_of_a_stage(table, tmp_path, monkeypatch):
    out = tmp_path / "run"
    first = correct(table, out).correction
    run(None, out, settings={"k": 2}, with_report=False)
    with monkeypatch.context() as patch:
        patch.setattr("vsgraph.common.files.shutil.rmtree", half_removed)
        with pytest.raises(Interrupted):
            run(None, out, settings={"k": 4}, with_report=False)
    again = run(None, out, settings=FEW, with_report=False).correction
    np.testing.assert_array_equal(first.final_labels, again.final_labels)
    assert first.adjacency.nnz == again.adjacency.nnz


# only what the tool made is removed


def test_hidden_files_of_the_user_survive(table, tmp_path):
    out = tmp_path / "run"
    correct(table, out)
    mine = [put(out / name, "mine") for name in
            (".git/config", ".notes", ".vsgraph-notes", "stages/.notes", "stages/mine/a.txt",
             "stages/graph-old/a.txt", "notes.txt")]  # fmt: skip
    run(None, out, settings={"k": 2}, with_report=False)
    run(None, out, settings={"k": 3}, with_report=False)
    assert all(path.read_text() == "mine" for path in mine)


def killed_between_renames(folder):
    """Leave what a process leaves that was killed while it replaced a folder."""
    scratch = folder.with_name(f".vsgraph-{folder.name}-a1b2c3d4")
    (scratch / "new").mkdir(parents=True)
    folder.rename(scratch / "old")
    return scratch


def test_an_export_killed_between_its_renames_is_put_back(table, tmp_path):
    made = correct(table, tmp_path / "run")
    out = tmp_path / "exports" / "clean"
    made.export(out, to="imglist")
    scratch = killed_between_renames(out)
    mine = put(out.parent / ".notes", "mine")
    half = put(out.parent / ".vsgraph-other.csv-a1b2c3d4", "half")
    code, told = command("export", made.path, "--to", "imglist", "-o", out)

    assert code == 1
    assert "exists already" in told
    assert (out / "imglist.txt").exists()
    assert mine.exists()
    assert not scratch.exists()
    assert not half.exists()


def test_an_export_that_cannot_be_renamed_leaves_the_old_one(table, tmp_path, monkeypatch):
    made = correct(table, tmp_path / "run")
    out = tmp_path / "clean"
    made.export(out, to="imglist")
    before = (out / "imglist.txt").read_bytes()
    rename = type(out).rename

    def refuse(path, target):
        if path.name == "new":
            raise OSError(5, "Input/output error", str(path))
        return rename(path, target)

    monkeypatch.setattr(type(out), "rename", refuse)
    with pytest.raises(FileError, match=r"clean: Input/output error; check the disk"):
        made.export(out, to="imglist", overwrite=True)
    assert (out / "imglist.txt").read_bytes() == before
    assert not list(tmp_path.glob(".vsgraph-*"))


def test_what_a_killed_evaluation_left_is_removed_by_the_next(table, tmp_path):
    made = correct(table, tmp_path / "run")
    half = put(tmp_path / "out" / ".vsgraph-judged.md-a1b2c3d4", "half")
    code, told = command("evaluate", made.path, "-o", half.with_name("judged.md"))
    assert code == 0, told
    assert [path.name for path in half.parent.iterdir()] == ["judged.md"]


def test_links_and_pipes_that_are_called_like_leftovers_are_left_alone(tmp_path):
    mine = put(tmp_path / "mine" / "a.txt", "mine")
    link, pipe = tmp_path / ".vsgraph-link-a1b2c3d4", tmp_path / ".vsgraph-pipe-a1b2c3d4"
    link.symlink_to(mine.parent)
    os.mkfifo(pipe)
    mend_leftovers(tmp_path)
    assert mine.exists()
    assert link.is_symlink()
    assert pipe.exists()


def test_what_a_living_process_writes_is_not_removed(tmp_path):
    with replaced_folder(tmp_path / "folder") as fresh, whole_file(tmp_path / "file") as unfinished:
        mend_leftovers(tmp_path)
        put(fresh / "a", "whole")
        unfinished.write_text("whole")
    assert (tmp_path / "folder" / "a").read_text() == (tmp_path / "file").read_text() == "whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


# read-only, full, elsewhere


@forks
def test_a_run_that_is_read_only_can_be_read_and_says_that_it_cannot_be_written(table, tmp_path):
    out = tmp_path / "run"
    correct(table, out)
    fault = Fault("EROFS", EVERY)

    def on_it(*arguments):
        ended = call(lambda: main(list(map(str, arguments))), out, fault)
        return ended.code, ended.told

    for name, *more in (("correct", "-o"), ("report",), ("correct", table, "-o")):
        code, told = on_it(name, *more, out)
        assert code == 3, told
        assert told == (
            f"Error: {out / '.lock'}: Read-only file system; allow writing there, or choose "
            "another folder\n"
        )
    for name, *more in (
        ("export", out, "--to", "hf", "-o", tmp_path / "clean"),
        ("evaluate", out),
        ("compare", out, out),
        ("sweep", out, "--grid", "k=3"),
        ("correct", "--dry-run", "-o", out),
    ):
        code, told = on_it(name, *more)
        assert code == 0, told


@forks
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EDQUOT", "EACCES"])
def test_a_disk_that_fails_is_told_in_one_line(table, tmp_path, kind):
    out = tmp_path / "run"
    arguments = ["correct", str(table), "-o", str(out), "--text-encoder", "lsa", "-q"]
    code, told, _ = call(lambda: main(arguments), out, Fault(kind, 40))
    assert code == 3
    assert told.startswith(f"Error: {out}")
    assert told.count("\n") == 1


def test_the_library_raises_errors_of_its_own(table, tmp_path):
    put(tmp_path / "file", "a file")
    with pytest.raises(FileError, match="Not a directory; choose another name"):
        correct(table, tmp_path / "file" / "run")
    made = correct(table, tmp_path / "run")
    with pytest.raises(FileError, match="File name too long; choose a shorter name"):
        made.export(tmp_path / ("x" * 5000), to="imglist")
    assert command("export", made.path, "--to", "csv", "-o", tmp_path / ("x" * 5000))[0] == 3
    with pytest.raises(OSError, match="file: File exists; choose another name"):
        made.correction.save(tmp_path / "file" / "correction")


@pytest.mark.parametrize("many", [0, 1000])
def test_stages_are_on_the_disk_before_the_record_points_to_them(
    table, tmp_path, monkeypatch, many
):
    out, synced, seen = tmp_path / "run", set(), set()
    fsync, save = os.fsync, RunFolder.save

    def save_if_synced(folder):
        for name, stage in folder.stages.items():
            for path in folder.stage_folder(name, stage["key"]).rglob("*"):
                assert path.stat().st_ino in synced, path
                seen.add(name)
        save(folder)

    monkeypatch.setattr(files, "MANY_FILES", many)
    monkeypatch.setattr(os, "fsync", lambda h: (synced.add(os.fstat(h).st_ino), fsync(h)))
    monkeypatch.setattr(os, "sync", lambda: synced.update(p.stat().st_ino for p in out.rglob("*")))
    monkeypatch.setattr(RunFolder, "save", save_if_synced)
    correct(table, out, with_report=True)
    assert {"crawl", "pictures", "texts", "graph", "scores", "decisions", "report"} <= seen


def test_room_for_a_mapped_array_is_taken_at_once(tmp_path, monkeypatch):
    def fill_up(*_):
        raise OSError(28, "No space left on device")

    assert new_array(tmp_path / "a.npy", np.float32, (3, 2)).shape == (3, 2)
    monkeypatch.setattr("vsgraph.common.files.os.posix_fallocate", fill_up)
    with pytest.raises(OSError, match="No space left"):
        new_array(tmp_path / "b.npy", np.float32, (3, 2))


def test_numbers_that_do_not_fit_on_the_disk_are_told_as_such():
    error = FileError.of(OSError("4096 requested and 12 written"), "run/a.npy")
    assert str(error) == "run/a.npy: No space left on device; make room and start again"
    assert str(FileError.of(OSError("odd"))) == "odd; check the disk and start again"


def test_paths_given_relatively_work_from_any_directory_and_after_a_move(
    table, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    home.mkdir()
    table.parent.rename(home / "crawl")
    np.save(home / "x.npy", np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32))
    monkeypatch.chdir(home)
    code, told = command(
        "correct", "crawl/plain.jsonl", "-o", "run", "--features", "x.npy", "--images", "crawl",
        "--text-encoder", "lsa", "--meanings", "crawl/meanings.csv", "--set", "k=3", "--set", "m=2",
        "--no-report",
    )  # fmt: skip
    assert code == 0, told
    for place in (home, tmp_path / "moved"):
        if place != home:
            home.rename(place)
        monkeypatch.chdir("/")
        for arguments in (
            ("report", place / "run"),
            ("sweep", place / "run", "--grid", "k=3"),
            ("export", place / "run", "--to", "hf", "-o", place / "hf", "--overwrite"),
        ):
            code, told = command(*arguments)
            assert code == 0, told
        assert Run.open(place / "run").choices.features == place / "x.npy"
        lines = []
        run(None, place / "run", tell=lines.append, with_report=False)
        assert not [line for line in lines if line.endswith("...")], lines


def test_a_network_given_relatively_is_the_one_that_is_finetuned(table, tmp_path, monkeypatch):
    class Trained(Tiny):
        n_classes = 2

        def encode(self, pixels):
            return Encoded(super().encode(pixels).vectors, np.full((len(pixels), 2), 0.5))

    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Trained())
    monkeypatch.chdir(tmp_path)
    names = read_crawl(table).class_names
    Checkpoint(Architecture(network="lite0", height=32, width=32), names).save(tmp_path / "cnn")
    put(tmp_path / "cnn" / "model.safetensors", "weights")
    out = tmp_path / "run"
    correct(table, out, choices={"image_encoder": "cnn", "text_encoder": "lsa",
                                 "meanings": table.parent / "meanings.csv"})  # fmt: skip
    monkeypatch.chdir("/")
    encoder = Run.open(out).choices.image_encoder
    assert network_to_finetune(encoder, co_teaching=False) == str(tmp_path / "cnn")


# what a run is made from


def test_pictures_that_arrive_later_are_encoded(table, tmp_path):
    late = table.parent / "images" / "0003.jpg"
    late.rename(tmp_path / "late.jpg")
    first = np.array(correct(table, tmp_path / "run").features)
    (tmp_path / "late.jpg").rename(late)
    lines = []
    second = np.array(correct(table, tmp_path / "run", tell=lines.append).features)

    assert "pictures again: its inputs changed ..." in lines
    assert not first[3].any()
    assert second[3].any()
    assert (np.delete(first, 3, 0) == np.delete(second, 3, 0)).all()


def test_a_sweep_uses_the_graph_of_the_run(table, tmp_path):
    links = np.roll(np.eye(12), 5, axis=1)
    save_npz(tmp_path / "graph.npz", csr_array(links + links.T))
    choices = {"graph": tmp_path / "graph.npz", "text_encoder": "lsa",
               "meanings": table.parent / "meanings.csv"}  # fmt: skip
    made = correct(table, tmp_path / "run", choices=choices)
    for arguments in (
        ("sweep", made.path, "--grid", f"m={FEW.anchors_per_class}"),
        ("progressive", made.path, "--rounds", "2"),
    ):
        code, told = command(*arguments, "-o", tmp_path / arguments[0])
        assert code == 0, told
        rows = json.loads((tmp_path / arguments[0] / f"{arguments[0]}.json").read_text())["rows"]
        confidence = made.correction.confidence.mean()
        assert rows[0]["confidence"] == pytest.approx(confidence, rel=1e-6)
    plain = correct(table, tmp_path / "plain").correction.confidence.mean()
    assert plain != pytest.approx(confidence, rel=1e-6)


def test_sources_of_a_crawl_reach_the_anchors(table, tmp_path):
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    lines = [
        json.dumps(row | {"source": ("google", "flickr")[i % 2]}) for i, row in enumerate(rows)
    ]
    sourced = put(table.with_name("sourced.jsonl"), "\n".join(lines) + "\n")
    made = correct(
        sourced, tmp_path / "run", settings=dataclasses.replace(FEW, anchors_per_class=1)
    )
    arrays = made.arrays()
    names = made.crawl.class_names
    with_sources = vsgraph.correct(**arrays, class_names=names, settings=made.settings)
    without = vsgraph.correct(**arrays | {"sources": None}, class_names=names,
                              settings=made.settings)  # fmt: skip

    assert made.correction.anchors.rows.tolist() == with_sources.anchors.rows.tolist()
    assert len(made.correction.anchors) > len(without.anchors)


def test_a_validation_set_may_have_classes_that_begin_with_a_hash(tmp_path):
    for name in ("#ant", "bee", "#other"):
        put(tmp_path / "val" / name / "a.jpg")
    crawl, others = read_validation(tmp_path / "val", ("#ant", "bee"))
    assert crawl.class_names == ("#ant", "bee")
    assert len(crawl) == 2
    assert others == ["#other"]


def test_a_run_shows_how_far_its_report_is(table, tmp_path, monkeypatch):
    shown = []

    @contextlib.contextmanager
    def bar(total, title, *_, progress):
        if progress:
            shown.append(title)
        yield type("Bar", (), {"update": lambda *_: None})

    monkeypatch.setattr("vsgraph.report.write.bar", bar)
    correct(table, tmp_path / "run", with_report=True, progress=True)
    assert shown == ["senses of classes", "pages of classes"]


@pytest.mark.parametrize("name", ["crawl", "pictures", "words", "graph", "network", "decisions"])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_crawl_that_grew_needs_nothing_of_the_result_before(table, tmp_path, name, is_cut):
    folder = correct(table, tmp_path / "run").outputs[name]
    grow_crawl(table.parent)
    expected = correct(table, tmp_path / "fresh").correction.final_labels
    if is_cut:
        records = [] if name in {"words", "graph", "network"} else [folder / "stage.json"]
        for path in [*folder.glob("*.npy"), *records]:
            path.write_bytes(path.read_bytes()[:40])
    else:
        shutil.rmtree(folder)
    assert correct(table, tmp_path / "run").correction.final_labels.tolist() == expected.tolist()


DAMAGED = [
    {}, {"made": 5, "asked": {}}, {"made": None}, {"made": {}, "asked": {}},
    {"made": None, "asked": 3},
    {"made": {"stages": {"pictures": 3}, "asked": {}}, "asked": {}},
    {"made": {"stages": [], "asked": {}}, "asked": {}},
    {"made": {"stages": {"pictures": {"key": ["x"]}}, "asked": {"paths": [3]}}, "asked": {}},
]  # fmt: skip


@pytest.mark.parametrize("values", DAMAGED)
def test_a_damaged_record_is_told_in_one_line_and_harms_no_run_beside_it(table, tmp_path, values):
    record = {"format": "vsgraph-run-2", **values}
    put(tmp_path / "other" / "run.json", json.dumps(record))
    os.mkfifo(put(tmp_path / "piped" / "x", "").with_name("run.json"))
    assert len(correct(table, tmp_path / "run").correction) == 12
    for arguments in (("export", tmp_path / "other", "--to", "csv", "-o", tmp_path / "c.csv"),
                      ("correct", table, "-o", tmp_path / "other")):  # fmt: skip
        code, told = command(*arguments)
        assert code == 1, told
        assert told.startswith("Error: ")
        assert told.count("\n") == 1


def test_vectors_that_came_with_a_crawl_are_not_believed(table, tmp_path):
    made = correct(table, tmp_path / "run")
    shutil.copytree(made.path, table.parent, dirs_exist_ok=True)  # beside the runs, as a run
    vectors = next(table.parent.glob("stages/pictures-*/vectors.npy"))
    np.save(vectors, np.ones_like(made.features))
    shutil.rmtree(made.path)
    again = correct(table, tmp_path / "again")
    assert np.ptp(again.features) > 0


def test_of_many_runs_on_one_crawl_the_vectors_are_looked_at_once(table, tmp_path, monkeypatch):
    first = correct(table, tmp_path / "tree" / "0")
    for number in range(1, 9):
        shutil.copytree(first.path, tmp_path / "tree" / str(number))
    looked, add_keys = [], VectorStore._add_keys
    monkeypatch.setattr(VectorStore, "_add_keys", lambda store, keys: (
        looked.append(store.name), add_keys(store, keys))[1])  # fmt: skip
    correct(table, tmp_path / "tree" / "new")
    assert looked.count(Tiny.name) == 1  # the vectors of one run; nothing is new


# many at once


@forks
def test_a_second_process_on_a_run_is_refused_in_one_line(table, tmp_path):
    out = tmp_path / "run"
    old = correct(table, out).correction.anchors.rows.tolist()
    ready, go = tmp_path / "ready", tmp_path / "go"

    def wait(job, folder):
        ready.touch()
        while not go.exists():
            time.sleep(0.01)

    def slowly():
        import vsgraph.runs.start as module

        module._do, do = (lambda *given: (wait(*given), do(*given))), module._do
        main(["correct", "-o", str(out), "--set", "m=1", "--no-report"])

    ended = []
    first = threading.Thread(target=lambda: ended.append(call(slowly, tmp_path)))
    first.start()
    while not ready.exists():
        time.sleep(0.01)
    second = call(lambda: main(["correct", "-o", str(out), "-q"]), tmp_path)
    report = call(lambda: main(["report", str(out)]), tmp_path)
    between = Run.open(out).correction.anchors.rows.tolist()
    go.touch()
    first.join()

    for refused in (second, report):
        assert refused.code == 1
        assert refused.told == f"Error: {out} is in use by another process; wait for it or end it\n"
    assert between == old
    assert ended[0].code == 0, ended[0].told
    assert len(Run.open(out).correction.anchors) == 2


@pytest.mark.slow
def test_a_hundred_runs_in_one_tree_do_not_disturb_each_other(table, tmp_path):
    first = correct(table, tmp_path / "tree" / "0")
    expected = first.correction.final_labels.tolist()
    shutil.copytree(first.path, tmp_path / "copy")
    folders = [first.path]
    for number in range(1, 100):
        parent = folders[number // 2] if number % 3 else tmp_path / "tree"
        folders.append(shutil.copytree(tmp_path / "copy", parent / f"run-{number}"))
    for folder in folders[::20]:
        run(None, folder, settings={"k": 2}, with_report=False)
        run(None, folder, settings={"k": 3}, with_report=False)
    for folder in folders:
        assert Run.open(folder).correction.final_labels.tolist() == expected
