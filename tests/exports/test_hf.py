"""Parquet files for Hugging Face, read by its own library."""

import dataclasses

import pytest
from exports_data import LOST, NAMES, REJECTED, RELABELED, N, in_shards, make_crawl

from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports import export
from vsgraph.exports import hf as hf_module
from vsgraph.result.parts import Rule

KEPT = [i for i in range(N) if i not in {REJECTED, LOST}]


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    return lambda folder: datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_hugging_face_reads_classes_by_name(crawl, made, out, load, mode):
    export(crawl, made, out, to="hf", mode=mode)
    data = load(out)["train"]
    assert data.features["label"].names == list(NAMES)
    assert data["label"][:] == made.final_labels[KEPT].tolist()
    assert [picture.size for picture in data["image"]] == [(8 + i, 6) for i in KEPT]
    assert data["path"][:] == crawl.table["image"].take(KEPT).to_pylist()
    assert data["title"][1] == crawl.table["title"][1].as_py()
    assert data["why"][1] == Rule(made.rules[1]).sentence
    if mode == "copy":
        for path in crawl.root.rglob("*.*"):
            path.unlink()
        assert data["image"][0].size == (8, 6)


def test_hugging_face_reads_several_labels(multi_crawl, multi, out, load):
    export(multi_crawl, multi, out, to="hf", rejected=True)
    data = load(out)["train"]
    assert data["labels"][RELABELED] == [0, 1]
    assert data["labels"][REJECTED] == []
    assert data["web_label"][0] == ["owl"]
    assert data.features["labels"].feature.names == list(NAMES)


def test_hugging_face_reads_rejected_images_if_asked(crawl, made, out, load):
    export(crawl, made, out, to="hf", rejected=True)
    assert load(out)["train"]["label"][REJECTED] is None


def test_hugging_face_finds_the_parts_of_a_split(crawl, made, out, load):
    export(crawl, made, out, to="hf", split=0.5)
    data = load(out)
    assert set(data) == {"train", "test"}
    paths = [path for part in data.values() for path in part["path"]]
    assert sorted(paths) == sorted(crawl.table["image"].take(KEPT).to_pylist())
    assert set(data["test"]["split"]) == {"test"}
    assert 0 < len(data["test"]) < len(KEPT)


def test_large_files_are_divided(crawl, made, out, load, monkeypatch):
    monkeypatch.setattr(hf_module, "GROUP", 2)
    monkeypatch.setattr(hf_module, "FILE_BYTES", 1)
    export(crawl, made, out, to="hf", mode="copy")
    assert len(list((out / "data").iterdir())) == 5
    assert load(out)["train"]["label"][:] == made.final_labels[KEPT].tolist()


def test_pictures_in_shards_go_into_the_file(crawl, made, tmp_path, out, load):
    with pytest.warns(VSGraphWarning, match="they are copied"):
        export(in_shards(crawl, tmp_path / "packed"), made, out, to="hf")
    assert load(out)["train"]["image"][0].size == (8, 6)


def test_there_are_no_hard_links_in_parquet(crawl, made, out):
    with pytest.raises(InputError, match="mode must be one of link, copy, got 'hardlink'"):
        export(crawl, made, out, to="hf", mode="hardlink")


def test_text_fields_do_not_take_the_place_of_ours(tmp_path, made, out, load):
    crawl = make_crawl(tmp_path / "crawl", label=["mine"] * N, old_file_name=["x.jpg"] * N)
    crawl = dataclasses.replace(crawl, text_fields=("label", "old_file_name"))
    export(crawl, made, out, to="hf")
    row = load(out)["train"][0]
    assert (row["label"], row["label_crawl"], row["old_file_name"]) == (0, "mine", "x.jpg")
