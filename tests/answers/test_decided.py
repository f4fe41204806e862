"""Answers in files of other programs."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from vsgraph.answers.decided import Said, read_decided
from vsgraph.errors import InputError

CLASSES = ("owl", "bat", "great\nauk")


def read(path, **options):
    return [(said.image, said.new) for said in read_decided(path, CLASSES, **options).said]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_of_images_and_labels(tmp_path):
    path = write(
        tmp_path / "t.csv", "image,label\na.jpg,bat\nb.jpg,\nc.jpg,None\nd.jpg,great auk\n"
    )
    assert read(path) == [
        ("a.jpg", ("bat",)), ("b.jpg", ()), ("c.jpg", ()), ("d.jpg", ("great\nauk",)),
    ]  # fmt: skip
    assert read_decided(path, CLASSES).said[0] == Said("a.jpg", ("bat",), f"{path}, row 1")
    assert not read_decided(path, CLASSES).is_whole


def test_a_column_of_decisions(tmp_path):
    rows = "a,keep,\nb,keep,owl\nc,Reject,\nd,relabel,bat\ne,,\nf,,owl\ng,reject,none\n"
    path = write(tmp_path / "t.csv", "path,decision,label\n" + rows)
    assert read(path) == [
        ("a", None), ("b", ("owl",)), ("c", ()), ("d", ("bat",)), ("f", ("owl",)), ("g", ()),
    ]  # fmt: skip
    only = write(tmp_path / "u.csv", "path,decision\na,keep\nb,reject\n")
    assert read(only) == [("a", None), ("b", ())]


def test_several_labels_in_cells_and_lists(tmp_path):
    path = write(tmp_path / "t.csv", "image,label\na,owl|bat\n")
    assert read(path) == [("a", ("owl", "bat"))]
    path = write(tmp_path / "u.csv", "image;label\na;owl, bat\n")
    assert read(path, label_separator=",") == [("a", ("owl", "bat"))]
    table = pa.table({"image": ["a", "b"], "labels": [["bat", "owl"], []]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet") == [("a", ("bat", "owl")), ("b", ())]
    lines = write(tmp_path / "t.jsonl", '{"image": "a", "label": "owl"}\n')
    assert read(lines) == [("a", ("owl",))]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("image,label\na,owl\nb,bats\n", r"t.csv, row 2: 'bats' is no class.*is 'bat' meant\?"),
        ("image,label\na,zebra\n", r"row 1: 'zebra' is no class.*write 'none' for none of the"),
        ("image,decision\na,drop\n", r"row 1: 'drop' is no decision; use keep, relabel, reject"),
        ("image,decision,label\na,reject,owl\n", r"row 1: says reject, but names 'owl'; clear one"),
        ("image,decision,label\na,relabel,\n", r"row 1: says relabel, but names no class"),
        ("image,label\n,owl\n", r"row 1: no image"),
        ("image,label\na,owl,bat\n", r"1 x broken line: .*t.csv, line 2"),
        ("image,name\na,owl\n", r"t.csv needs columns image and label; it has image, name"),
        ("", r"t.csv is empty"),
    ],
)
def test_what_is_not_understood_is_told_with_its_row(tmp_path, text, told):
    with pytest.raises(InputError, match=told):
        read(write(tmp_path / "t.csv", text))


def choice(*chosen, **more):
    return {"result": [{"type": "choices", "value": {"choices": list(chosen)}}], **more}


def test_annotations_of_label_studio_and_not_its_predictions(tmp_path):
    tasks = [
        {"data": {"path": "a.jpg"}, "annotations": [choice("owl"), choice("bat")]},
        {"data": {"path": "b.jpg"}, "annotations": [choice("_rejected")]},
        {"data": {"path": "c.jpg"}, "annotations": [], "predictions": [choice("owl")]},
        {"data": {"path": "d.jpg"}, "annotations": [choice("owl", was_cancelled=True)]},
        {"data": {"path": "e.jpg"}, "annotations": [{"result": []}, choice("great auk")]},
    ]
    path = write(tmp_path / "project.json", json.dumps(tasks))
    expected = [("a.jpg", ("bat",)), ("b.jpg", ()), ("e.jpg", ("great\nauk",))]
    assert read(path) == expected
    small = [{"path": "a.jpg", "label": "bat"}, {"path": "b.jpg", "label": {"choices": ["owl"]}},
             {"path": "c.jpg"}]  # fmt: skip
    assert read(write(tmp_path / "min.json", json.dumps(small))) == [
        ("a.jpg", ("bat",)), ("b.jpg", ("owl",)),
    ]  # fmt: skip


def test_labels_of_fiftyone_may_be_names(tmp_path):
    labels = {"x": "bat", "y": None}  # as FiftyOne itself writes them if a dataset has no classes
    write(tmp_path / "labels.json", json.dumps({"classes": None, "labels": labels}))
    write(tmp_path / "data.json", json.dumps({key: f"/crawl/{key}.jpg" for key in "xy"}))
    assert read(tmp_path) == [("/crawl/x.jpg", ("bat",)), ("/crawl/y.jpg", ())]
    (tmp_path / "data.json").unlink()
    with pytest.raises(InputError, match="no such image; export from FiftyOne with data_path"):
        read(tmp_path)


def test_labels_of_fiftyone(tmp_path):
    labels = {"x": {"label": 1, "confidence": 0.5}, "y": None, "z": [{"label": 0}, {"label": 1}],
              "w": 0}  # fmt: skip
    write(tmp_path / "labels.json", json.dumps({"classes": ["owl", "bat"], "labels": labels}))
    places = {key: f"/crawl/{key}.jpg" for key in "xyz"}
    write(tmp_path / "data.json", json.dumps(places))
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "w.jpg", "")
    assert read(tmp_path) == [
        ("/crawl/x.jpg", ("bat",)), ("/crawl/y.jpg", ()), ("/crawl/z.jpg", ("owl", "bat")),
        (str(tmp_path / "data" / "w.jpg"), ("owl",)),
    ]  # fmt: skip
    assert read_decided(tmp_path, CLASSES).is_whole


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ('{"labels": ', "is not complete JSON"),
        ("[1]", "is neither an export of Label Studio"),
        ('{"a": 1}', "is neither an export of Label Studio"),
        ('{"classes": ["owl"], "labels": {"k": 7}}', "'k': its class number is not in the list"),
        ('{"classes": ["owl"], "labels": {"k": -1}}', "'k': its class number is not in the list"),
        ('{"classes": ["owl"], "labels": {"k": 0}}', "'k': data.json and the folder data have no"),
        ('{"classes": 7, "labels": {"k": 0}}', "its classes are no list"),
        ('[{"data": {}, "annotations": [{"result": [{"value": {"choices": ["owl"]}}]}]}]',
         "task 1: has no path of an image"),
        ('[{"data": 7, "annotations": [{"result": [{"value": {"choices": ["owl"]}}]}]}]',
         "task 1: has no path of an image"),
        ('[{"path": "a", "label": {"choices": 5}}]', "task 1: its choices are no list"),
        ('[{"path": "a", "label": 5}]', "task 1: its choices are no list"),
        ('[{"path": "a", "annotations": [{"result": 7}, {"result": [{"value": 7}]}]}]', None),
    ],
)  # fmt: skip
def test_json_of_something_else_is_one_clear_line(tmp_path, values, told):
    path = write(tmp_path / "labels.json", values)
    if told is None:
        assert read(path) == []
        return
    with pytest.raises(InputError, match=told):
        read(path)
