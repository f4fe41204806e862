"""Files of a crawl that hang, lead elsewhere, swallow others or fill the memory, one by one."""

import contextlib
import csv
import dataclasses
import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vsgraph
from made_pictures import jpeg, put
from vsgraph.common.regular import open_regular
from vsgraph.crawls import inspect_crawl, read_crawl
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers import csv_records
from vsgraph.crawls.readers.csv_records import CsvRecords
from vsgraph.encoders import pictures_digest
from vsgraph.errors import InputError
from vsgraph.exports import export
from vsgraph.method.estimate import check_room

LONG = "x" * 5000 + ".jpg"


def images_of(crawl):
    return crawl.table["image"].to_pylist()


def corrected_crawl(root, names):
    """Return a crawl of eight images with these names, and a correction of it."""
    table = pa.table({"image": names, "web_labels": pa.array([0, 1] * 4, pa.int32())})
    crawl = Crawl("a table", root, table, ("ant", "bee"))
    kinds = np.eye(2)[crawl.web_labels]
    correction = vsgraph.correct(
        kinds + np.linspace(0, 0.1, 16).reshape(8, 2), kinds, np.eye(2), crawl.web_labels,
        settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2, epochs=2),
        class_names=crawl.class_names,
    )  # fmt: skip
    return crawl, correction


# ------------------------------------------------------------------ paths and kinds of files


@pytest.mark.parametrize(
    ("to", "mode"),
    [("imagefolder", mode) for mode in ("copy", "link", "hardlink")]
    + [("hf", "copy"), ("hf", "link")],
)
def test_exports_do_not_follow_links_out_of_the_crawl(tmp_path, to, mode):
    secret = put(tmp_path / "secret.jpg", jpeg("blue"))
    root = tmp_path / "crawl"
    names = [f"{i}.jpg" for i in range(6)] + ["out.jpg", "above/secret.jpg"]
    for name in names[:6]:
        put(root / name)
    (root / "out.jpg").symlink_to(secret)
    (root / "above").symlink_to(tmp_path)
    exported = export(*corrected_crawl(root, names), tmp_path / "out", to=to, mode=mode)
    assert exported.problems.counts == {"image path leads out of the folder": 2}
    assert exported.n_images == 6
    for path in (p for p in exported.out.rglob("*") if p.is_file()):
        assert secret.read_bytes() not in path.read_bytes()


@pytest.mark.parametrize("to", ["webdataset", "coco", "fiftyone", "labelstudio"])
def test_no_export_looks_at_a_link_out_of_the_crawl(tmp_path, to):
    put(tmp_path / "secret.jpg")
    names = [f"{i}.jpg" for i in range(7)] + ["out.jpg"]
    for name in names[:7]:
        put(tmp_path / "crawl" / name)
    (tmp_path / "crawl" / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    crawl, correction = corrected_crawl(tmp_path / "crawl", names)
    exported = export(crawl, correction, tmp_path / "out", to=to)
    assert exported.n_images == 7


@pytest.mark.parametrize("to", ["imagefolder", "hf", "webdataset", "coco", "labelstudio"])
def test_odd_names_and_pipes_are_left_out_of_exports(tmp_path, to):
    root = tmp_path / "crawl"
    names = [f"{i}.jpg" for i in range(5)] + [LONG, "a\0b.jpg", "pipe.jpg"]
    for name in names[:5]:
        put(root / name)
    os.mkfifo(root / "pipe.jpg")
    exported = export(*corrected_crawl(root, names), tmp_path / "out", to=to)
    assert exported.n_images == 5
    assert exported.problems.counts.total() == 3


def test_a_pipe_among_the_pictures_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    crawl = read_crawl(put(tmp_path / "c.csv", "path,label\npipe.jpg,ant\n"))
    assert crawl.read_image(0) == b""
    inspect_crawl(crawl)
    assert crawl.problems.lines() == ["1 x picture missing or empty: pipe.jpg (not a file)"]
    with pytest.raises(OSError, match="not a file"):
        open_regular(tmp_path / "pipe.jpg")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("metadata.csv", "holds no table"),
        ("a.tar", r"holds no \.tar shards"),
        ("captions_x.json", "not a file"),
        ("info/synsets.txt", "not a file"),
        ("ConceptsList/Concepts81.txt", "does not exist"),
    ],
)
def test_a_pipe_in_the_place_of_a_list_is_not_opened(tmp_path, name, message):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    queries = put(tmp_path / "q.json", '{"ant": "ants?"}') if name == "captions_x.json" else None
    with pytest.raises(InputError, match=message):
        read_crawl(tmp_path, queries=queries)


