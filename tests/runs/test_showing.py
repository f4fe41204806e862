"""What a notebook shows of crawls, corrections and runs, and what torch is given of a run."""

import base64
import dataclasses
import io
import re
import sys
import types

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from tqdm import tqdm

from vsgraph.common.files import file_errors
from vsgraph.common.notebook import Html, grid, table
from vsgraph.common.progress import bar
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.runs import Run

PICTURE = re.compile(r'src="data:image/jpeg;base64,([^"]+)"')


@pytest.fixture
def run(world):
    return Run.open(world / "run")


def pictures_in(page):
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in PICTURE.findall(page)]


def test_a_run_shows_its_counts_and_pictures(run):
    page = run._repr_html_()
    assert "12 images: keep" in page
    assert "estimated to be right" in page
    shown = pictures_in(page)
    assert 3 <= len(shown) <= 12
    assert all(max(picture.size) <= 96 for picture in shown)
    assert len(page) < 200_000
    assert repr(run).startswith("Run('")


def test_show_is_a_grid_of_a_class_and_a_decision(run):
    correction = run.correction
    bat = correction.class_names.index("bat")
    kept = (correction.decisions == 0) & (correction.web_labels == bat)
    whole = run.show("bat", "kept")
    assert isinstance(whole, Html)
    assert repr(whole) == f"bat, kept: {kept.sum()} images"
    assert len(pictures_in(whole._repr_html_())) == kept.sum()
    rows = [int(row) for row in re.findall(r"<figcaption>(\d+):", whole._repr_html_())]
    assert set(rows) == set(np.flatnonzero(kept))
    assert (np.diff(correction.confidence[rows]) <= 0).all()
    assert repr(run.show(n=5)) == "all classes, all: 12 images, 5 shown"
    with pytest.raises(InputError, match="there is no class 'baseball bats'; did you mean 'baseb"):
        run.show("baseball bats")
    with pytest.raises(InputError, match="decision must be one of kept, relabeled, rejected"):
        run.show("bat", "dropped")


def test_explain_is_a_card_with_the_pictures_that_look_alike(run):
    card = run.explain(3)
    why = run.correction.explain(3)
    assert len(pictures_in(card._repr_html_())) == 1 + len(why.neighbors)
    assert str(why) in repr(card)
    assert "graph (p_g)" in why._repr_html_()
    assert not PICTURE.search(why._repr_html_())


def test_without_its_pictures_a_run_still_shows_its_counts(world):
    run = dataclasses.replace(Run.open(world / "run"), root=world / "gone")
    page = run._repr_html_() + run.explain(0)._repr_html_()
    assert "12 images: keep" in page
    assert not PICTURE.search(page)


def test_a_crawl_shows_its_classes_and_pictures(run):
    page = run.crawl._repr_html_()
    assert "12 images, 2 classes" in page
    assert "truth: known of 12" in page
    assert len(pictures_in(page)) == 8


def test_what_a_crawl_says_is_never_markup(tmp_path):
    bad = '<img src=x onerror="alert(1)">'
    rows = pa.table({"image": ["no.jpg"], "web_labels": pa.array([0], pa.int32()), "t": [bad]})
    page = Crawl(bad, tmp_path, rows, (bad,), text_fields=("t",))._repr_html_()
    for shown in (page, table([(bad, bad)], [bad]), grid([(b"", bad)])):
        assert "<img" not in shown
        assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in shown
    assert "no picture" in page


def test_a_correction_of_several_labels_shows_them(corrected):
    several = np.eye(4, dtype=bool)[corrected.web_labels]
    page = dataclasses.replace(corrected, web_labels=several, unwanted=None)._repr_html_()
    assert "ant" in page
    assert f"{len(corrected):,} images" in page


def test_a_notebook_has_bars(monkeypatch):
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with bar(2, "pictures", progress=True) as steps:
        assert isinstance(steps, tqdm)


def test_a_run_is_a_dataset_of_torch(run):
    data = run.as_torch_dataset(side=32)
    left = run.correction.final_labels >= 0
    assert isinstance(data, torch.utils.data.Dataset)
    assert len(data) == left.sum()
    pictures, labels, weights = next(iter(torch.utils.data.DataLoader(data, batch_size=len(data))))
    assert pictures.shape == (len(data), 3, 32, 32)
    assert 0 <= pictures.min() < pictures.max() <= 1
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(labels.argmax(axis=1), run.correction.final_labels[data.rows])
    np.testing.assert_allclose(weights, run.correction.confidence[data.rows], atol=1e-6)
    hard = run.as_torch_dataset(side=8, labels="decided", transform=lambda pixels: pixels.shape)
    assert hard[0][0] == (8, 8, 3)
    assert hard[0][1].tolist().count(1.0) == 1


def test_a_picture_that_is_gone_has_no_weight(world):
    run = dataclasses.replace(Run.open(world / "run"), root=world / "crawl")
    data = run.as_torch_dataset(side=16)
    (world / "crawl" / run.crawl.table["image"][int(data.rows[0])].as_py()).unlink()
    picture, label, weight = data[0]
    assert not picture.any()
    assert not label.any()
    assert weight == 0
    assert data[1][2] > 0


def test_a_closed_pipe_is_no_error_of_a_file():
    with pytest.raises(BrokenPipeError), file_errors():
        raise BrokenPipeError
