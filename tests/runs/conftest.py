"""A small run that tests copy."""

import shutil

import pytest
from small_crawl import Tiny, correct_small, write_small_crawl


@pytest.fixture(scope="session")
def small_world(tmp_path_factory, model_cache):
    """A crawl of twelve pictures in two classes, and its run."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())
        correct_small(write_small_crawl(folder / "crawl"), folder / "run")
    return folder


@pytest.fixture
def world(small_world, tmp_path, monkeypatch):
    """A copy of that crawl and its run."""
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())
    return shutil.copytree(small_world, tmp_path / "world")
