"""Grids of settings: the same as one by one, shared stages made once, tables and pictures."""

import csv
import dataclasses
import io
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import vsgraph
from two_senses import QUICK, make_two_senses
from vsgraph import InputError, Settings, SweepTable, VSGraphWarning
from vsgraph.common.plot import draw_lines
from vsgraph.judge.sweep import check_measure
from vsgraph.method import algorithm

PAPER = Settings(text_evidence=False, anchors_per_class=8, form="printed", epochs=50, solver="adam")


@pytest.fixture(scope="module")
def cnn():
    random = np.random.default_rng(0)
    return random.dirichlet(np.ones(4), size=240)


def sweep(crawl, cnn=None, **arguments):
    return vsgraph.sweep(
        crawl.features, crawl.text, crawl.meaning, crawl.web_labels, cnn, **arguments
    )


def check_rows(crawl, table, cnn=None):
    for row in table.rows:
        chosen = dataclasses.replace(table.settings, **{n: row[n] for n in table.parameters})
        alone = crawl.correct(chosen, cnn_probs=cnn)
        judged = vsgraph.evaluate(alone, crawl.truth)
        assert row["right"] == judged.accuracy["all"]["after"], chosen
        assert row["reject"] == alone.counts["reject"] / len(alone)
        assert row["confidence"] == pytest.approx(float(alone.confidence.mean()), abs=1e-5)


@pytest.mark.slow
def test_each_row_is_what_a_correction_by_itself_gives(two_senses):
    grid = {"m": [4, 8], "k": [3, 5], "self_weight": [0.0, 1.0]}
    table = sweep(two_senses, grid=grid, settings=QUICK, truth=two_senses.truth)
    assert len(table.rows) == 8
    assert list(table.parameters) == ["anchors_per_class", "n_neighbors", "self_weight"]
    check_rows(two_senses, table)


def test_the_papers_fusion_is_swept_too(two_senses, cnn):
    grid = {"lambda": [0.0, 0.5], "tau_f": [0.3, 0.7, 1.0]}
    table = sweep(two_senses, cnn, grid=grid, settings=PAPER, truth=two_senses.truth)
    check_rows(two_senses, table, cnn)
    assert len({row["right"] for row in table.rows}) > 1


@pytest.mark.slow
def test_every_other_kind_of_setting_gives_the_same_as_alone(two_senses, cnn):
    grid = {
        "text_evidence": [True, False],
        "rounds": [1, 2],
        "confidence_threshold": [0.5, 0.9],
        "reject_threshold": [0.0, 0.9],
    }
    table = sweep(two_senses, cnn, grid=grid, settings=QUICK, truth=two_senses.truth)
    check_rows(two_senses, table, cnn)


def test_stages_in_common_are_made_once(two_senses, cnn, monkeypatch):
    made = []

    def counted(stage):
        work = lambda *given: made.append(stage.name) or stage.work(*given)  # noqa: E731
        return dataclasses.replace(stage, work=work)

    monkeypatch.setattr(algorithm, "STAGE", {s.name: counted(s) for s in algorithm.STAGES})
    grid = {"lambda": [0, 0.5, 1], "m": [4, 8], "k": [3, 5], "tau_f": [0.3, 0.7]}
    sweep(two_senses, cnn, grid=grid, settings=PAPER)
    counts = {stage.name: made.count(stage.name) for stage in algorithm.STAGES}
    assert counts == {
        "graph": 2, "trust": 1, "smoothing": 2, "anchors": 4, "network": 4, "evidence": 4,
        "doubt": 4, "scores": 24, "decisions": 24,
    }  # fmt: skip


def test_thresholds_of_decisions_retrain_nothing(two_senses, cnn, monkeypatch):
    made = []
    train = algorithm.train_in_rounds
    monkeypatch.setattr(
        algorithm, "train_in_rounds", lambda *a, **k: made.append(1) or train(*a, **k)
    )
    sweep(two_senses, cnn, grid={"relabel_threshold": [0.3, 0.5, 0.9]}, settings=QUICK)
    assert len(made) == 1


def test_every_setting_is_read_by_a_stage():
    read = {name for stage in algorithm.STAGES for name in stage.settings}
    assert read == {field.name for field in dataclasses.fields(Settings)}


def test_a_graph_of_ones_own_is_swept_over(two_senses):
    graph = vsgraph.visual_graph(two_senses.features, n_neighbors=2)
    own = sweep(two_senses, grid={"k": [5]}, settings=QUICK, graph=graph)
    same = two_senses.correct(QUICK, graph=graph)
    assert own.rows[0]["confidence"] == pytest.approx(float(same.confidence.mean()))


def test_several_labels_an_image_are_measured_by_f1_and_map(two_senses):
    web, truth = (np.eye(4, dtype=bool)[x] for x in (two_senses.web_labels, two_senses.truth))
    several = dataclasses.replace(two_senses, web_labels=web)
    table = sweep(several, grid={"drop_threshold": [0.05, 0.5]}, settings=QUICK, truth=truth)
    assert {"c_f1", "o_f1", "map"} <= set(table.measures)


def test_without_truth_decisions_are_counted(two_senses):
    table = sweep(two_senses, grid={"k": (3,)}, settings=QUICK)
    assert table.measures == [
        *("keep", "relabel", "reject", "left", "confidence", "estimated", "seconds")
    ]
    row = table.rows[0]
    assert row["keep"] + row["relabel"] + row["reject"] == pytest.approx(1)


def test_lambda_without_eq_8_is_said_to_do_nothing(two_senses, cnn):
    with pytest.warns(VSGraphWarning, match="no effect without Eq. 8: gnn_weight"):
        sweep(two_senses, cnn, grid={"lambda": [0.5]}, settings=QUICK)
    with pytest.warns(VSGraphWarning, match="no effect without Eq. 8: gnn_weight"):
        sweep(two_senses, grid={"lambda": [0.5]}, settings=PAPER)


