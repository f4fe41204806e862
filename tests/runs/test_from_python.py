"""Runs started and read from Python: tables in memory, single options, what a run gives back."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from small_crawl import Tiny, write_small_crawl

import vsgraph
from vsgraph.errors import InputError
from vsgraph.runs import Choices
from vsgraph.runs.request import Request
from vsgraph.runs.table import as_arrow

OPTIONS = {"text_encoder": "lsa", "probe": False, "with_report": False, "n_neighbors": 3, "m": 2}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_small_crawl(tmp_path_factory.mktemp("small"))


def rows_of(table):
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    return [{**row, "url": f"http://x/{i}"} for i, row in enumerate(rows)]


def test_single_options_are_taken_by_name(table, tmp_path):
    meanings = str(table.parent / "meanings.csv")
    made = vsgraph.run(table, tmp_path / "run", meanings=meanings, purity=0.9, **OPTIONS)
    assert str(made.choices.meanings) == meanings
    assert (made.settings.purity, made.settings.anchors_per_class) == (0.9, 2)
    with pytest.raises(InputError, match="unknown option 'meaning'; did you mean meanings"):
        vsgraph.run(table, tmp_path / "run", meaning="m.csv")


def test_single_options_change_whole_ones():
    whole = {"settings": vsgraph.Settings(purity=0.5), "choices": Choices(probe=False)}
    request = Request.of("x", {**whole, "k": 7, "runtime": "torch", "images": "here"})
    assert (request.settings.n_neighbors, request.settings.purity) == (7, 0.5)
    assert (request.choices.runtime, request.choices.probe) == ("torch", False)
    assert request.reading == {"images": "here"}


def test_paths_may_be_text(tmp_path):
    assert Choices(meanings=str(tmp_path / "m.csv")).meanings == tmp_path / "m.csv"
    with pytest.raises(InputError, match="meanings must be the path of a file, got int"):
        Choices(meanings=3)


@pytest.mark.parametrize("kind", ["rows", "columns", "arrow", "pandas", "polars", "datasets"])
def test_a_table_in_memory_is_a_crawl(table, tmp_path, monkeypatch, kind):
    rows = rows_of(table)
    arrow = pa.Table.from_pylist(rows)
    pandas, polars, datasets = map(pytest.importorskip, ("pandas", "polars", "datasets"))
    data = {
        "rows": lambda: rows,
        "columns": arrow.to_pydict,
        "arrow": lambda: arrow,
        "pandas": lambda: pandas.DataFrame(rows).iloc[::1],
        "polars": lambda: polars.DataFrame(rows),
        "datasets": lambda: datasets.Dataset.from_list(rows),
    }[kind]()
    monkeypatch.chdir(table.parent)
    made = vsgraph.run(data, tmp_path / "run", meanings="meanings.csv", **OPTIONS)
    monkeypatch.chdir(tmp_path)
    assert made.crawl.table["image"].to_pylist() == [row["file_name"] for row in rows]
    assert made.crawl.other_columns == ("url",)
    assert np.asarray(made.features).any(axis=1).all()
    again = vsgraph.run(None, tmp_path / "run", with_report=False)
    assert again.keys == made.keys


def test_a_dataset_of_hugging_face_has_its_class_names_and_pictures(table, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = rows_of(table)
    names = sorted({row["query"] for row in rows})
    columns = {
        "image": [str(table.parent / row["file_name"]) for row in rows],
        "label": [names.index(row["query"]) for row in rows],
        "title": [row["title"] for row in rows],
    }
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=names),
                "title": datasets.Value("string")}  # fmt: skip
    data = datasets.Dataset.from_dict(columns, datasets.Features(features)).select(range(11))
    options = OPTIONS | {"meanings": table.parent / "meanings.csv"}
    made = vsgraph.run(data, tmp_path / "run", **options)
    assert len(made.crawl) == 11
    assert made.crawl.class_names == tuple(names)
    assert np.asarray(made.features).any(axis=1).all()


def test_the_same_table_again_does_nothing_again_and_another_one_does(table, tmp_path):
    rows = [{**row, "file_name": str(table.parent / row["file_name"])} for row in rows_of(table)]
    options = OPTIONS | {"meanings": table.parent / "meanings.csv"}
    first = vsgraph.run(rows, tmp_path / "run", **options)
    lines = []
    vsgraph.run(rows, tmp_path / "run", tell=lines.append, with_report=False)
    assert all(line.endswith("done before") for line in lines[1:])
    other = vsgraph.run(rows[:-1], tmp_path / "run", with_report=False)
    assert (len(first.correction), len(other.correction)) == (12, 11)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "crawl must be a path or a table .* got int"),
        ([1, 2], "crawl must be a path or a table .* got list"),
        ({"a": [1], "b": [1, 2]}, "the table cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data, message):
    with pytest.raises(InputError, match=message):
        as_arrow(data)


def test_the_table_of_a_run_has_paths_and_columns(table, tmp_path):
    options = OPTIONS | {"meanings": table.parent / "meanings.csv", "images": table.parent}
    made = vsgraph.run(rows_of(table), tmp_path / "run", **options)
    frame = made.to_pandas()
    assert frame["image"].tolist() == made.crawl.table["image"].to_pylist()
    assert frame["url"][3] == "http://x/3"
    assert frame["final_label"].notna().sum() == 12 - made.counts["reject"]
    assert len(repr(made)) < 200
    truth, known = made.read_truth()
    assert truth.shape == (12, 2)
    assert known.all()


def test_labels_changed_without_their_decisions_are_not_exported(table, tmp_path):
    options = OPTIONS | {"meanings": table.parent / "meanings.csv"}
    made = vsgraph.run(table, tmp_path / "run", **options)
    final = made.correction.final_labels.copy()
    final[2] = 1 - made.correction.web_labels[2]
    changed = dataclasses.replace(made.correction, final_labels=final)
    kept = changed.decisions.copy()
    with pytest.raises(InputError, match="contradict each other in row"):
        vsgraph.export(made.crawl, changed, tmp_path / "out.csv", to="csv")
    kept[2] = vsgraph.Decision.RELABEL
    both = dataclasses.replace(changed, decisions=kept)
    vsgraph.export(made.crawl, both, tmp_path / "out.csv", to="csv")


def test_pictures_in_memory_are_corrected_and_exported(table, tmp_path):
    rows = rows_of(table)
    for row in rows:
        path = table.parent / row["file_name"]
        row["image"] = {"bytes": path.read_bytes(), "path": row.pop("file_name")}
    options = OPTIONS | {"meanings": table.parent / "meanings.csv"}
    made = vsgraph.run(rows, tmp_path / "run", **options)
    plain = vsgraph.run(table, tmp_path / "plain", **options)
    assert (made.features == plain.features).all()
    assert (made.correction.final_labels == plain.correction.final_labels).all()
    made.export(tmp_path / "hf", to="hf", mode="copy", rejected=True)
    again = vsgraph.read_crawl(tmp_path / "hf")
    assert list(again.read_images()) == list(plain.crawl.read_images())
