"""The command line, the demo and its page."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import vsgraph
from vsgraph.cli import main
from vsgraph.crawls import read_crawl
from vsgraph.demo import made_up
from vsgraph.demo.run_demo import run_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory, model_cache):
    return run_demo(tmp_path_factory.mktemp("demo") / "demo-run")


def test_the_module_prints_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "vsgraph", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"vsgraph, version {vsgraph.__version__}"


@pytest.mark.slow
def test_the_demo_corrects_a_crawl_and_leaves_a_page(demo):
    accuracy = demo.judged.accuracy
    assert accuracy["all"]["before"] < 0.65
    assert accuracy["not rejected"]["after"] > 0.85
    assert demo.judged.rejected["share"] > 0.75
    page = demo.run.page.read_text()
    assert "drumstick" in page
    assert len(list(demo.run.page.parent.glob("classes/*.html"))) == 7
    assert not re.search(r"https?://|\bon\w+=", page)


@pytest.mark.slow
def test_the_demo_leaves_its_crawl_as_files(demo):
    again = read_crawl(demo.run.path.parent / "crawl")
    assert len(again) == len(demo.run.correction) == 1001
    assert again.class_names == demo.run.correction.class_names
    assert not again.problems.counts


@pytest.mark.slow
def test_the_command_does_it_again_and_prints_before_and_after(demo):
    folder = demo.run.path.parent
    done = CliRunner().invoke(main, ["demo", "--out", str(folder), "--overwrite"])
    assert done.exit_code == 0, done.output
    assert re.search(r"labels right before: \d+\.\d%", done.output)
    assert str(demo.run.top_page) in done.output.replace("\n", "")


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_prints(demo):
    """Up to what another processor's rounding may move: one image in a hundred."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = re.search(
        r"before: ([\d.]+)%\n.*after:  ([\d.]+)% .*\n"
        r"kept (\d+), relabeled (\d+), rejected (\d+) \((\d+)%",
        readme,
    )
    accuracy, counts = demo.judged.accuracy, demo.run.correction.counts
    shares = [accuracy["all"]["before"], accuracy["not rejected"]["after"]]
    shares.append(demo.judged.rejected["share"])
    before, after, *n_images, rejected = map(float, shown.groups())
    assert [before, after, rejected] == pytest.approx([100 * s for s in shares], abs=2)
    assert n_images == pytest.approx(list(counts.values()), abs=10)  # of 1,001


def test_our_errors_are_one_line(tmp_path):
    (tmp_path / "run" / "run").mkdir(parents=True)
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "run")])
    assert done.exit_code == 1
    assert done.output.strip().splitlines()[-1].startswith("Error: ")
    assert "exists already" in done.output


def test_a_file_in_the_way_of_the_demo_is_said_in_one_line(tmp_path):
    (tmp_path / "run").write_text("mine")
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "run")])
    assert done.exit_code == 1
    assert "is a file; choose the name of a folder" in done.output


def test_the_same_number_draws_the_same_crawl():
    first, again, other = (made_up.make_crawl(per_class=3, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.pictures, again.pictures)
    assert first.titles == again.titles
    assert first.titles != other.titles


def test_missing_and_swapped_titles_have_the_shares_asked_for():
    crawl = made_up.make_crawl(per_class=20, missing=0.25, swapped=0.0)
    assert sum(not title for title in crawl.titles) == 35
