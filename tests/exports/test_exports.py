"""Exports: the rules that hold for every format."""

import csv
import dataclasses
import json
import tarfile
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exports_data import FILES, LOST, SINGLE, WITH_PICTURES, N, in_shards, make_correction

import vsgraph
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports import FORMATS, export


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
    with pytest.raises(InputError, match="is not an export of vsgraph and is left alone"):
        export(crawl, made, out, to="hf", overwrite=True)
    assert len(vsgraph.Correction.load(out)) == N


@pytest.mark.parametrize("content", ["", "[]", '{"format": "other"}'])
def test_a_folder_with_another_record_is_left_alone(crawl, made, out, content):
    out.mkdir(parents=True)
    (out / "record.json").write_text(content)
    with pytest.raises(InputError, match="is not an export of vsgraph and is left alone"):
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
        "the pictures are not in files of their own,"
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


def test_the_note_on_shards_is_a_warning_of_ours(crawl, made, tmp_path, out):
    packed = in_shards(crawl, tmp_path / "packed")
    with pytest.warns(VSGraphWarning, match="they are copied, not linked"):
        export(packed, made, out, to="imagefolder")
    export(packed, made, tmp_path / "copies", to="imagefolder", mode="copy")


URL = "http://x/?a=1&copy={}"


def found_urls(out, to):
    """Return the url and the title of row 7 as an export has them."""
    if to == "parquet":
        row = pq.read_table(out).to_pylist()[7]
    elif to == "coco":
        row = next(one for one in json.loads(out.read_text())["images"] if one["id"] == 7)
    elif to == "hf":
        rows = pq.read_table(out / "data" / "train-00000.parquet").to_pylist()
        row = next(row for row in rows if row["path"] == "q1/7.png")
    elif to == "webdataset":
        with tarfile.open(out / "shard-000000.tar") as tar:
            row = json.load(tar.extractfile("000000007.json"))
        row |= row["text"]
    elif to == "fiftyone":
        row = json.loads((out / "labels.json").read_text())["labels"]["000000007"]["attributes"]
    elif to == "labelstudio":
        tasks = json.loads((out / "tasks.json").read_text())
        row = next(task["data"] for task in tasks if task["data"]["path"] == "q1/7.png")
    else:
        table = out if to == "csv" else out / "images.csv"
        with table.open(newline="", encoding="utf-8") as file:
            row = next(row for row in csv.DictReader(file) if row["image"] == "q1/7.png")
    assert (row["web_label"], row["decision"]) == ("bat", "relabel")
    assert 0 <= float(row["quality"]) <= 1
    assert row["why"]
    return row["url"], row["title"], row["decision_crawl"]


@pytest.mark.parametrize("to", FORMATS)
def test_every_export_carries_every_column_of_the_crawl(crawl, made, out, to):
    others = [{"url": URL.format(i), "decision": f"mine {i}"} for i in range(N)]
    table = crawl.table.append_column("others", pa.array(others))
    export(dataclasses.replace(crawl, table=table), made, out, to=to)
    title = crawl.table["title"][7].as_py()
    assert found_urls(out, to) == (URL.format(7), title, "mine 7")


def test_the_table_of_an_imagefolder_names_its_files(crawl, made, out):
    export(crawl, made, out, to="imagefolder", rejected=True)
    with (out / "images.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    files = {path.relative_to(out).as_posix() for path in out.glob("*/*")}
    assert {row["file"] for row in rows} == files
    assert rows[7]["file"] == "owl/7.png"
