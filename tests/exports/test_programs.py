"""Exports for one program each: WebDataset, COCO, FiftyOne, Label Studio."""

import json
import os
import tarfile
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from exports_data import LOST, NAMES, REJECTED, RELABELED, N, in_shards, make_correction, make_crawl

from vsgraph.errors import InputError
from vsgraph.exports import export
from vsgraph.exports import shards as shards_module
from vsgraph.pictures.opener import read_header
from vsgraph.result.parts import Rule

# --- WebDataset


def samples(out):
    webdataset = pytest.importorskip("webdataset")
    shards = sorted(str(path) for path in out.glob("shard-*.tar"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed file", ResourceWarning)
        return list(webdataset.WebDataset(shards, shardshuffle=False).decode("pil"))


def test_webdataset_reads_the_shards(tmp_path, made, out):
    images = [f"{i}.{'png' if i % 2 else 'JPG'}" for i in range(N)]
    crawl = make_crawl(tmp_path / "crawl", images=images)
    export(crawl, made, out, to="webdataset")
    found = samples(out)
    kept = [i for i in range(N) if i not in {REJECTED, LOST}]
    assert [one["__key__"] for one in found] == [f"{i:09d}" for i in kept]
    assert [one["cls"] for one in found] == made.final_labels[kept].tolist()
    assert [one.get("jpg", one.get("png")).size for one in found] == [(8 + i, 6) for i in kept]
    known = found[6]["json"]
    assert kept[6] == RELABELED
    assert (known["web_label"], known["final_label"], known["decision"]) == (
        "bat", "owl", "relabel",
    )  # fmt: skip
    assert known["why"] == Rule.CONFIDENT.sentence
    assert known["path"] == images[RELABELED]
    assert known["text"] == {"title": crawl.table["title"][7].as_py(), "tags": "tag7"}
    assert (out / "classes.txt").read_text().splitlines() == list(NAMES)


@pytest.mark.parametrize(
    "limit", [{"shard_images": 3}, {"shard_bytes": 1}, {"shard_images": 10, "shard_bytes": 10**6}]
)
def test_shards_are_limited_and_complete(crawl, made, out, limit):
    export(crawl, made, out, to="webdataset", **limit)
    sizes = []
    for path in sorted(out.glob("*.tar")):
        with tarfile.open(path) as tar:
            sizes.append(sum(name.endswith(".cls") for name in tar.getnames()))
    assert sizes == {3: [3, 3, 3, 1], 10: [10]}.get(limit.get("shard_images"), [1] * 10)
    assert len(samples(out)) == N - 2


def test_shards_are_the_same_bytes_each_time(crawl, made, tmp_path, monkeypatch):
    export(crawl, made, tmp_path / "a", to="webdataset")
    for path in crawl.root.rglob("*.*"):
        os.utime(path, (1, 1))
    monkeypatch.setattr(os, "getuid", lambda: 1234, raising=False)
    export(crawl, made, tmp_path / "b", to="webdataset")
    name = "shard-000000.tar"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    with tarfile.open(tmp_path / "a" / name) as tar:
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in tar} == {(0, 0, 0, "")}


def test_shards_of_several_labels_have_them_in_json(multi_crawl, multi, out):
    export(multi_crawl, multi, out, to="webdataset", rejected=True)
    found = samples(out)
    assert not any("cls" in one for one in found)
    assert found[RELABELED]["json"]["classes"] == [0, 1]
    assert found[REJECTED]["json"]["final_label"] == []


def test_rejected_images_in_shards_have_no_class(crawl, made, out):
    export(crawl, made, out, to="webdataset", rejected=True)
    assert samples(out)[REJECTED]["cls"] == -1


def test_a_full_disk_leaves_no_shard(crawl, made, out, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards_module, "write_class_names", full)
    with pytest.raises(OSError, match="No space left"):
        export(crawl, made, out, to="webdataset")
    assert not out.parent.exists()


# --- COCO


def read_coco(path, capsys):
    coco = pytest.importorskip("pycocotools.coco").COCO(str(path))
    capsys.readouterr()
    return coco


def test_pycocotools_reads_the_file(crawl, made, out, capsys):
    export(crawl, made, out, to="coco")
    coco = read_coco(out, capsys)
    kept = [i for i in range(N) if i not in {REJECTED, LOST}]
    assert sorted(coco.getImgIds()) == kept
    names = {one["id"]: one["name"] for one in coco.loadCats(coco.getCatIds())}
    for i in kept:
        image, [label] = coco.imgs[i], coco.loadAnns(coco.getAnnIds(imgIds=[i]))
        assert image["file_name"] == crawl.table["image"][i].as_py()
        assert (image["width"], image["height"]) == (8 + i, 6)
        assert names[label["category_id"]] == NAMES[made.final_labels[i]]
        assert label["bbox"] == [0, 0, 8 + i, 6]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
            assert coco.annToMask(label).all()
    owls = coco.getImgIds(catIds=coco.getCatIds(catNms=["owl"]))
    assert set(owls) == {0, 3, 6, RELABELED} - {LOST}


def test_coco_has_an_annotation_a_label(multi_crawl, multi, out, capsys):
    export(multi_crawl, multi, out, to="coco", rejected=True)
    coco = read_coco(out, capsys)
    assert [a["category_id"] for a in coco.imgToAnns[RELABELED]] == [1, 2]
    assert REJECTED in coco.imgs
    assert coco.imgToAnns[REJECTED] == []


def test_a_coco_file_of_others_is_left_alone(crawl, made, out):
    out.parent.mkdir()
    out.write_text('{"info": {}, "images": []}')
    with pytest.raises(InputError, match="was not written by vsgraph; left alone"):
        export(crawl, made, out, to="coco", overwrite=True)


# --- FiftyOne and Label Studio


def test_fiftyone_finds_labels_and_pictures(crawl, made, out):
    export(crawl, made, out, to="fiftyone", rejected=True)
    labels = json.loads((out / "labels.json").read_text())
    places = json.loads((out / "data.json").read_text())
    assert labels["classes"] == list(NAMES)
    assert set(labels["labels"]) == set(places)
    assert labels["labels"][f"{REJECTED:09d}"] is None
    moved = labels["labels"][f"{RELABELED:09d}"]
    assert moved["label"] == 0
    assert moved["confidence"] == pytest.approx(made.confidence[RELABELED], abs=1e-6)
    assert moved["attributes"]["web_label"] == "bat"
    for key, path in places.items():
        assert Path(path).is_absolute()
        assert Path(path) == crawl.root / crawl.table["image"][int(key)].as_py()


def test_fiftyone_lists_several_labels(multi_crawl, multi, out):
    export(multi_crawl, multi, out, to="fiftyone", rejected=True)
    labels = json.loads((out / "labels.json").read_text())["labels"]
    assert [one["label"] for one in labels[f"{RELABELED:09d}"]] == [0, 1]
    assert labels[f"{REJECTED:09d}"] == []


def test_fiftyone_gets_pictures_in_shards_as_files(crawl, made, tmp_path, out):
    export(in_shards(crawl, tmp_path / "packed"), made, out, to="fiftyone")
    keys = set(json.loads((out / "labels.json").read_text())["labels"])
    assert {path.stem for path in (out / "data").iterdir()} == keys
    assert not (out / "data.json").exists()


def test_label_studio_gets_tasks_and_a_setup(crawl, made, out):
    export(crawl, made, out, to="labelstudio")
    tasks = json.loads((out / "tasks.json").read_text())
    setup = ET.fromstring((out / "labeling_config.xml").read_text())
    choices = [one.get("value") for one in setup.iter("Choice")]
    assert choices == [*NAMES, "_rejected"]
    control, picture = setup.find("Choices"), setup.find("Image")
    for task in tasks:
        [prediction] = task["predictions"]
        [result] = prediction["result"]
        assert result["from_name"] == control.get("name")
        assert result["to_name"] == picture.get("name") == control.get("toName")
        assert result["type"] == "choices"
        assert set(result["value"]["choices"]) <= set(choices)
        assert 0 <= prediction["score"] <= 1
        shown = [tag.get("value") for tag in setup.iter() if "$" in tag.get("value", "")]
        assert {name[1:] for name in shown} <= set(task["data"])
    assert tasks[REJECTED]["predictions"][0]["result"][0]["value"]["choices"] == ["_rejected"]
    assert tasks[3]["data"]["image"] == "/data/local-files/?d=q0/3.png"


def test_label_studio_addresses_are_escaped_and_can_be_changed(tmp_path, made, out):
    images = [f"a b/{i}#ü.png" for i in range(N)]
    crawl = make_crawl(tmp_path / "crawl", images=images)
    export(crawl, made, out, to="labelstudio", url="https://host/x/")
    tasks = json.loads((out / "tasks.json").read_text())
    assert tasks[0]["data"]["image"] == "https://host/x/a%20b/0%23%C3%BC.png"


def test_markup_in_titles_and_names_stays_text(tmp_path, out):
    names = ('<b>"owl"</b>', "a & b's", "_rejected")
    crawl = make_crawl(tmp_path / "crawl", names=names)
    export(crawl, make_correction(names=names), out, to="labelstudio")
    written = (out / "tasks.json").read_text()
    assert not set(written) & set("<>&")
    tasks = json.loads(written)
    assert tasks[1]["data"]["text"] == f"title: {crawl.table['title'][1].as_py()}\ntags: tag1"
    setup = ET.fromstring((out / "labeling_config.xml").read_text())
    assert [one.get("value") for one in setup.iter("Choice")] == [*names, "__rejected"]
    assert setup.find("Choices").get("choice") == "single"


def test_label_studio_takes_several_choices(multi_crawl, multi, out):
    export(multi_crawl, multi, out, to="labelstudio")
    tasks = json.loads((out / "tasks.json").read_text())
    chosen = tasks[RELABELED]["predictions"][0]["result"][0]["value"]["choices"]
    assert chosen == ["owl", "bat"]
    setup = ET.fromstring((out / "labeling_config.xml").read_text())
    assert setup.find("Choices").get("choice") == "multiple"


def test_label_studio_gets_pictures_in_shards_as_files(crawl, made, tmp_path, out):
    export(in_shards(crawl, tmp_path / "packed"), made, out, to="labelstudio")
    for task in json.loads((out / "tasks.json").read_text()):
        address = task["data"]["image"].removeprefix("/data/local-files/?d=")
        assert read_header(out / address).suffix