@pytest.fixture(scope="module")
def table():
    rows = [
        {"n_neighbors": k, "self_weight": w, "right": 0.8 + k / 100 - w / 50, "seconds": 1.0}
        for k in (3, 5, 8)
        for w in (0.0, 1.0)
    ]
    return SweepTable({"n_neighbors": (3, 5, 8), "self_weight": (0.0, 1.0)}, rows, Settings())


def test_the_table_becomes_csv_markdown_and_json(table):
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert float(read[-1]["right"]) == table.rows[-1]["right"]
    assert "| 3 | 0.0 | 0.83 | 1 |" in str(table)
    values = json.loads(table.to_json())
    assert values["rows"][0]["right"] == pytest.approx(0.83)
    assert values["settings"]["n_neighbors"] == 5


def test_the_best_row_is_found_and_nan_is_not_the_best(table):
    assert table.best("right")["n_neighbors"] == 8
    holes = [row | {"right": np.nan if row["n_neighbors"] == 8 else 0.5} for row in table.rows]
    assert dataclasses.replace(table, rows=holes).best("right")["n_neighbors"] == 3
    nothing = dataclasses.replace(table, rows=[row | {"right": np.nan} for row in table.rows])
    with pytest.raises(InputError, match="measure 'right' has no value"):
        nothing.best("right")
    with pytest.raises(InputError, match="measure must be one of right, seconds"):
        table.best("accuracy")


def test_the_picture_has_a_line_for_each_value_of_the_second_parameter(table):
    picture = ET.fromstring(table.to_svg())
    tag = "{http://www.w3.org/2000/svg}"
    texts = ["".join(t.itertext()) for t in picture.iter(f"{tag}text")]
    assert {"self_weight = 0.0", "self_weight = 1.0", "n_neighbors", "right"} <= set(texts)
    lines = [line.get("points").split() for line in picture.iter(f"{tag}polyline")]
    assert sorted(map(len, lines)) == [2, 2, 3, 3]  # the legend has two ends each
    highest = min(float(p.split(",")[1]) for line in lines if len(line) == 3 for p in line)
    assert highest >= 0


def test_a_third_parameter_gets_panels_and_one_alone_a_line(two_senses):
    rows = [
        {"form": f, "rounds": r, "gnn_layers": n, "keep": 0.1 * r * n}
        for f in ("released", "printed")
        for r in (1, 2)
        for n in (1, 2)
    ]
    names = {"form": ("released", "printed"), "rounds": (1, 2), "gnn_layers": (1, 2)}
    drawn = SweepTable(names, rows, Settings()).to_svg()
    assert drawn.count("<polyline") == 4 + 2
    assert "gnn_layers = 2" in drawn
    assert ">released<" in drawn
    alone = SweepTable({"rounds": (1,)}, [{"rounds": 1, "keep": 0.5}], Settings()).to_svg()
    assert alone.count("<polyline") == 1


def test_names_cannot_break_the_picture():
    drawn = draw_lines(
        {"<b>": {"a & b": [("<i>", 0.5), ("x", float("nan"))]}},
        title='"<script>', x_name="<x>", y_name="&",
    )  # fmt: skip
    ET.fromstring(drawn)
    assert "<script>" not in drawn


def test_what_cannot_be_measured_is_a_dash_and_null(two_senses):
    known = np.arange(len(two_senses.truth)) == 0
    table = sweep(two_senses, grid={"k": [3]}, settings=QUICK, truth=two_senses.truth, known=known)

    assert "nan" not in table.to_markdown()
    assert "| - |" in table.to_markdown()
    assert "NaN" not in table.to_json()


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_measures_are_checked_before_a_sweep(two_senses, judged, several):
    shape = np.eye(4, dtype=bool) if several else np.arange(4)
    crawl = dataclasses.replace(two_senses, web_labels=shape[two_senses.web_labels])
    truth = shape[two_senses.truth] if judged else None
    table = sweep(crawl, grid={"k": [3]}, settings=QUICK, truth=truth)

    for measure in table.measures:
        check_measure(measure, judged=judged, several=several)
    with pytest.raises(InputError, match=r"measure must be one of keep, .*got 'bogus'") as caught:
        check_measure("bogus", judged=judged, several=several)
    assert all(measure in str(caught.value) for measure in table.measures)


def test_nothing_cannot_be_drawn():
    with pytest.raises(InputError, match="at least one point"):
        draw_lines({"": {"a": [(1, float("nan"))]}}, title="", x_name="", y_name="")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"grid": {}}, "grid must name at least one setting"),
        ({"grid": {"kk": [1]}}, "unknown setting 'kk'; known: "),
        (
            {"grid": {"k": [1], "n_neighbors": [2]}},
            "n_neighbors is given twice, by its name",
        ),
        ({"grid": {"k": 3}}, "grid must give n_neighbors a list of values, got 3"),
        ({"grid": {"form": "printed"}}, "grid must give form a list of values"),
        ({"grid": {"k": []}}, "grid must give n_neighbors at least one value"),
        ({"grid": {"k": [0]}}, "n_neighbors must be at least 1"),
        ({"grid": {"k": [3]}, "settings": {"k": 3}}, "settings must be a vsgraph.Settings"),
        ({"grid": {"k": [3]}, "known": [True]}, "known must have shape"),
    ],
)
def test_bad_input_gets_one_clear_line(arguments, said):
    with pytest.raises(InputError, match=said) as caught:
        sweep(make_two_senses(n=40), **arguments)
    assert "\n" not in str(caught.value)
