"""The machinery of the experiments: results kept, tables put in place, baselines of our own."""

import types
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import keeping
from bars import draw_bars
from pages import publish, put
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


def test_tables_and_figures_are_published_where_the_page_names_them(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- x -->\nold\n<!-- end of x -->\n![](images/a.svg)\n")
    (tmp_path / "images").mkdir()
    publish({"x": ["new"], "y": ["other"]}, {"a": "<svg/>", "b": "<svg/>"}, page)
    assert page.read_text().startswith("<!-- x -->\nnew\n")
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["a.svg"]
    publish({"x": ["new"]}, {}, None)
    assert "## x\n\nnew" in capsys.readouterr().out


def test_bars_show_values_and_intervals():
    panels = {
        "A": {"web": (70.0, 1.0), "ours": (80.0, 2.0)},
        "B <": {"web": (60, 0), "ours": (65, 1)},
    }
    drawn = ET.fromstring(draw_bars(panels, title="Right", strong="ours"))
    bars = [element for element in drawn.iter() if element.tag.endswith("rect")]
    widths = [float(bar.get("width")) for bar in bars]
    assert len(bars) == 4
    assert widths[1] - widths[0] == pytest.approx(2 * (widths[3] - widths[2]), abs=0.2)
    assert "80.0" in "".join(drawn.itertext())


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
