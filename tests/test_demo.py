"""The command line, the demo and its page."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import vsgraph
from vsgraph import made_up
from vsgraph.cli import main
from vsgraph.crawls import read_crawl
from vsgraph.demo import run_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"))


def test_the_module_prints_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "vsgraph", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"vsgraph, version {vsgraph.__version__}"


def test_the_demo_corrects_a_crawl_and_leaves_a_page(demo):
    assert demo.right_before < 0.65
    assert demo.right_after > 0.85
    assert demo.rejected_rightly > 0.85
    page = demo.report.read_text()
    assert "drumstick" in page
    assert len(list(demo.report.parent.glob("classes/*.html"))) == 7
    assert len(list(demo.report.parent.glob("pictures/*.jpg"))) == len(demo.correction)
    assert not re.search(r"https?://|\bon\w+=", page)


def test_the_demo_leaves_a_record_that_loads(demo):
    folder = demo.report.parent.parent / "correction"
    assert vsgraph.Correction.load(folder).counts == demo.correction.counts


def test_the_demo_leaves_its_crawl_as_files(demo):
    again = read_crawl(demo.report.parent.parent / "crawl")
    assert len(again) == len(demo.correction)
    assert set(again.class_names) == set(demo.correction.class_names)
    assert not again.problems.counts


def test_the_command_prints_before_and_after(tmp_path):
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert re.search(r"labels right before: \d+\.\d%", done.output)
    assert str(tmp_path / "run" / "report" / "index.html") in done.output.replace("\n", "")


def test_the_readme_shows_what_the_demo_prints(demo):
    """Up to what another processor's rounding may move."""
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    shown = re.search(
        r"before: ([\d.]+)%\n.*after:  ([\d.]+)% .*\n"
        r"kept (\d+), relabeled (\d+), rejected (\d+) \((\d+)%",
        readme,
    )
    shares = [100 * s for s in (demo.right_before, demo.right_after)]
    expected = [*shares, *demo.correction.counts.values(), 100 * demo.rejected_rightly]
    assert [float(x) for x in shown.groups()] == pytest.approx(expected, abs=3)


def test_our_errors_are_one_line(tmp_path):
    (tmp_path / "run" / "correction").mkdir(parents=True)
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
