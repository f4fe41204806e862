"""The experiments on real photos and captions; skipped if COCO-Web is not there."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import head_cases
import vsgraph
from coco_web_data import read_coco_web
from heads import Split, judge_labels
from label_digests import digests
from lessons import (
    CNN,
    OURS,
    WEB,
    blind_lessons,
    learnt_from,
    simple_lessons,
    simple_text_lessons,
    text_lessons,
)
from results import main
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
def right(vectors):
    """Right labels of some methods, by kind of text: in set, and of ambiguous queries."""
    found = {}
    for kind in (CAPTIONS, WEB_LIKE):
        trial = draw(vectors, seed=0, kind=kind)
        made = blind_lessons(trial) | simple_lessons(trial) | simple_text_lessons(trial)
        for name, lesson in (made | text_lessons(trial)).items():
            judged = judge_labels(lesson, trial)
            found[kind, name] = np.array([judged["in set"], judged["ambiguous"]])
            assert 0 < judged["left"] <= 1
    return found


OTHERS = (
    WEB, CNN, "cleanlab, flagged labels replaced", "SimiFeat-style, flagged labels replaced",
    "self-learning by prototypes", "label propagation from our anchors", "p_f, of the paper",
)  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_the_default_has_more_right_labels(right, name):
    for kind in (CAPTIONS, WEB_LIKE):
        assert (right[kind, OURS] > right[kind, name] + 0.02).all(), kind


def test_the_default_is_not_behind_the_texts(right):
    text = "text alone: nearest label meaning"
    assert (right[CAPTIONS, OURS] > right[CAPTIONS, text] - 0.01).all()


def test_every_case_is_learned_and_judged(vectors):
    learn, held = learnt_from(vectors)
    assert all(int(vectors.data.images[row].stem) % 5 == 0 for row in held)
    rest = np.setdiff1d(np.arange(len(vectors.features)), held)
    features = {"lite0": (vectors.features[rest], vectors.features[held])}
    split = Split("sample", learn, vectors.data.take(held), features)
    few, many = (head_cases.flipped(split, 0, share) for share in (0.2, 0.8))
    assert few[WEB]["top_1"] > many[WEB]["top_1"] + 0.1
    assert many[OURS]["top_1"] > many[WEB]["top_1"] + 0.1  # the captions still tell
    known = head_cases.unknown_classes(split, 0)
    assert all(0 <= value <= 1 for found in known.values() for value in found.values())
    several = head_cases.several(split, 0)
    assert several[OURS]["map"] > several[WEB]["map"]


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


def test_the_same_labels_have_the_same_digests(vectors):
    first, again, other = (digests(draw(vectors, seed=seed, kind=CAPTIONS)) for seed in (0, 0, 1))
    assert first == again
    assert not set(first) & set(other)


def test_the_command_fills_the_page_and_finds_results_done(vectors, tmp_path, monkeypatch):
    monkeypatch.setattr("results.load_vectors", lambda _: vectors)
    page = tmp_path / "page.md"
    marks = ("short table", f"doubted labels, {FOLDER.name}, {WEB_LIKE}")
    page.write_text(
        "kept\n" + "".join(f"<!-- {m} -->\nstale\n<!-- end of {m} -->\n" for m in marks)
    )
    options = [str(FOLDER), "--seeds", "1", "--write", str(page), "--only", "doubted_labels"]
    done = CliRunner().invoke(main, options)
    assert done.exit_code == 0, done.output
    first = page.read_text()
    assert first.startswith("kept\n<!-- short table -->\n| crawl, text |")
    assert "stale" not in first
    monkeypatch.setattr("doubted_labels.run", lambda _: pytest.fail("was done before"))
    assert CliRunner().invoke(main, options).exit_code == 0
    assert page.read_text() == first


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
