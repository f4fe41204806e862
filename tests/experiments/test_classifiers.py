"""Whole networks: which are trained, which are found done, and a table of those that are there."""

import numpy as np
import pytest

import classifiers
import soft_forms
from coco_web_data import CocoWeb
from trials import CAPTIONS, Trial
from vsgraph.training import Recipe

WEB_LABELS = np.array([0, 1, 1, 0])
SHOWN = np.array([[1, 0], [0, 1], [1, 0], [0, 0]], bool)


@pytest.fixture
def trial(tmp_path):
    images = []
    for number in range(4):
        path = tmp_path / "images" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"no picture is read here")
        images.append(path)
    data = CocoWeb(
        images, ["text"] * 4, WEB_LABELS, SHOWN, ["bear", "board"], ["n1", "n2"], SHOWN,
        np.zeros(2, bool),
    )  # fmt: skip
    vectors = np.eye(4, dtype=np.float32)
    return Trial(0, CAPTIONS, np.arange(4), data, data, vectors, vectors, vectors[:2],
                 np.array(data.texts, object))  # fmt: skip


def experiment(trial, out, *, seed=0):
    recipe = Recipe(epochs=2, random_state=seed)
    return classifiers.Experiment(trial, trial.data, recipe, 1, 64, out / str(seed))


def test_a_network_is_trained_once_and_again_when_its_labels_change(trial, tmp_path, monkeypatch):
    trained = []

    def train(self, method, labels):
        trained.append((method, labels.digest()))
        self.out.mkdir(exist_ok=True)
        return self.out / method

    judged = {"top_1": 0.5, "ambiguous": 0.25, "top_5": 1.0}
    monkeypatch.setattr(classifiers.Experiment, "train", train)
    monkeypatch.setattr(classifiers.Experiment, "judge", lambda *_: judged)
    one = experiment(trial, tmp_path)
    assert one.run("web")["top_1"] == 0.5
    one.run("web")
    assert len(trained) == 1
    other = Trial(**{**vars(trial), "data": trial.data.take(np.array([1, 0, 2, 3]))})
    experiment(other, tmp_path).run("web")
    assert len({digest for _, digest in trained}) == 2


def test_the_table_has_the_networks_that_are_there_and_tells_of_how_many_seeds(trial, tmp_path):
    for seed, (method, top) in enumerate([("web", 0.5), ("web", 0.7)]):
        (tmp_path / str(seed)).mkdir()
        found = f'{{"top_1": {top}, "ambiguous": 0.5, "top_5": 1, "commit": "c{seed}"}}'
        (tmp_path / str(seed) / f"{method}.json").write_text(found)
    (tmp_path / "0" / "ours.json").write_text(found)
    lines = classifiers.table(experiment(trial, tmp_path))
    assert [line.split(" | ")[1] for line in lines[2:4]] == ["2", "1"]
    assert "60.0 ± 14.1" in lines[2]
    assert "c0, c1" in lines[-1]


def test_forms_share_a_photo_among_its_classes(trial):
    probs = np.array([[0.9, 0.9], [0.8, 0.4], [0.0, 0.5], [0.2, 0.1]])
    found = soft_forms.forms(trial, probs)
    for table, _ in found.values():
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found["**squares**"][0][:2], [[0.5, 0.5], [0.8, 0.2]], rtol=1e-5)
    np.testing.assert_allclose(found["odds"][0][1], [6 / 7, 1 / 7], rtol=1e-5)


def test_labels_are_mended_where_a_row_says(trial):
    probs = np.array([[0.0, 0.9], [0.0, 0.8], [0.3, 0.3], [0.2, 0.0]])
    found = {name: table.tolist() for name, (table, _) in soft_forms.mended(trial, probs).items()}
    ours = [[0, 1], [0, 1], [0.5, 0.5], [1, 0]]
    assert found["**ours**"] == ours
    assert found["without photos of none of the classes"] == [*ours[:3], [0, 0]]
    wrong = "without photos whose likeliest label is wrong"
    assert found[wrong] == [[0, 0], ours[1], ours[2], [0, 0]]
    assert found["those photos with their right labels"] == [[1, 0], ours[1], ours[2], [0, 0]]
    assert found["right web labels never changed"] == [[1, 0], [0, 1], *ours[2:]]
    assert found["the truth"] == [[1, 0], [0, 1], [1, 0], [0, 0]]
