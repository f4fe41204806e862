"""Runs, answers and exports in an object store: whole or not there, and equal to local ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from small_crawl import Tiny, correct_small, write_small_crawl

from s3_server import SECRET
from vsgraph.answers import Answer
from vsgraph.cli import main
from vsgraph.errors import InputError, StoreError
from vsgraph.exports import FORMATS
from vsgraph.runs import Run, run
from vsgraph.runs.start import report_again

RUN = "s3://stored/runs/a"
OPTIONS = ["--set", "n_neighbors=3", "--set", "anchors_per_class=2", "--text-encoder", "lsa"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())


@pytest.fixture(scope="module")
def finished(s3_server, tmp_path_factory):
    """The objects of a crawl and of its run in a store, and the same run on disk."""
    folder = tmp_path_factory.mktemp("stored")
    table = write_small_crawl(folder / "crawl")
    s3_server.client.create_bucket(Bucket="stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())
        for name, value in (("AWS_ENDPOINT_URL", s3_server.url), ("AWS_REGION", "us-east-1"),
                            ("AWS_ACCESS_KEY_ID", "someone"), ("AWS_SECRET_ACCESS_KEY", SECRET),
                            ("XDG_CACHE_HOME", str(folder / "cache"))):  # fmt: skip
            patch.setenv(name, value)
        address = s3_server.upload(folder / "crawl", "stored", "crawl")
        run(
            f"{address}/plain.jsonl", RUN, n_neighbors=3, anchors_per_class=2, text_encoder="lsa",
            meanings=table.parent / "meanings.csv", with_report=False,
        )  # fmt: skip
        correct_small(table, folder / "run", with_report=False)
    return s3_server.objects("stored"), folder / "run"


@pytest.fixture
def stored(s3, finished):
    """A store with that crawl and that run; nothing of it on this machine."""
    s3.restore("stored", finished[0])
    s3.requests.clear()
    return s3


def on_another_machine(monkeypatch, tmp_path, name="other"):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))


def labels(path=RUN):
    return Run.open(path).correction.final_labels


def test_a_run_in_a_store_equals_one_on_disk(stored, finished):
    there, here = Run.open(RUN), Run.open(finished[1])
    np.testing.assert_array_equal(there.correction.final_labels, here.correction.final_labels)
    np.testing.assert_array_equal(there.correction.confidence, here.correction.confidence)
    np.testing.assert_array_equal(there.features, here.features)
    assert there.to_arrow().equals(here.to_arrow())
    assert there.counts == here.counts
    assert repr(there).startswith("Run('s3://stored/runs/a': keep")
    assert there.path.is_relative_to(os.environ["XDG_CACHE_HOME"])


def test_no_key_and_no_endpoint_is_written_anywhere(stored, tmp_path):
    Run.open(RUN).to_arrow()
    files = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    for data in [*stored.objects("stored").values(), *files]:
        assert SECRET.encode() not in data
        assert stored.url.partition("//")[2].encode() not in data


def test_stages_are_fetched_when_they_are_needed_and_once(stored):
    found = Run.open(RUN)
    assert not list((found.path / "stages").glob("*"))
    assert found.correction is not None
    assert not list((found.path / "stages").glob("texts-*"))
    stored.requests.clear()
    assert labels() is not None
    assert not [r for r in stored.requests if r.method == "GET" and r.path.endswith(".npy")]


def test_a_finished_run_has_nothing_to_do_on_any_machine(stored, monkeypatch, tmp_path):
    before = stored.objects("stored")
    stored.requests.clear()
    told = []
    run(None, RUN, with_report=False, tell=told.append)
    assert [line for line in told if line.endswith("...")] == []
    found = Run.open(RUN)
    shutil.rmtree(found.path)  # the cache may be deleted at any time
    run(None, RUN, with_report=False, tell=told.append)
    assert [line for line in told if line.endswith("...")] == []
    assert not [r for r in stored.requests if r.path.endswith("vectors.npy")]
    now = stored.objects("stored")
    assert now.keys() == before.keys()
    assert {key for key in now if now[key] != before[key]} <= {"runs/a/run.json"}


def test_other_settings_repeat_what_depends_on_them_and_old_stages_go(stored, monkeypatch):
    told = []
    run(None, RUN, purity=0.5, with_report=False, tell=told.append)
    assert [line.partition(" ")[0] for line in told if line.endswith("...")] == ["decisions"]
    run(None, RUN, purity=0.9, with_report=False)
    keys = {"/".join(key.split("/")[3:4]) for key in stored.objects("stored", "runs/a/stages")}
    kept = {f"{name}-{key}" for name, key in Run.open(RUN).keys.items()}
    assert kept <= keys
    assert sum(key.startswith("decisions") for key in keys) <= 2


@pytest.mark.slow
def test_a_table_of_meanings_edited_in_the_store_counts(stored):
    table = stored.objects("stored")["runs/a/meanings.csv"].decode()
    edited = table.replace("nocturnal", "night-time") if "nocturnal" in table else f"{table}\n"
    stored.client.put_object(Bucket="stored", Key="runs/a/meanings.csv", Body=edited.encode())
    told = []
    run(None, RUN, with_report=False, tell=told.append)
    assert any(line.startswith("meanings again") for line in told)
    assert stored.objects("stored")["runs/a/meanings.csv"].decode() == edited


def start(*arguments):
    """Start the command line in a process of its own."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = Path(__file__).with_name("stored_child.py")
    return subprocess.Popen(
        [sys.executable, str(child), *arguments], env=env, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def killed(server, is_time, *arguments):
    """Run a command and kill it as soon as a request comes that is told."""
    seen, process = [], None

    def kill(request):
        if process is not None and is_time(request) and not seen:
            seen.append(request)
            process.send_signal(signal.SIGKILL)
            process.wait()

    server.before = kill
    process = start(*arguments)
    _, errors = process.communicate(timeout=100)
    server.before = lambda _: None
    assert process.returncode == -signal.SIGKILL, errors
    assert seen
    return seen[0]


def is_write(request, part):
    return request.method in {"PUT", "POST"} and part in request.path


@pytest.mark.slow
@pytest.mark.parametrize("part", ["stages/scores-", "run.json"])
def test_killed_in_the_midst_of_an_upload(stored, finished, monkeypatch, tmp_path, part):
    old = labels()
    n_seen = []

    def is_time(request):
        n_seen.append(is_write(request, part))
        return is_write(request, part) and sum(n_seen) == 2

    killed(stored, is_time, "correct", "-o", RUN, "--set", "anchors_per_class=1", "--no-report")
    on_another_machine(monkeypatch, tmp_path, "reader")
    np.testing.assert_array_equal(labels(), old)  # the old result, whole
    Run.open(RUN).to_arrow()
    on_another_machine(monkeypatch, tmp_path, "third")
    again = run(None, RUN, with_report=False)  # remembers what was asked for
    here = shutil.copytree(finished[1], tmp_path / "here")
    few = {"anchors_per_class": 1}
    expected = correct_small(None, here, settings=few, with_report=False)
    assert again.settings == expected.settings
    np.testing.assert_array_equal(again.correction.confidence, expected.correction.confidence)
    run(None, RUN, with_report=False)  # what was unfinished is swept
    stages = {key.split("/")[3] for key in stored.objects("stored", "runs/a/stages")}
    assert stages == {f"{name}-{key}" for name, key in again.keys.items()}


@pytest.mark.slow
def test_a_first_run_that_was_killed_resumes(stored, finished, tmp_path, monkeypatch):
    table = tmp_path / "meanings.csv"
    table.write_bytes(stored.objects("stored")["crawl/meanings.csv"])
    address, command = "s3://stored/runs/new", ["correct", "s3://stored/crawl/plain.jsonl", "-o"]
    killed(stored, lambda r: is_write(r, "new/stages/graph-"), *command, address, *OPTIONS,
           "--meanings", str(table))  # fmt: skip
    with pytest.raises(InputError, match="has no corrected labels yet"):
        Run.open(address)
    told = []
    again = run(None, address, with_report=False, tell=told.append)
    assert "pictures: done before" in told
    expected = Run.open(finished[1]).correction
    np.testing.assert_array_equal(again.correction.confidence, expected.confidence)


def test_two_machines_that_write_at_once_do_not_mix(stored, monkeypatch, tmp_path):
    def other(request):
        if is_write(request, "stages/decisions-"):
            stored.before = lambda _: None
            record = json.loads(finished_record)
            record["asked"]["settings"]["purity"] = 0.123
            stored.client.put_object(
                Bucket="stored", Key="runs/a/run.json", Body=json.dumps(record).encode()
            )

    finished_record = stored.objects("stored")["runs/a/run.json"]
    stored.before = other
    with pytest.raises(StoreError, match="was changed by another process meanwhile"):
        run(None, RUN, purity=0.5, with_report=False)
    assert run(None, RUN, purity=0.5, with_report=False).settings.purity == 0.5


def say(found, row, *names):
    key = found.outputs.picture_keys(found.crawl)[row]
    return Answer(key, "", (), names)


def test_answers_go_up_when_they_are_given(stored, monkeypatch, tmp_path):
    first = Run.open(RUN)
    name = first.crawl.class_names[1 - first.crawl.web_labels[0]]
    batch = first.folder.journal("ann").add([say(first, 0, name)])
    on_another_machine(monkeypatch, tmp_path)
    other = Run.open(RUN)
    assert other.correction.names_of(other.correction.final_labels[0]) == (name,)
    other.folder.journal("ann").add([say(other, 1)])  # the same reviewer elsewhere
    other.folder.journal("bob").add([say(other, 2)])
    on_another_machine(monkeypatch, tmp_path, "cache")
    first.folder.journal("ann").add([say(first, 3)])  # joins, and takes nothing away
    now = Run.open(RUN)
    assert len(now.answers.given) == 4
    assert now.answers.n_by_reviewer == {"ann": 3, "bob": 1}
    done = CliRunner().invoke(main, ["decide", RUN, "--reviewer", "ann", "--undo", batch])
    assert done.exit_code == 0, done.output
    on_another_machine(monkeypatch, tmp_path)
    assert len(Run.open(RUN).answers.given) == 3


def test_an_answer_that_cannot_go_up_is_kept_and_goes_with_the_next(stored, monkeypatch):
    found = Run.open(RUN)
    found.folder.journal("ann").add([say(found, 0)])
    with stored.as_nobody(monkeypatch), pytest.raises(StoreError, match="denies access"):
        found.folder.journal("ann").add([say(found, 1)])
    assert len(Run.open(RUN).answers.given) == 2
    found.folder.journal("ann").add([say(found, 2)])
    journal = stored.objects("stored")["runs/a/answers/ann.jsonl"]
    assert journal.count(b"\n") == 3


def test_a_review_answers_into_the_store(stored):
    pytest.importorskip("starlette")
    from vsgraph.review.session import Session

    session = Session(Run.open(RUN).path, "ann")
    assert session.answer(np.array([0]), [()], batch="b-1") == 1
    assert b'"b-1"' in stored.objects("stored")["runs/a/answers/ann.jsonl"]


@pytest.mark.slow
def test_decide_and_learning_from_it(stored, tmp_path):
    found = Run.open(RUN)
    image, name = found.crawl.table["image"][0].as_py(), found.crawl.class_names[0]
    (tmp_path / "said.csv").write_text(f"image,label\n{image},{name}\n")
    done = CliRunner().invoke(main, ["decide", RUN, str(tmp_path / "said.csv")])
    assert done.exit_code == 0, done.output
    told = []
    taught = run(None, RUN, with_report=False, tell=told.append)
    assert "answers ..." in told
    assert any(key.startswith("runs/a/stages/answers-") for key in stored.objects("stored"))
    assert taught.counts["keep"] >= 1


def test_the_report_is_written_again_in_the_store(stored):
    again = report_again(RUN)
    objects = stored.objects("stored")
    assert again.keys["report"].encode() in objects["runs/a/report.html"]
    assert f"runs/a/stages/report-{again.keys['report']}/index.html" in objects


def test_commands_take_the_address_of_a_run(stored, tmp_path):
    for arguments in (["evaluate", RUN, "--truth", "s3://stored/crawl/plain.jsonl"],
                      ["compare", RUN, RUN], ["correct", "-o", RUN, "--dry-run"],
                      ["export", RUN, "--to", "csv", "-o", str(tmp_path / "x.csv")]):  # fmt: skip
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, (arguments, done.output)


def test_what_is_no_run_is_left_alone(stored):
    with pytest.raises(InputError, match="s3://stored/crawl is not a run of vsgraph"):
        Run.open("s3://stored/crawl")
    with pytest.raises(InputError, match="s3://stored/crawl is not a run of vsgraph"):
        run("s3://stored/crawl/plain.jsonl", "s3://stored/crawl")
    with pytest.raises(InputError, match="s3://stored/none is not a run of vsgraph"):
        Run.open("s3://stored/none")


def test_a_stage_with_a_name_that_climbs_is_not_fetched(stored):
    found = Run.open(RUN)
    key = f"runs/a/stages/graph-{found.keys['graph']}/..\\..\\evil"
    stored.client.put_object(Bucket="stored", Key=key, Body=b"x")
    with pytest.raises(StoreError, match="such a name is not fetched"):
        found.correction  # noqa: B018


@pytest.mark.parametrize("to", ["csv", "parquet", "imagefolder", "webdataset"])
def test_an_export_in_the_store_has_the_bytes_of_one_on_disk(stored, finished, tmp_path, to):
    found, address = Run.open(RUN), f"s3://stored/out/{to}"
    told = found.export(address, to=to)
    assert str(told.out) == address
    found.export(tmp_path / to, to=to, **({"mode": "copy"} if to == "imagefolder" else {}))
    objects = stored.objects("stored", f"out/{to}")
    for key, data in objects.items():
        assert (tmp_path / key.removeprefix("out/")).read_bytes() == data
    files = [tmp_path / to, *(tmp_path / to).rglob("*")]
    assert len(objects) == sum(path.is_file() for path in files)
    with pytest.raises(InputError, match="exists already"):
        found.export(address, to=to)
    found.export(address, to=to, overwrite=True)
    assert stored.objects("stored", f"out/{to}") == objects
    if FORMATS[to].is_ours is None:
        with pytest.raises(InputError, match="was not written by vsgraph; left alone"):
            found.export("s3://stored/crawl", to=to, overwrite=True)


def test_a_crawl_that_is_an_export_is_not_replaced_by_an_export_of_it(stored):
    record = json.dumps({"format": "vsgraph-export-1"}).encode()
    stored.client.put_object(Bucket="stored", Key="crawl/record.json", Body=record)
    before = stored.objects("stored", "crawl")
    with pytest.raises(InputError, match="s3://stored/crawl holds the crawl itself"):
        Run.open(RUN).export("s3://stored/crawl", to="imagefolder", overwrite=True)
    assert stored.objects("stored", "crawl") == before


def test_an_export_whose_upload_fails_is_not_whole_and_starts_again(stored, monkeypatch):
    found = Run.open(RUN)
    found.export("s3://stored/out/clean", to="imagefolder")
    whole = stored.objects("stored", "out/clean")
    with monkeypatch.context() as patch:
        patch.setattr("vsgraph.exports.targets.put_folder", _failing)
        with pytest.raises(StoreError, match="gone"):
            found.export("s3://stored/out/clean", to="imagefolder", overwrite=True)
    left = stored.objects("stored", "out/clean")
    assert "out/clean/record.json" not in left
    assert "out/clean/.vsgraph-unfinished" in left
    found.export("s3://stored/out/clean", to="imagefolder")  # of ours, and not whole
    assert stored.objects("stored", "out/clean") == whole


def _failing(folder, target, *, last):
    raise StoreError("gone")
