"""A small run to review, made once, and copies of it."""

import shutil

import pytest

from vsgraph.demo.made_up import make_crawl, write_crawl
from vsgraph.runs import Choices, run
from vsgraph.settings import Settings


@pytest.fixture(scope="session")
def first_run(tmp_path_factory, model_cache):
    folder = tmp_path_factory.mktemp("review")
    table = write_crawl(make_crawl(per_class=24), folder / "crawl")
    choices = Choices(meanings=folder / "crawl" / "meanings.csv", text_encoder="lsa")
    few = Settings(anchors_per_class=5)
    run(table, folder / "run", settings=few, choices=choices, with_report=False)
    return folder / "run"


@pytest.fixture
def run_folder(first_run, tmp_path, monkeypatch):
    """A copy of the run, beside a copy of its crawl."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(first_run.parent / "crawl", tmp_path / "crawl")
    shutil.copytree(first_run, tmp_path / "run")
    record = tmp_path / "run" / "run.json"
    record.write_text(record.read_text().replace(str(first_run.parent), str(tmp_path)))
    return tmp_path / "run"


@pytest.fixture
def client(run_folder):
    from clients import open_client

    return open_client(run_folder, "ann")