def test_a_pipe_beside_a_picture_is_counted(tmp_path):
    put(tmp_path / "ant" / "a.jpg")
    os.mkfifo(tmp_path / "ant" / "a.txt")
    assert read_crawl(tmp_path).problems.counts == {"side file that cannot be read": 1}


def test_a_pipe_is_no_crawl(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_crawl(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["metadata.csv", "a.tar", "a.parquet"])
def test_tables_and_shards_that_are_links_out_of_the_folder_are_not_read(tmp_path, name):
    put(tmp_path / "elsewhere", "path,label\na.jpg,ant\n")
    put(tmp_path / "crawl" / "x")
    (tmp_path / "crawl" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="holds no"):
        read_crawl(tmp_path / "crawl")


@pytest.mark.parametrize("name", ["a\0b.jpg", LONG, "loop.jpg"])
def test_paths_that_cannot_be_are_missing_pictures(tmp_path, name):
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    table = pa.table({"image": [name], "web_labels": pa.array([0], pa.int32())})
    crawl = Crawl("a table", tmp_path, table, ("ant",))
    assert crawl.read_image(0) == b""
    assert len(inspect_crawl(crawl).pictures.missing) == 1
    assert pictures_digest(crawl)


def test_a_nul_in_a_path_is_told_where_it_is_read(tmp_path):
    lines = [json.dumps({"path": path, "label": "ant"}) for path in ("a\0b.jpg", "c.jpg")]
    crawl = read_crawl(put(tmp_path / "c.jsonl", "\n".join(lines)))
    assert images_of(crawl) == ["c.jpg"]
    assert crawl.problems.counts == {"image path leads out of the folder": 1}


def test_a_picture_file_without_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.crawls.crawl.MOST_BYTES", 1000)
    with (tmp_path / "huge.jpg").open("wb") as file:
        file.truncate(2**42)
    crawl = read_crawl(put(tmp_path / "c.csv", "path,label\nhuge.jpg,ant\n"))
    assert len(crawl.read_image(0)) == 1000


def test_lists_of_webvision_cannot_name_files_elsewhere(tmp_path):
    put(tmp_path / "secret.json", '[{"id": "a", "title": "secret"}]')
    root = tmp_path / "crawl"
    put(root / "info" / "synsets.txt", "n02012849 crane\n")
    lines = ["google/a.jpg 0", "/etc/passwd 0", "google/../../b.jpg 0", "\0 0", "", f"{LONG} 0"]
    put(root / "info" / "train_filelist_google.txt", "\n".join(lines))
    metas = "\n".join(["../secret.json 1"] * len(lines))
    put(root / "info" / "train_meta_list_google.txt", metas)
    crawl = read_crawl(root)
    assert images_of(crawl) == ["google/a.jpg", LONG][: len(crawl)]
    assert crawl.texts()[0] == ""
    assert crawl.problems.counts["image path leads out of the folder"] == 3


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}, [[1]], [{"b": [None]}], [], {}, 5, True])
@pytest.mark.parametrize("options", [{}, {"label_separator": ","}, {"classes": ["ok"]}])
def test_a_label_of_any_type_in_a_shard_is_read_or_counted(tmp_path, value, options):
    files = {"1.jpg": jpeg(), "1.json": json.dumps({"label": value}).encode(),
             "2.jpg": jpeg(), "2.json": b'{"label": "ok"}'}  # fmt: skip
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    crawl = read_crawl(tmp_path / "a.tar", **options)
    assert "ok" in crawl.class_names
    if value in ([], {}):
        assert crawl.problems.counts == {"no label": 1}


# ------------------------------------------------------------------ tables


def rows_of(text, tmp_path, **options):
    return read_crawl(put(tmp_path / "c.csv", text), **options)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_lines_of_a_csv_end_in_any_way(tmp_path, end):
    lines = ["path,label,title", "a.jpg,ant,one", 'b.jpg,bee,"two', 'lines"', "c.jpg,cat,three"]
    crawl = rows_of(end.join(lines), tmp_path)
    assert images_of(crawl) == ["a.jpg", "b.jpg", "c.jpg"]
    assert crawl.texts() == ["one", "two lines", "three"]
    assert not crawl.problems


