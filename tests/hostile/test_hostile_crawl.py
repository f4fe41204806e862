# ruff: noqa: E501
"""A hostile crawl through every command: no traceback, no hang, no program, nothing outside."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_crawl import count_files, make_hostile

from made_pictures import put
from vsgraph.crawls import read_crawl
from vsgraph.exports import FORMATS

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
QUICK = ["--set", "n_neighbors=3", "--set", "anchors_per_class=2", "--set", "epochs=5"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with the hostile things in `hostile`, and an empty folder `out`."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "hostile").mkdir()
    (folder / "out").mkdir()
    make_hostile(folder / "hostile")
    return folder


def listing(folder):
    """Return the names, kinds, sizes and times of everything below a folder."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            status = Path(root, name).lstat()
            found[root, name] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def watched(place, commands, *, least=0):
    """Run commands in a watched child; check all that must hold, and return their results."""
    out = place / "out"
    home = out / "home"
    home.mkdir(exist_ok=True)
    environment = os.environ | {
        "HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(home), "TORCHINDUCTOR_CACHE_DIR": str(home), "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    before = listing(place / "hostile")
    ran = subprocess.run(
        [sys.executable, str(HERE / "audited.py"), str(out)],
        input=json.dumps([[str(word) for word in command] for command in commands]),
        capture_output=True, text=True, timeout=1500, cwd=out, env=environment, check=False,
        errors="replace",
    )  # fmt: skip
    results = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert len(results) == len(commands), ran.stderr[-3000:]
    for result in results:
        told = json.dumps(result, indent=1)
        assert result["code"] in {0, 1, 2}, told
        assert "Traceback" not in result["error"], told
        assert result["seen"] == [], told
        last = result["error"].rstrip().rpartition("\n")[2]  # lines of progress may come before it
        assert not result["code"] or last.startswith(("Error: ", "Warning: ")), told
        assert not set(result["error"] + result["output"]) & set("\x1b\x07\0"), told
    assert "Traceback" not in ran.stderr
    assert listing(place / "hostile") == before
    assert sum(result["code"] == 0 for result in results) >= least
    return results


def test_there_is_enough_of_it(place):
    assert count_files(place / "hostile") >= 500


def test_every_table_is_read_or_refused(place):
    tables = sorted((place / "hostile" / "tables").iterdir())
    watched(place, [["inspect", path] for path in tables], least=len(tables) // 3)


def test_every_shard_and_layout_is_read_or_refused(place):
    hostile = place / "hostile"
    shards = sorted(path for path in (hostile / "shards").iterdir() if path.suffix == ".tar")
    others = [hostile, hostile / "folders", hostile / "crawl" / "links", hostile / "shards",
              hostile / "shards" / "packed", hostile / "crawl" / "links" / "pipe.jpg",
              *(hostile / "layouts").iterdir()]  # fmt: skip
    commands = [["inspect", path, "--every-picture"] for path in [*shards, *others]]
    commands += [["inspect", shard, "--label-separator", ","] for shard in shards[:6]]
    commands += [["inspect", hostile / "folders", "--strict"], ["inspect", "/dev/null"]]
    watched(place, commands, least=15)


@pytest.fixture(scope="module")
def run_folder(place):
    """Correct the hostile crawl with arrays of our own; return the folder of the run."""
    table = place / "hostile" / "crawl" / "crawl.jsonl"
    crawl = read_crawl(table)
    draw = np.random.default_rng(0)
    sizes = {"features": (len(crawl), 16), "text-embeddings": (len(crawl), 8),
             "label-embeddings": (len(crawl.class_names), 8)}  # fmt: skip
    given = ["--meanings", place / "out" / "meanings.csv"]
    for name, size in sizes.items():
        np.save(place / "out" / f"{name}.npy", np.abs(draw.normal(size=size)))
        given += [f"--{name}", place / "out" / f"{name}.npy"]
    results = watched(place, [
        ["inspect", table, "--every-picture", "--problems", place / "out" / "problems.tsv"],
        ["inspect", table, "--json"],
        ["describe", table, "-o", place / "out" / "meanings.csv", "--all"],
        ["correct", table, "-o", place / "out" / "run", "--dry-run", *given],
        ["correct", table, "-o", place / "out" / "run", *given, *QUICK],
        ["correct", table, "-o", place / "out" / "run2", "--no-report", *given, *QUICK, "--no-probe"],
    ])  # fmt: skip
    assert [result["code"] for result in results] == [0] * 6, results[4]["error"]
    return place / "out" / "run"


def test_a_run_is_judged_by_hostile_truths(place, run_folder):
    tables = place / "hostile" / "tables"
    truths = [*sorted(tables.glob("types-*.jsonl"))[::9], *sorted(tables.glob("title-*.parquet")),
              *sorted(tables.glob("utf-*-44.csv")), tables / "noise-below.csv",
              tables / "open-quotes.csv"]  # fmt: skip
    second = run_folder.with_name("run2")
    commands = [["evaluate", run_folder, "--truth", truth] for truth in truths]
    commands += [
        ["evaluate", run_folder, "-o", place / "out" / "judged.md"],
        ["compare", run_folder, second, "--json"],
        ["compare", run_folder, second, "--truth", tables / "title-text.parquet"],
        ["sweep", run_folder, "--grid", "n_neighbors=2,3", "-o", place / "out" / "sweep"],
        ["progressive", run_folder, "--rounds", "2", "-o", place / "out" / "rounds"],
    ]
    results = watched(place, commands)
    assert [result["code"] for result in results[-5:]] == [0] * 5


def test_a_run_is_exported_to_every_format(place, run_folder):
    out = place / "out" / "exports"
    commands = [["export", run_folder, "--to", to, "-o", out / to, "--rejected"][: 6 if to == "imglist" else 7]
                for to in FORMATS]  # fmt: skip
    commands += [["export", run_folder, "--to", to, "-o", out / f"{to}-{mode}", "--mode", mode]
                 for to in ("imagefolder", "hf") for mode in ("copy", "hardlink")
                 if (to, mode) != ("hf", "hardlink")]  # fmt: skip
    results = watched(place, commands)
    assert [result["code"] for result in results] == [0] * len(commands)
    root = (place / "hostile").resolve()
    passwd = Path("/etc/passwd").read_bytes()
    for folder, _, files in os.walk(out):
        for name in files:
            path = Path(folder, name)
            assert path.resolve().is_relative_to(root if path.is_symlink() else out.resolve())
            assert passwd not in path.read_bytes()


def test_exports_are_narrowed_split_and_described(place, run_folder):
    out = place / "out" / "narrowed"
    options = [
        ["--split", "0.8,0.1,0.1"],
        ["--top", "3"],
        ["--min-confidence", "0.5"],
        ["--purity", "0.9"],
        ["--split", "nan"],
        ["--top", "0"],
        ["--purity", "inf"],
    ]
    commands = [["export", run_folder, "--to", to, "-o", out / f"{to}-{number}", *more]
                for to in ("imagefolder", "hf", "webdataset", "csv")
                for number, more in enumerate(options)]  # fmt: skip
    results = watched(place, commands)
    for number, result in enumerate(results):
        assert (result["code"] == 0) == (number % len(options) < 4), result["error"]
    for card in out.rglob("README.md"):
        text = card.read_text(encoding="utf-8")
        assert not re.search(r"(?<!\\)\[|<(?!/?$)", text.partition("# ")[2]), card


def test_people_decide_by_hostile_files_and_audit(place, run_folder):
    hostile = place / "hostile"
    files = [*sorted((hostile / "tables").iterdir())[::8], *(hostile / "layouts").iterdir(),
             hostile / "crawl" / "crawl.jsonl", hostile / "crawl" / "links" / "pipe.jpg"]  # fmt: skip
    commands = [["decide", run_folder, file, "--reviewer", "ann"] for file in files]
    commands += [["audit", run_folder, "--truth", file] for file in files[::4]]
    commands += [["audit", run_folder, "--images", "5"], ["doctor"]]
    results = watched(place, commands)
    assert [result["code"] for result in results[-2:]] == [0, 0]


def test_the_report_is_written_again(place, run_folder):
    (result,) = watched(place, [["report", run_folder]])
    assert result["code"] == 0, result["error"]


def test_nothing_of_it_runs_in_a_browser(run_folder):
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no chromium is installed (apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    index = next(run_folder.glob("stages/report-*/index.html"))
    said, asked = [], []
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append("dialog"))
        page.on("request", lambda request: asked.append(request.url))
        for path in [index, *sorted((index.parent / "classes").iterdir())]:
            page.goto(path.as_uri())
            for summary in page.locator("summary").all()[:3]:
                summary.click()
            page.wait_for_timeout(50)
            assert page.evaluate("window.hacked") is None
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith("file:")] == []


def test_pictures_and_texts_are_encoded_trained_on_and_classified(place, monkeypatch):
    monkeypatch.syspath_prepend(HERE.parent / "training")
    import training_data

    network = training_data.tiny_network(place / "out" / "network")
    hostile = place / "hostile"
    table, out = hostile / "crawl" / "crawl.jsonl", place / "out"
    tiny = ["--image-encoder", network, "--text-encoder", "lsa", "--runtime", "torch"]
    results = watched(place, [
        ["embed", table, "-o", out / "vectors", *tiny],
        ["embed", hostile / "shards" / "pictures.tar", "-o", out / "shard-vectors", *tiny],
        ["correct", table, "-o", out / "encoded", *tiny, *QUICK, "--no-report"],
        ["train", table, "-o", out / "model", "--network", network, "--epochs", "1", "-q",
         "--val", hostile / "folders"],
        ["finetune", out / "encoded", "-o", out / "tuned", "--network", network, "--epochs", "1", "-q"],
        ["train", table, "-o", out / "head", "--network", network, "--epochs", "1", "-q", "--freeze"],
        ["finetune", out / "encoded", "-o", out / "tuned head", "--epochs", "1", "-q", "--freeze"],
        ["label", out / "encoded", table, "-o", out / "labels.csv"],
        ["label", out / "encoded", hostile / "crawl" / "pictures"],
        ["label", out / "encoded", hostile / "crawl" / "links"],
        ["label", out / "encoded", hostile / "crawl" / "links" / "pipe.jpg"],
        ["label", out / "encoded", hostile / "shards" / "pictures.tar"],
        ["label", out / "encoded", hostile / "folders"],
        ["label", out / "encoded", hostile / "tables" / "noise-below.csv"],
        ["predict", out / "model", table, "-o", out / "predicted"],
        ["test", out / "model", "--data", table],
        ["classify", out / "model", hostile / "crawl" / "pictures", hostile / "crawl" / "links"],
        ["classify", out / "model", hostile / "crawl" / "links" / "pipe.jpg"],
        ["export-model", out / "model", "-o", out / "model.onnx"],
        ["export-model", out / "model", "-o", out / "model.pt2"],
    ])  # fmt: skip
    assert [result["code"] for result in results[-2:]] == [0, 0], results[-2:]


def test_a_few_of_it_go_through_the_default_encoders(place):
    """Every tenth row, since the encoders are slow; `make faults` also runs the demo."""
    crawl = place / "hostile" / "crawl"
    lines = (crawl / "crawl.jsonl").read_bytes().splitlines(keepends=True)
    few = put(place / "out" / "few.jsonl", b"".join(lines[::10]))
    commands = [["correct", few, "--images", crawl, "-o", place / "out" / "default", *QUICK]]
    if "VSGRAPH_FUZZ_SECONDS" in os.environ:
        commands.append(["demo", "-o", place / "out" / "demo"])
    watched(place, commands, least=len(commands))
