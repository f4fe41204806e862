"""A run of the made-up crawl, without any model: what other programs are given."""

import json
import shutil

import numpy as np
import pytest

import vsgraph
from vsgraph.demo.made_up import make_crawl, picture_features, write_crawl

SETTINGS = {"text_encoder": "lsa", "with_report": False, "anchors_per_class": 10}


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Return a run of 280 drawings; their vectors are counts of colors and edges."""
    folder = tmp_path_factory.mktemp("made-up")
    made = make_crawl(per_class=40, missing=0.1, swapped=0.0)
    table = write_crawl(made, folder / "crawl")
    lines = [json.loads(line) for line in table.read_text().splitlines()]
    odd = {"url": "http://example.org/1", "og.image": "a", "_cls": "b", "logits": "c", "$d": "e"}
    table.write_text("".join(json.dumps({**line, **odd}) + "\n" for line in lines))
    np.save(folder / "features.npy", picture_features(made.pictures))
    return vsgraph.run(
        table, folder / "run", features=folder / "features.npy",
        meanings=table.parent / "meanings.csv", **SETTINGS,
    )  # fmt: skip


@pytest.fixture
def copy(run, tmp_path):
    """Return a copy of the run, to be answered."""
    return type(run).open(shutil.copytree(run.path, tmp_path / "run"))