def test_an_unclosed_quote_costs_one_row_and_is_counted(tmp_path):
    rows = [f"{i}.jpg,ant,words" for i in range(151)]
    rows[50] = '50.jpg,ant,"open'
    rows[120] = '120.jpg,ant,"closed"'
    crawl = rows_of("\n".join(["path,label,title", *rows]), tmp_path)
    assert len(crawl) == 150
    assert "50.jpg" not in images_of(crawl)
    assert crawl.problems.counts == {"broken line": 1}
    assert "line 52 (a quote is not closed)" in str(crawl.problems)


def test_quotes_that_do_not_open_a_field_are_letters(tmp_path):
    crawl = rows_of('path,label,title\na.jpg,ant,6" pipe\nb.jpg,bee,x\n', tmp_path)
    assert crawl.texts() == ['6" pipe', "x"]
    assert not crawl.problems


@pytest.mark.parametrize("quote", ["", '"'])
def test_an_endless_field_costs_one_row_and_is_counted(tmp_path, monkeypatch, quote):
    monkeypatch.setattr(csv_records, "LONGEST", 4096)
    field = quote + "z" * 50_000 + quote
    crawl = rows_of(f"path,label,title\na.jpg,ant,x\nb.jpg,ant,{field}\nc.jpg,ant,y\n", tmp_path)
    assert images_of(crawl) == ["a.jpg", "c.jpg"]
    assert "line 3 (longer than 4,096 bytes)" in str(crawl.problems)


def test_a_record_of_too_many_lines_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "MOST_LINES", 10)
    text = 'path,label,title\na.jpg,ant,"' + "line\n" * 20 + '"\nb.jpg,ant,x\n'
    crawl = rows_of(text, tmp_path)
    assert images_of(crawl) == ["b.jpg"]
    assert crawl.problems.counts["broken line"] > 1


def test_cells_of_two_encodings_in_one_row_are_each_read_as_they_are(tmp_path):
    row = "a.jpg,é,".encode() + "café".encode("cp1252")
    crawl = rows_of(b"path,label,title\n" + row + b"\n", tmp_path)
    assert crawl.class_names == ("é",)
    assert crawl.texts() == ["café"]
    assert crawl.problems.counts == {"text not in UTF-8": 1}


def test_random_bytes_below_a_header_are_counted_and_nothing_is_printed(tmp_path, capfd, recwarn):
    noise = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8).tobytes()
    crawl = rows_of(b"path,label\na.jpg,ant\n" + noise, tmp_path)
    assert images_of(crawl)[0] == "a.jpg"
    assert crawl.problems
    assert capfd.readouterr().err == ""


def test_a_header_without_names_is_refused(tmp_path):
    with pytest.raises(InputError, match="its first line holds no names of columns"):
        rows_of("x" * 200_000 + ",b\na,b\n", tmp_path)
    with pytest.raises(InputError, match=r"is UTF-16; save it as UTF-8"):
        rows_of("path,label\na,b\n".encode("utf-16-le"), tmp_path)


def test_a_hundred_thousand_columns_are_no_problem(tmp_path):
    crawl = rows_of(f"path,label{',x' * 100_000}\na.jpg,ant{',y' * 100_000}\n", tmp_path)
    assert len(crawl) == 1


def test_names_of_columns_in_messages_are_few_and_printable(tmp_path):
    with pytest.raises(InputError) as told:
        rows_of(f"\x1b[31mred{',x' * 100_000}\na{',y' * 100_000}\n", tmp_path)
    assert "\x1b" not in str(told.value)
    assert len(str(told.value)) < 1000


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.text('",;\n\r xé\0', max_size=8), min_size=3, max_size=3), max_size=6))
def test_records_that_a_program_wrote_come_back_as_they_are(rows):
    import tempfile

    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder) / "c.csv", written.getvalue())
        problems = Problems()
        records = CsvRecords(path, ",", problems)
        text = b"".join(iter(lambda: records.read(7), b"")).decode()
        records.close()
    expected = written.getvalue().split("\n", 1)[1].replace("\r\n", "\n").replace("\r", "\n")
    assert text == "-\n" + expected
    assert not problems


def test_a_line_of_json_without_end_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.crawls.readers.table_files.LONGEST", 4096)
    good = json.dumps({"path": "a.jpg", "label": "ant"})
    bad = json.dumps({"path": "b.jpg", "label": "x" * 50_000})
    crawl = read_crawl(put(tmp_path / "c.jsonl", f"{good}\n{bad}\n{good}\n"))
    assert len(crawl) == 2
    assert crawl.problems.counts["broken line"] == 1


