"""Exports: what is written, and that the libraries it is meant for read it."""

import csv
import dataclasses
import io
import json
import os
import shutil
import tarfile
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy.sparse import csr_array, load_npz

import vsgraph
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports import FORMATS, export
from vsgraph.exports import shards as shards_module
from vsgraph.exports import tables as tables_module
from vsgraph.exports.cleanlab import neighbor_distances
from vsgraph.exports.names import LONGEST, folder_names, safe_name
from vsgraph.pictures.opener import read_header
from vsgraph.result.parts import Decision, Rule

N = 12
REJECTED, RELABELED, LOST = 5, 7, 9
NAMES = ("owl", "bat", "crane")
FILES = {"csv", "parquet", "coco"}
SINGLE = {"imagefolder", "imglist"}
WITH_PICTURES = ("imagefolder", "hf", "webdataset", "coco", "fiftyone", "labelstudio")


def make_correction(*, names=NAMES, several=False):
    """Twelve images of three classes in turn; one is rejected, one relabeled to class 0."""
    random = np.random.default_rng(0)
    kinds = np.tile(np.eye(3), (N // 3, 1))
    features = np.abs(kinds + 0.2 * random.uniform(size=kinds.shape))
    web = np.arange(N) % 3
    made = vsgraph.correct(
        features,
        kinds,
        np.eye(3),
        np.eye(3, dtype=bool)[web] if several else web,
        class_names=names,
        settings=vsgraph.Settings(n_neighbors=3, anchors_per_class=2),
    )
    final, decisions, rules = made.final_labels.copy(), made.decisions.copy(), made.rules.copy()
    final[REJECTED] = False if several else -1
    final[RELABELED] = [True, True, False] if several else 0
    decisions[[REJECTED, RELABELED]] = Decision.REJECT, Decision.RELABEL
    rules[[REJECTED, RELABELED]] = Rule.OPEN_SET, Rule.CONFIDENT
    return dataclasses.replace(made, final_labels=final, decisions=decisions, rules=rules)


def make_crawl(folder, *, names=NAMES, several=False, images=None, **columns):
    """Pictures in files, each of its own size; the one of row `LOST` is a web page."""
    folder.mkdir(parents=True, exist_ok=True)
    images = images or [f"q{i % 3}/{i}.{'png' if i % 2 else 'jpg'}" for i in range(N)]
    for i, name in enumerate(images):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = "PNG" if path.suffix == ".png" else "JPEG"
        Image.new("RGB", (8 + i, 6), (20 * i, 0, 0)).save(path, kind)
    (folder / images[LOST]).write_bytes(b"<html>404</html>")
    web = [i % 3 for i in range(N)]
    labels = pa.array([[c] for c in web], pa.list_(pa.int32())) if several else None
    table = pa.table(
        {
            "image": images,
            "web_labels": pa.array(web, pa.int32()) if labels is None else labels,
            "title": [f"<b>title</b> & \"{i}\", 'so'" for i in range(N)],
            "tags": [None if i == 0 else f"tag{i}" for i in range(N)],
            **columns,
        }
    )
    return Crawl("test", folder, table, names, text_fields=("title", "tags"))


def in_shards(crawl, folder):
    """The same crawl with its pictures in a tar file."""
    folder.mkdir()
    places = []
    with tarfile.open(folder / "a.tar", "w") as tar:
        for name, data in zip(crawl.table["image"].to_pylist(), crawl.read_images(), strict=True):
            header = tarfile.TarInfo(name)
            header.size = len(data)
            places.append((tar.offset + 512, len(data)))
            tar.addfile(header, io.BytesIO(data))
    table = crawl.table.append_column("shard", pa.array(["a.tar"] * N))
    table = table.append_column("offset", pa.array([place[0] for place in places]))
    table = table.append_column("size", pa.array([place[1] for place in places]))
    return dataclasses.replace(crawl, root=folder, table=table)


@pytest.fixture(scope="module")
def made():
    return make_correction()


@pytest.fixture(scope="module")
def multi():
    return make_correction(several=True)


@pytest.fixture
def crawl(tmp_path):
    return make_crawl(tmp_path / "crawl")


@pytest.fixture
def multi_crawl(tmp_path):
    return make_crawl(tmp_path / "crawl", several=True)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "new" / "out"


# --- rules that hold for every format


@pytest.mark.parametrize("to", FORMATS)
def test_a_format_writes_its_output_and_nothing_else(crawl, made, out, to):
    done = export(crawl, made, out, to=to)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert out.is_file() == (to in FILES)
    assert done.n_images == {"imglist": N - 1}.get(
        to, N - 1 if to == "labelstudio" else N - 2 if to in WITH_PICTURES else N
    )
    assert str(done).startswith(f"{done.n_images} images as {to} in {out}")


@pytest.mark.parametrize("to", FORMATS)
def test_an_output_is_replaced_only_when_asked(crawl, made, out, to):
    export(crawl, made, out, to=to)
    with pytest.raises(InputError, match="exists already"):
        export(crawl, made, out, to=to)
    export(crawl, made, out, to=to, overwrite=True)
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("to", FORMATS)
def test_what_vsgraph_did_not_write_is_left_alone(crawl, made, out, to):
    mine = out if to in FILES else out / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(InputError, match="left alone"):
        export(crawl, made, out, to=to, overwrite=True)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("to", FORMATS)
def test_the_wrong_kind_of_place_is_refused(crawl, made, out, to):
    out.parent.mkdir()
    if to in FILES:
        out.mkdir()
    else:
        out.write_text("mine")
    with pytest.raises(InputError, match=r"is a (file|folder); choose"):
        export(crawl, made, out, to=to, overwrite=True)


@pytest.mark.parametrize("to", FORMATS)
def test_an_interrupted_export_leaves_nothing_and_keeps_what_was_there(
    crawl, made, out, to, monkeypatch
):
    export(crawl, made, out, to=to)
    before = sorted(out.rglob("*")) if out.is_dir() else out.read_bytes()

    def stopped(*_, **__):
        yield np.arange(4)
        raise KeyboardInterrupt

    monkeypatch.setattr("vsgraph.exports.job.Job.blocks", stopped)
    for place in (out, out.parent / "other"):
        with pytest.raises(KeyboardInterrupt):
            export(crawl, made, place, to=to, overwrite=True)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert (sorted(out.rglob("*")) if out.is_dir() else out.read_bytes()) == before


def test_a_saved_correction_is_no_export_to_replace(crawl, made, out):
    made.save(out)
    with pytest.raises(
        InputError, match="holds something else than an export of vsgraph; left alone"
    ):
        export(crawl, made, out, to="hf", overwrite=True)
    assert len(vsgraph.Correction.load(out)) == N


@pytest.mark.parametrize("content", ["", "[]", '{"format": "other"}'])
def test_a_folder_with_another_record_is_left_alone(crawl, made, out, content):
    out.mkdir(parents=True)
    (out / "record.json").write_text(content)
    with pytest.raises(
        InputError, match="holds something else than an export of vsgraph; left alone"
    ):
        export(crawl, made, out, to="hf", overwrite=True)
    assert (out / "record.json").read_text() == content


def test_an_export_is_not_replaced_by_one_of_its_own_pictures(crawl, made, out):
    export(crawl, made, out, to="imagefolder", mode="copy")
    inside = dataclasses.replace(crawl, root=out)
    with pytest.raises(InputError, match="holds the crawl itself"):
        export(inside, made, out, to="imagefolder", overwrite=True)


@pytest.mark.parametrize("to", FORMATS)
def test_several_labels_are_written_or_refused_by_name(multi_crawl, multi, out, to):
    if to not in SINGLE:
        assert export(multi_crawl, multi, out, to=to).n_images >= N - 2
        return
    with pytest.raises(
        InputError, match="one label per image; these hold several: csv, parquet, soft, hf"
    ):
        export(multi_crawl, multi, out, to=to)
    assert not out.parent.exists()


@pytest.mark.parametrize("to", WITH_PICTURES)
def test_unreadable_pictures_are_left_out_and_counted(crawl, made, out, to):
    (crawl.root / crawl.table["image"][0].as_py()).unlink()
    done = export(crawl, made, out, to=to)
    assert done.problems.counts == {"picture missing or empty": 1, "not a picture": 1}
    assert done.n_images == N - (2 if to == "labelstudio" else 3)
    if to != "coco":
        kept = (out / "problems.tsv").read_text().splitlines()
        assert kept[2] == f"not a picture\trow {LOST}\t{crawl.table['image'][LOST]}"


@pytest.mark.parametrize("to", FORMATS)
def test_pictures_in_shards_go_out_as_well(crawl, made, tmp_path, out, to):
    packed = in_shards(crawl, tmp_path / "packed")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        done = export(packed, made, out, to=to)
    links = to in {"imagefolder", "hf"}
    assert [str(one.message)[:43] for one in said] == links * [
        "the pictures are in tar shards, so they are"
    ]
    plain = export(crawl, made, tmp_path / "plain", to=to)
    assert (done.n_images, done.problems.counts) == (plain.n_images, plain.problems.counts)
    if to in {"imagefolder", "hf"}:
        assert bytes_below(out) == bytes_below(tmp_path / "plain")
        assert not any(path.is_symlink() for path in out.rglob("*"))


def bytes_below(folder):
    pictures = [p for p in folder.rglob("*") if p.suffix in {".jpg", ".png"}]
    return {str(p.relative_to(folder)): p.read_bytes() for p in pictures}


@pytest.mark.parametrize("to", FORMATS)
def test_blocks_do_not_change_the_output(crawl, made, tmp_path, to, monkeypatch):
    export(crawl, made, tmp_path / "one", to=to)
    monkeypatch.setattr("vsgraph.common.blocks.BLOCK_BYTES", 15)
    export(crawl, made, tmp_path / "many", to=to)
    one, many = tmp_path / "one", tmp_path / "many"
    if to == "parquet":
        assert pq.read_table(one) == pq.read_table(many)
    elif to in FILES:
        assert one.read_bytes() == many.read_bytes()
    else:
        names = [str(p.relative_to(one)) for p in sorted(one.rglob("*")) if p.is_file()]
        assert names == [str(p.relative_to(many)) for p in sorted(many.rglob("*")) if p.is_file()]
        for name in names:
            if not name.endswith((".parquet", ".npz")):
                assert (one / name).read_bytes() == (many / name).read_bytes(), name


def test_unknown_formats_and_options_are_named(crawl, made, out):
    with pytest.raises(InputError, match="to must be one of csv, parquet"):
        export(crawl, made, out, to="xml")
    with pytest.raises(InputError, match="coco has no option mode; it has no options of its own"):
        export(crawl, made, out, to="coco", mode="copy")
    with pytest.raises(InputError, match="hf has no option soft; its options are mode"):
        export(crawl, made, out, to="hf", soft=True)
    with pytest.raises(InputError, match="mode must be one of link, hardlink, copy"):
        export(crawl, made, out, to="imagefolder", mode="move")
    with pytest.raises(InputError, match="shard_images must be at least 1"):
        export(crawl, made, out, to="webdataset", shard_images=0)
    assert not out.parent.exists()


def test_rejected_images_are_in_every_format_that_can_hold_them(crawl, made, tmp_path):
    for to in FORMATS:
        if to == "imglist":
            with pytest.raises(InputError, match="imglist cannot hold rejected images"):
                export(crawl, made, tmp_path / to, to=to, rejected=True)
            continue
        exported = export(crawl, made, tmp_path / to, to=to, rejected=True)
        assert exported.n_images == (N - 1 if to in WITH_PICTURES else N), to


def test_a_crawl_that_is_not_the_corrected_one_is_refused(crawl, multi_crawl, made, out):
    with pytest.raises(InputError, match="the crawl has 11 images and the correction 12"):
        export(crawl.take(slice(11)), made, out, to="csv")
    with pytest.raises(InputError, match="the classes of the crawl and of the correction differ"):
        export(dataclasses.replace(crawl, class_names=("a", "b", "c")), made, out, to="csv")
    with pytest.raises(InputError, match="only one of crawl and correction has several labels"):
        export(multi_crawl, made, out, to="csv")
    order = np.roll(np.arange(N), 1)
    with pytest.raises(InputError, match="web labels of crawl and correction differ in rows 0, 1"):
        export(crawl.take(order), made, out, to="csv")


def test_a_correction_without_names_takes_those_of_the_crawl(crawl, out):
    export(crawl, make_correction(names=None), out, to="parquet")
    assert pq.read_table(out)["web_label"][0].as_py() == "owl"


def test_a_bar_is_shown_only_on_a_terminal(crawl, made, out, capsys):
    export(crawl, made, out, to="csv", progress=True)
    assert capsys.readouterr().err == ""


# --- tables


def test_the_parquet_table_has_everything(tmp_path, made, out):
    crawl = make_crawl(tmp_path / "crawl", source=["google"] * N)
    export(crawl, made, out, to="parquet")
    table = pq.read_table(out)
    assert table.column_names == [
        "image", "web_label", "final_label", "decision", "confidence", "why", "anchor", "source",
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
        "../x.jpg", "a/1.png", "b/2.jpg",
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
    with pytest.raises(InputError, match=r"as a hardlink \(Invalid cross-device link\); try"):
        export(crawl, made, out, to="imagefolder", mode="hardlink")
    assert not out.parent.exists()


# --- Hugging Face


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()

    def read(folder):
        found = datasets.load_dataset(
            "imagefolder", data_dir=str(folder), cache_dir=str(tmp_path / "cache")
        )
        return found["train"]

    return read


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_hugging_face_reads_one_label(crawl, made, out, load, mode):
    export(crawl, made, out, to="hf", mode=mode)
    rows = list(load(out))
    kept = [i for i in range(N) if i not in {REJECTED, LOST}]
    assert [row["label"] for row in rows] == [NAMES[made.final_labels[i]] for i in kept]
    assert [row["class_number"] for row in rows] == made.final_labels[kept].tolist()
    assert [row["image"].size for row in rows] == [(8 + i, 6) for i in kept]
    assert [row["path"] for row in rows] == crawl.table["image"].take(kept).to_pylist()
    assert rows[1]["title"] == crawl.table["title"][1].as_py()
    assert rows[1]["why"] == Rule(made.rules[1]).sentence


def test_hugging_face_reads_several_labels(multi_crawl, multi, out, load):
    export(multi_crawl, multi, out, to="hf", rejected=True)
    rows = list(load(out))
    assert rows[RELABELED]["labels"] == ["owl", "bat"]
    assert rows[RELABELED]["class_numbers"] == [0, 1]
    assert rows[REJECTED]["labels"] == []


def test_hugging_face_reads_rejected_images_if_asked(crawl, made, out, load):
    export(crawl, made, out, to="hf", rejected=True)
    assert load(out)["label"][REJECTED] is None


def test_text_fields_do_not_take_the_place_of_ours(tmp_path, made, out, load):
    crawl = make_crawl(tmp_path / "crawl", label=["mine"] * N, old_file_name=["x.jpg"] * N)
    crawl = dataclasses.replace(crawl, text_fields=("label", "old_file_name"))
    export(crawl, made, out, to="hf")
    row = load(out)[0]
    assert (row["label"], row["label_text"], row["old_file_name_text"]) == ("owl", "mine", "x.jpg")


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


# --- cleanlab


def arrays(out):
    return {path.stem: np.load(path) for path in out.glob("*.npy")}


def test_cleanlab_arrays_are_in_the_order_of_the_names(crawl, made, out):
    export(crawl, made, out, to="cleanlab")
    found = arrays(out)
    names = (out / "class_names.txt").read_text().splitlines()
    assert names == sorted(NAMES)
    assert [names[c] for c in found["labels"]] == [NAMES[c] for c in made.web_labels]
    assert found["final_labels"][REJECTED] == -1
    assert names[found["final_labels"][RELABELED]] == "owl"
    probs = np.asarray(made.final_probs)[:, [NAMES.index(name) for name in names]]
    probs /= probs.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["pred_probs"], probs, atol=1e-6)
    assert found["pred_probs"].dtype == np.float32


def test_the_graph_for_cleanlab_has_equally_many_neighbors_nearest_first(crawl, made, out):
    export(crawl, made, out, to="cleanlab")
    graph, adjacency = load_npz(out / "knn_graph.npz"), made.adjacency.toarray()
    k = int((adjacency > 0).sum(axis=1).min())
    assert graph.nnz == N * k
    for row in range(N):
        near = graph.indices[row * k : (row + 1) * k]
        distances = graph.data[row * k : (row + 1) * k]
        assert row not in near
        np.testing.assert_allclose(distances, 1 - adjacency[row, near], atol=1e-6)
        np.testing.assert_allclose(1 - distances, np.sort(adjacency[row])[::-1][:k], atol=1e-6)


def test_images_without_neighbors_get_far_ones_and_twins_are_at_zero():
    features = np.array([[1.0, 0], [1, 0], [1, 0.1], [0, 0], [0, 0], [1, 0.2], [1, 0.3]])
    adjacency = vsgraph.visual_graph(features, n_neighbors=2)
    for k in (None, 3, 6):
        graph = neighbor_distances(adjacency, n_neighbors=k)
        near = graph.indices.reshape(7, -1)
        distances = graph.data.reshape(7, -1)
        assert near.shape[1] == (k or 2)
        assert (distances[[3, 4]] == 1).all()
        assert distances[0, 0] == 0
        assert near[0, 0] == 1
        assert (np.diff(distances, axis=1) >= 0).all()
        for row in range(7):
            assert len(set(near[row]) - {row}) == near.shape[1]


def test_a_graph_without_edges_is_not_written(crawl, made, out):
    alone = dataclasses.replace(made, adjacency=csr_array((N, N)))
    done = export(crawl, alone, out, to="cleanlab")
    assert done.problems.counts == {"no neighbors": 1}
    assert not (out / "knn_graph.npz").exists()


def test_options_for_cleanlab_are_checked(crawl, made, out, monkeypatch):
    with pytest.raises(InputError, match=r"n_neighbors must be in 1\.\.11, got 12"):
        export(crawl, made, out, to="cleanlab", n_neighbors=12)
    with pytest.raises(InputError, match="scores must be one of final, gnn, cnn"):
        export(crawl, made, out, to="cleanlab", scores="text")
    with pytest.raises(InputError, match="made without a CNN"):
        export(crawl, made, out, to="cleanlab", scores="cnn")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(InputError, match="but only 0 bytes are free; make room"):
        export(crawl, made, out, to="cleanlab")
    assert not out.parent.exists()


@pytest.fixture
def cleanlab():
    return pytest.importorskip("cleanlab")


@pytest.mark.parametrize("scores", ["final", "gnn"])
def test_cleanlab_finds_issues_in_the_arrays(two_senses, tmp_path, cleanlab, scores):
    from cleanlab.filter import find_label_issues

    names = ("dog", "ant", "cat", "bee")
    made = two_senses.correct(class_names=names)
    web = two_senses.web_labels
    table = pa.table(
        {"image": [f"{i}.jpg" for i in range(len(web))], "web_labels": pa.array(web, pa.int32())}
    )
    crawl = Crawl("test", tmp_path, table, names)
    export(crawl, made, tmp_path / "out", to="cleanlab", scores=scores)
    found = arrays(tmp_path / "out")
    issues = find_label_issues(found["labels"], found["pred_probs"], n_jobs=1)
    wrong = two_senses.truth != web
    assert wrong[issues].mean() > 0.9
    assert issues[wrong].mean() > 0.3


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
def test_datalab_takes_the_graph(two_senses, tmp_path, cleanlab, capsys):
    names = ("dog", "ant", "cat", "bee")
    made = two_senses.correct(class_names=names)
    web = two_senses.web_labels
    table = pa.table(
        {"image": [f"{i}.jpg" for i in range(len(web))], "web_labels": pa.array(web, pa.int32())}
    )
    crawl, out = Crawl("test", tmp_path, table, names), tmp_path / "out"
    export(crawl, made, out, to="cleanlab")
    lab = cleanlab.Datalab({"y": np.load(out / "labels.npy")}, label_name="y", verbosity=0)
    graph = load_npz(out / "knn_graph.npz")
    k = graph.nnz // len(web)
    lab.find_issues(
        knn_graph=graph,
        pred_probs=np.load(out / "pred_probs.npy"),
        issue_types={"label": {}, "outlier": {"k": k}, "near_duplicate": {}},
    )
    assert "Error in" not in capsys.readouterr().out
    found = lab.get_issues()
    assert {"is_label_issue", "is_outlier_issue", "is_near_duplicate_issue"} <= set(found.columns)
    assert found["is_label_issue"].any()


def test_cleanlab_takes_several_labels(multi_crawl, multi, out, cleanlab):
    from cleanlab.multilabel_classification.filter import find_label_issues

    export(multi_crawl, multi, out, to="cleanlab")
    found = arrays(out)
    labels = [np.flatnonzero(row).tolist() for row in found["labels"]]
    issues = find_label_issues(labels, found["pred_probs"], n_jobs=1)
    assert issues.shape == (N,)
    assert (out / "class_names.txt").read_text().splitlines() == sorted(NAMES)
    assert found["labels"][0].tolist() == [False, False, True]


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


def test_the_note_on_shards_is_a_warning_of_ours(crawl, made, tmp_path, out):
    packed = in_shards(crawl, tmp_path / "packed")
    with pytest.warns(VSGraphWarning, match="they are copied, not linked"):
        export(packed, made, out, to="imagefolder")
    export(packed, made, tmp_path / "copies", to="imagefolder", mode="copy")


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
def test_datalab_takes_images_without_neighbors_for_outliers(two_senses, cleanlab, capsys):
    features = two_senses.features.copy()
    features[[7, 100]] = 0
    graph = neighbor_distances(vsgraph.visual_graph(features, n_neighbors=5), n_neighbors=5)
    labels = two_senses.web_labels
    lab = cleanlab.Datalab({"y": labels}, label_name="y", verbosity=0)
    lab.find_issues(knn_graph=graph, issue_types={"outlier": {"k": 5}, "near_duplicate": {}})
    assert "Error in" not in capsys.readouterr().out
    found = lab.get_issues()
    assert found["is_outlier_issue"][[7, 100]].all()
    assert not found["is_near_duplicate_issue"][[7, 100]].any()
