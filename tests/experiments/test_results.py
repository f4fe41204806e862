"""The machinery of the experiments: results kept, tables put in place, baselines of our own."""

import types

import numpy as np
import pytest

import keeping
from pages import put
from simifeat import share_right, simifeat
from trials import spread


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = types.ModuleType("experiment")
    module.__file__ = str(tmp_path / "experiment.py")
    (tmp_path / "experiment.py").write_text("X = 1\n")
    return module


def test_a_result_is_made_once_and_again_when_code_or_settings_change(experiment, tmp_path):
    made = []

    def make():
        made.append(1)
        return {"right": np.float32(0.5)}

    first = keeping.keep(experiment, {"seed": 0}, make)
    assert first["found"] == {"right": 0.5}
    assert keeping.keep(experiment, {"seed": 0}, make) == first
    assert len(made) == 1
    keeping.keep(experiment, {"seed": 1}, make)
    assert len(made) == 2
    (tmp_path / "experiment.py").write_text('"""Said."""\n# and said again\nX = 1\n')
    keeping.keep(experiment, {"seed": 0}, make)
    assert len(made) == 2
    (tmp_path / "experiment.py").write_text("X = 2\n")
    keeping.keep(experiment, {"seed": 0}, make)
    assert len(made) == 3


@pytest.mark.slow
def test_code_that_an_experiment_imports_counts(experiment, tmp_path):
    before = keeping.code_of(experiment)
    (tmp_path / "experiment.py").write_text("X = 1\nimport vsgraph.method.open_set\n")
    package = keeping.code_of(experiment)
    (tmp_path / "experiment.py").write_text("X = 1\nfrom trials import spread\n")
    assert len({before, package, keeping.code_of(experiment)}) == 3
    found = {path.name for path in keeping._imported(keeping.HERE / "trials.py")}
    assert {"__init__.py", "baselines.py", "coco_web_data.py", "encode.py"} <= found


def test_a_failed_experiment_leaves_nothing(experiment, tmp_path):
    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        keeping.keep(experiment, {}, fail)
    assert not list(tmp_path.rglob("*.json"))


def test_spread_is_mean_and_deviation_or_nothing():
    assert spread([0.5, 0.6, 0.7]) == "60.0 ± 10.0"
    assert spread([0.5]) == "50.0"
    assert spread([0.5, None]) == "-"


def test_put_replaces_what_stands_between_marks_only():
    page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    assert put(page, "x", ["new"]) == "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n"
    assert put(page, "y", ["new"]) == page


def test_simifeat_finds_how_often_labels_are_right():
    random = np.random.default_rng(0)
    confusion = np.array([[0.9, 0.1, 0.0], [0.0, 0.7, 0.3], [0.2, 0.0, 0.8]])
    share = np.array([0.5, 0.3, 0.2])
    shown = random.choice(3, 50_000, p=share)
    triples = (random.random((50_000, 3, 1)) > confusion.cumsum(axis=1)[shown][:, None]).sum(axis=2)
    wanted = np.diag(confusion) * share / (share @ confusion)
    assert share_right(triples, 3) == pytest.approx(wanted, abs=0.02)


def test_simifeat_flags_what_neighbors_do_not_support():
    random = np.random.default_rng(0)
    shown = np.repeat([0, 1], 100)
    features = np.eye(2)[shown] + 0.05 * random.random((200, 2))
    labels = shown.copy()
    labels[:10] = 1
    found = simifeat(features, labels, n_classes=2)
    assert found.flagged[:10].mean() >= 0.7
    assert found.flagged[10:].mean() < 0.05
    assert (found.vote.argmax(axis=1) == shown).mean() > 0.98