def test_odd_columns_of_parquet_are_refused_or_read(tmp_path):
    path = tmp_path / "c.parquet"
    odd = {
        "fixed": pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        "null": pa.nulls(1),
        "time": pa.array([0], pa.timestamp("ns")),
        "large": pa.array([["a"]], pa.large_list(pa.large_string())),
        "bytes": pa.array([b"\xff"], pa.large_binary()),
    }
    for name, column in odd.items():
        pq.write_table(pa.table({"path": ["a.jpg"], "label": column}), path)
        with contextlib.suppress(InputError):
            assert len(read_crawl(path)) == 1, name


def test_a_column_of_parquet_that_is_there_twice_is_read_once(tmp_path):
    columns = [pa.array(["a.jpg"]), pa.array(["b.jpg"]), pa.array(["ant"])]
    pq.write_table(pa.Table.from_arrays(columns, ["path", "path", "label"]), tmp_path / "c.parquet")
    assert images_of(read_crawl(tmp_path / "c.parquet")) == ["a.jpg"]


def test_strings_of_parquet_that_are_not_utf8_are_read_and_counted(tmp_path):
    raw = pa.array([b"caf\xe9", b"plain"]).view(pa.string())
    table = pa.table({"path": ["a.jpg", "b.jpg"], "label": ["x", "y"], "title": raw})
    pq.write_table(table, tmp_path / "c.parquet")
    crawl = read_crawl(tmp_path / "c.parquet")
    assert crawl.texts() == ["café", "plain"]
    assert crawl.problems.counts == {"text not in UTF-8": 1}


def test_a_parquet_whose_names_are_not_utf8_is_refused(tmp_path):
    table = pa.table({"path": ["a.jpg"], "label": ["ant"], "some name": ["x"]})
    pq.write_table(table, tmp_path / "c.parquet", store_schema=False)
    data = (tmp_path / "c.parquet").read_bytes().replace(b"some name", b"some\xff\xfename"[:9])
    with pytest.raises(InputError, match=r"c\.parquet cannot be read"):
        read_crawl(put(tmp_path / "c.parquet", data))


def test_a_crawl_without_images_of_the_classes_asked_for_can_be_inspected(tmp_path):
    path = put(tmp_path / "c.csv", "path,label,title\na.jpg,ant,x\n")
    found = inspect_crawl(read_crawl(path, classes=["bee"]))
    assert (found.n_images, found.text_coverage["any"]) == (0, 0.0)


def test_json_that_is_nested_deeply_is_read_without_an_error(tmp_path):
    deep = '{"path": "a.jpg", "label": ' + "[" * 940 + "]" * 940 + "}"
    good = '{"path": "b.jpg", "label": "ant"}'
    assert images_of(read_crawl(put(tmp_path / "c.jsonl", f"{deep}\n{good}"))) == ["b.jpg"]


def test_names_of_classes_hold_nothing_that_a_terminal_obeys(tmp_path):
    lines = [json.dumps({"path": "a.jpg", "label": "\x1b[31mred", "truth": ["\x1b[31mred"]}),
             json.dumps({"path": "b.jpg", "label": "great\tauk"})]  # fmt: skip
    crawl = read_crawl(put(tmp_path / "c.jsonl", "\n".join(lines)))
    assert crawl.class_names == ("great auk", "\ufffd[31mred")
    assert crawl.truth.toarray().tolist() == [[False, True], [False, False]]


def test_a_class_named_like_a_file_of_the_export_gets_another_folder(tmp_path):
    names = [f"{i}.jpg" for i in range(8)]
    for name in names:
        put(tmp_path / "crawl" / name)
    crawl, correction = corrected_crawl(tmp_path / "crawl", names)
    odd = ("record.json", "classes.json")
    crawl, correction = (dataclasses.replace(x, class_names=odd) for x in (crawl, correction))
    out = export(crawl, correction, tmp_path / "out", to="imagefolder").out
    assert (out / "record.json").is_file()
    assert {path.name for path in out.iterdir() if path.is_dir()} == {f"{n}~2" for n in odd}


# ------------------------------------------------------------------ messages


def test_a_crawl_without_any_readable_picture_is_told_so():
    with pytest.raises(InputError, match=r"0 of 6 images have features; the pictures .* missing"):
        vsgraph.linear_probe(np.zeros((6, 4)), [0, 1] * 3, n_classes=2)


def test_a_little_room_is_told_in_small_units(tmp_path, monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_500_000))
    plan = SimpleNamespace(disk=2_500_000, memory=0)
    with pytest.raises(InputError, match=r"2\.5 MB are needed in .*, but only 1\.5 MB are free"):
        check_room(plan, tmp_path)
