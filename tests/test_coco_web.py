"""Real photos, real captions, real double meanings; skipped where COCO-Web is absent."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import vsgraph
from coco_web import blind_rows, load_vectors, main, text_rows
from coco_web_data import read_coco_web, web_like

FOLDER = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[2] / "shared" / "data" / "coco-web")
)
EVERY = 8

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (FOLDER / "metadata.jsonl").exists(), reason=f"COCO-Web is not in {FOLDER}"
    ),
    pytest.mark.filterwarnings("ignore::vsgraph.VSGraphWarning"),  # classes of a sample are small
]


@pytest.fixture(scope="module")
def data():
    return read_coco_web(FOLDER, every=EVERY)


@pytest.fixture(scope="module")
def vectors(data, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield load_vectors(data)


def right(data, rows):
    return {row.method.strip("*"): np.array(data.right(row.labels)) for row in rows}


def test_the_default_beats_web_labels_cleanlab_text_and_the_papers_fusion(data, vectors):
    blind = right(data, blind_rows(data, vectors))
    read = right(data, text_rows(data, vectors, vectors.text))
    ours = read["vsgraph default, p_c out of fold"]
    assert (ours > blind["web labels"] + 0.05).all()
    assert (ours > blind["cleanlab: flagged labels replaced"] + 0.05).all()
    assert (ours > read["text alone: nearest label meaning"]).all()
    assert (ours > read["p_f released, m = 10"]).all()


def test_web_like_text_does_not_hurt(data, vectors):
    spoiled = web_like(vectors.text, seed=0)
    assert (~spoiled.any(axis=1)).mean() == pytest.approx(0.4, abs=0.01)
    blind = right(data, blind_rows(data, vectors))
    read = right(data, text_rows(data, vectors, spoiled))
    ours = read["vsgraph default, p_c out of fold"]
    assert (ours > blind["web labels"] + 0.02).all()
    assert (ours > read["p_f released, m = 10"]).all()
    assert (ours > read["p_f of it x softmax(cos / 0.05)"] + 0.02).all()


def test_the_command_prints_every_part(vectors, tmp_path, monkeypatch):
    monkeypatch.setattr("coco_web.load_vectors", lambda _: vectors)
    page = tmp_path / "page.md"
    done = CliRunner().invoke(
        main, [str(FOLDER), "--every", str(EVERY), "--seeds", "1", "--write", str(page)]
    )
    assert done.exit_code == 0, done.output
    for part in ("Without text", "captions as they are", "web-like text, seed 0", "Multi-label"):
        assert part in page.read_text()


def test_the_linear_probe_stands_in_for_a_classifier(data, vectors):
    probe = vsgraph.linear_probe(vectors.features, data.web_labels, n_classes=len(data.class_names))
    given = (vectors.features, vectors.text, vectors.meaning, data.web_labels)
    without, ours, theirs = (
        np.array(data.right(vsgraph.correct(*given, cnn).final_probs.argmax(axis=1)))
        for cnn in (None, probe, vectors.cnn_out_of_fold)
    )
    assert (ours >= without - 0.01).all()
    assert (ours >= theirs - 0.01).all()
