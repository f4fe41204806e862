"""The experiments on real photos and captions; skipped if COCO-Web is not there."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import vsgraph
from coco_web_data import read_coco_web
from labels_with_text import DEFAULT
from results import EXPERIMENTS, Results, main
from trials import CAPTIONS, WEB_LIKE, draw, load_vectors

FOLDER = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[3] / "shared" / "data" / "coco-web")
)
EVERY = 8

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (FOLDER / "metadata.jsonl").exists(), reason=f"COCO-Web is not in {FOLDER}"
    ),
    pytest.mark.filterwarnings("ignore::vsgraph.VSGraphWarning"),  # classes of a sample are small
]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield load_vectors(read_coco_web(FOLDER, every=EVERY))


@pytest.fixture(scope="module")
def found(vectors):
    labels = Results()
    for module in EXPERIMENTS[:2]:
        labels.add(module, vectors, seeds=1)
    return labels.found


def right(found, kind, name):
    (trial,) = found["labels_with_text" if kind else "labels_without_text"][kind or "no text"]
    return np.array([trial["labels"][name][key] for key in ("right", "ambiguous")])


def test_the_default_beats_web_labels_cleanlab_text_and_the_papers_fusion(found):
    ours = right(found, CAPTIONS, DEFAULT)
    assert (ours > right(found, None, "web labels") + 0.05).all()
    assert (ours > right(found, None, "cleanlab: flagged labels replaced by p_c's") + 0.05).all()
    assert (ours > right(found, CAPTIONS, "text alone: nearest label meaning") - 0.01).all()
    assert (ours > right(found, CAPTIONS, "p_f released, m = 10")).all()


def test_web_like_text_does_not_hurt(found):
    ours = right(found, WEB_LIKE, DEFAULT)
    assert (ours > right(found, None, "web labels") + 0.02).all()
    assert (ours > right(found, WEB_LIKE, "p_f released, m = 10")).all()
    assert (ours > right(found, WEB_LIKE, "p_f of it x softmax(cos / 0.05)") + 0.02).all()


def test_a_seed_draws_photos_and_spoils_texts(vectors):
    first, again, other = (draw(vectors, seed=seed, kind=WEB_LIKE) for seed in (0, 0, 1))
    assert (~first.text.any(axis=1)).mean() == pytest.approx(0.4, abs=0.01)
    assert (first.text == again.text).all()
    assert first.about == again.about != other.about
    whole = draw(vectors, seed=0, kind=CAPTIONS)
    assert len(whole.rows) == pytest.approx(0.9 * len(vectors.features), abs=1)
    assert (whole.features == vectors.features[whole.rows]).all()
    assert (whole.data.truth == vectors.data.truth[whole.rows]).all()
    assert (whole.data.ambiguous_queries == vectors.data.ambiguous_queries).all()


def test_the_command_fills_the_page_and_finds_results_done(vectors, found, tmp_path, monkeypatch):
    monkeypatch.setattr("results.load_vectors", lambda _: vectors)
    page = tmp_path / "page.md"
    page.write_text("kept\n<!-- short table -->\nstale\n<!-- end of short table -->\n")
    options = ["--seeds", "1", "--write", str(page)]
    for module in EXPERIMENTS[:2]:
        monkeypatch.setattr(module, "run", lambda _: pytest.fail("was done before"))
        options += ["--only", module.__name__]
    done = CliRunner().invoke(main, [str(FOLDER), *options])
    assert done.exit_code == 0, done.output
    assert page.read_text().startswith("kept\n<!-- short table -->\n| labels |")
    assert "stale" not in page.read_text()


def test_the_linear_probe_stands_in_for_a_classifier(vectors):
    trial = draw(vectors, seed=0, kind=CAPTIONS)
    without, ours, theirs = (
        np.array(trial.data.right(trial.correct(cnn=cnn).final_probs.argmax(axis=1)))
        for cnn in (None, trial.probe, trial.fitted)
    )
    assert (ours >= without - 0.01).all()
    assert (ours >= theirs - 0.01).all()
    assert trial.probe.shape == (len(trial.rows), len(trial.meaning))
    assert isinstance(trial.correct(), vsgraph.Correction)
