"""Exports as tables, lists and folders: what is written, and that libraries read it."""

import csv
import errno
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from exports_data import (
    LOST,
    NAMES,
    REJECTED,
    RELABELED,
    N,
    make_correction,
    make_crawl,
)
from PIL import Image

from vsgraph.errors import FileError, InputError
from vsgraph.exports import export
from vsgraph.exports import tables as tables_module
from vsgraph.exports.names import LONGEST, folder_names, safe_name
from vsgraph.result.parts import Rule

# --- tables


def test_the_parquet_table_has_everything(tmp_path, made, out):
    crawl = make_crawl(tmp_path / "crawl", source=["google"] * N)
    export(crawl, made, out, to="parquet")
    table = pq.read_table(out)
    assert table.column_names == [
        "image", "web_label", "final_label", "decision", "confidence", "why", "anchor", "quality",
        "source", "title", "tags",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert rows[REJECTED]["final_label"] is None
    assert rows[REJECTED]["why"] == Rule.OPEN_SET.sentence
    moved = rows[RELABELED]
    assert (moved["web_label"], moved["final_label"], moved["decision"]) == (
        "bat", "owl", "relabel",
    )  # fmt: skip
    assert moved["source"] == "google"
    np.testing.assert_allclose(table["confidence"].to_numpy(), made.confidence, atol=1e-6)
    assert set(np.flatnonzero(table["anchor"].to_numpy())) == set(made.anchors.rows)


def test_the_csv_table_reads_back_exactly(tmp_path, out):
    names = ('say "owl"', "=1+1, bat", "two\nlines")
    images = [f"{i}.png" for i in range(N)]
    images[0] = '=a,"b" c.png'
    crawl = make_crawl(tmp_path / "crawl", images=images, names=names)
    export(crawl, make_correction(names=names), out, to="csv")
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == images
    assert [row["web_label"] for row in rows] == [names[i % 3] for i in range(N)]
    assert rows[REJECTED]["final_label"] == ""
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    assert pyarrow.csv.read_csv(out, parse_options=parse)["image"].to_pylist() == images


def test_several_labels_are_lists_in_parquet_and_joined_in_csv(multi_crawl, multi, tmp_path):
    export(multi_crawl, multi, tmp_path / "a.parquet", to="parquet")
    final = pq.read_table(tmp_path / "a.parquet")["final_label"].to_pylist()
    assert (final[RELABELED], final[REJECTED]) == (["owl", "bat"], [])
    export(multi_crawl, multi, tmp_path / "a.csv", to="csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[RELABELED]["final_label"], rows[REJECTED]["final_label"]) == ("owl|bat", "")


def test_a_bar_in_a_name_does_not_go_into_joined_labels(tmp_path, out):
    names = ("a|b", "c", "d")
    crawl = make_crawl(tmp_path / "crawl", names=names, several=True)
    with pytest.raises(InputError, match="joins labels in CSV; use parquet"):
        export(crawl, make_correction(names=names, several=True), out, to="csv")


def test_a_file_that_only_looks_like_parquet_is_left_alone(crawl, made, out):
    out.parent.mkdir()
    pq.write_table(pa.table({"a": [1]}), out)
    with pytest.raises(InputError, match="was not written by vsgraph; left alone"):
        export(crawl, made, out, to="parquet", overwrite=True)


@pytest.mark.parametrize("several", [False, True])
def test_soft_labels_read_back_as_they_are(tmp_path, out, several):
    crawl, made = make_crawl(tmp_path / "c", several=several), make_correction(several=several)
    export(crawl, made, out, to="soft")
    table, soft = pq.read_table(out / "soft_labels.parquet"), made.soft_labels()
    assert table["image"].to_pylist() == crawl.table["image"].to_pylist()
    np.testing.assert_array_equal(np.stack(table["classes"].to_numpy()), soft.classes)
    np.testing.assert_array_equal(np.stack(table["values"].to_numpy()), soft.values)
    np.testing.assert_array_equal(table["rest"].to_numpy(), soft.rest)
    assert sum(table["values"][REJECTED].as_py()) == 0
    assert (out / "class_names.txt").read_text().splitlines() == list(NAMES)


# --- the list


def test_the_list_has_the_images_that_stay(crawl, made, out):
    export(crawl, made, out, to="imglist", soft=True)
    lines = (out / "imglist.txt").read_text().splitlines()
    kept = [i for i in range(N) if i != REJECTED]
    images = crawl.table["image"].to_pylist()
    assert lines == [f"{images[i]} {made.final_labels[i]}" for i in kept]
    assert (out / "class_names.txt").read_text().splitlines() == list(NAMES)
    soft = np.load(out / "soft_labels.npy")
    np.testing.assert_array_equal(soft, np.asarray(made.soft_labels())[kept])


def test_a_path_with_a_line_break_is_left_out_of_the_list(tmp_path, made, out):
    images = [f"{i}.png" for i in range(N)]
    images[2] = "two\nlines 0.png"
    done = export(make_crawl(tmp_path / "crawl", images=images), made, out, to="imglist", soft=True)
    assert done.problems.counts == {"path with a line break": 1}
    assert len((out / "imglist.txt").read_text().splitlines()) == done.n_images == N - 2
    assert len(np.load(out / "soft_labels.npy")) == N - 2


def test_a_list_that_stops_midway_is_not_there(crawl, made, out, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables_module, "_write_soft_array", full)
    with pytest.raises(OSError, match="No space left"):
        export(crawl, made, out, to="imglist", soft=True)
    assert not out.parent.exists()


# --- folders of pictures


def walk(root):
    """List pictures by class folder, as torchvision's ImageFolder does."""
    folders = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    return {
        folder: sorted(str(path) for path in (root / folder).rglob("*") if path.is_file())
        for folder in folders
    }


@pytest.mark.parametrize("mode", ["link", "hardlink", "copy"])
def test_an_imagefolder_has_a_folder_a_class(crawl, made, out, mode):
    export(crawl, made, out, to="imagefolder", mode=mode)
    found = walk(out)
    assert json.loads((out / "classes.json").read_text()) == {name: name for name in found}
    labels = {Path(p).name: folder for folder, paths in found.items() for p in paths}
    kept = [i for i in range(N) if i not in {REJECTED, LOST}]
    assert len(labels) == len(kept)
    for i in kept:
        name = Path(crawl.table["image"][i].as_py()).name
        assert labels[name] == NAMES[made.final_labels[i]]
        path = out / labels[name] / name
        with Image.open(path) as picture:
            assert picture.size == (8 + i, 6)
        assert path.is_symlink() == (mode == "link")
        assert (path.stat().st_nlink == 2) == (mode == "hardlink")


def test_rejected_images_get_a_folder_only_if_asked(crawl, made, tmp_path):
    export(crawl, made, tmp_path / "without", to="imagefolder")
    assert "_rejected" not in walk(tmp_path / "without")
    export(crawl, made, tmp_path / "with", to="imagefolder", rejected=True)
    assert [Path(p).name for p in walk(tmp_path / "with")["_rejected"]] == [f"{REJECTED}.png"]
    assert "_rejected" not in json.loads((tmp_path / "with" / "classes.json").read_text())


@pytest.mark.parametrize(
    "names",
    [
        ("../../etc", "a/b", "a_b"),
        ("CON", "con", "nul.txt"),
        ("Crane", "crane", "CRANE"),
        ("_rejected", "_Rejected", "..."),
        ("x" * 300, "x" * 301, "é" * 300),
        (".hidden", "tab\there", "C:\\Windows"),
        ("", " ", "trailing. "),
    ],
)
def test_hostile_class_names_stay_within_the_folder(tmp_path, out, names):
    crawl = make_crawl(tmp_path / "crawl", names=names)
    export(crawl, make_correction(names=names), out, to="imagefolder", rejected=True)
    folders = json.loads((out / "classes.json").read_text(encoding="utf-8"))
    assert sorted(folders.values()) == sorted(names)
    assert set(walk(out)) == {*folders, "_rejected"}
    assert len({folder.casefold() for folder in walk(out)}) == 4
    for folder in folders:
        assert not set(folder) & set('<>:"/\\|?*\t')
        assert not folder.startswith((".", " "))
        assert not folder.endswith((".", " "))
        assert len(folder.encode()) <= LONGEST + 4
        assert folder.split(".")[0].casefold() not in {"con", "nul"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crawl", "new"]


def test_names_that_need_no_change_keep_it():
    assert folder_names(["great auk", "crème brûlée", "鶴", "1"]) == [
        "great auk", "crème brûlée", "鶴", "1",
    ]  # fmt: skip
    assert safe_name("COM1.jpg", empty="x") == "_COM1.jpg"
    assert safe_name("console", empty="x") == "console"


def test_names_of_pictures_stay_within_their_folder_and_differ(tmp_path, made, out):
    images = [
        "up/x.jpg", "a/1.png", "b/2.jpg",
        "X.JPG", "c/image.php?id=3", "b/5.png",
        "deep/x.jpg", "q\\7.jpg", "CON.jpg",
        "9.jpg", "d/.hidden.png", "e/" + "y" * 200 + ".png",
    ]  # fmt: skip
    crawl = make_crawl(tmp_path / "a" / "crawl", images=images)
    for to in ("imagefolder", "hf", "webdataset", "labelstudio"):
        export(crawl, made, out / to, to=to)
    found = walk(out / "imagefolder")
    assert [Path(p).name for p in found["owl"]] == ["7.jpg", "X~3.jpg", "x.jpg", "x~6.jpg"]
    assert [Path(p).name for p in found["bat"]] == ["1.png", "_hidden.png", "image.php_id=3~4.jpg"]
    assert [Path(p).name for p in found["crane"]][1:] == ["_CON.jpg", f"{'y' * LONGEST}.png"]
    for path in (p for p in out.rglob("*") if p.is_symlink()):
        with Image.open(path) as picture:
            assert picture.height == 6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "new"]


def test_a_link_that_cannot_be_made_says_what_to_do(crawl, made, out, monkeypatch):
    def refuse(*_, **__):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(InputError, match=r"as a hardlink \(Invalid .* link\); .*--mode copy"):
        export(crawl, made, out, to="imagefolder", mode="hardlink")
    assert not out.parent.exists()


@pytest.mark.parametrize(("mode", "function"), [("link", "symlink"), ("hardlink", "link")])
def test_a_full_disk_is_not_blamed_on_the_mode(crawl, made, out, monkeypatch, mode, function):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "there")

    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(FileError, match="No space left on device; make room and start again"):
        export(crawl, made, out, to="imagefolder", mode=mode)
