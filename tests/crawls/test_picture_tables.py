"""Parquet and Arrow files with the pictures inside, as the Hugging Face hub serves them."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from made_pictures import jpeg, put
from vsgraph.crawls import inspect_crawl, load_crawl, picture_tables, read_crawl, save_crawl
from vsgraph.errors import InputError

COLORS = ["red", "blue", "green", "black", "white"]
NAMES = ["crane", "bat"]


def cells():
    return [{"bytes": jpeg(color), "path": f"{i}.jpg"} for i, color in enumerate(COLORS)]


def write(file, *, group=2, **columns):
    file.parent.mkdir(parents=True, exist_ok=True)
    table = {"image": cells(), "label": ["crane", "bat"] * 2 + ["bat"], "title": list("abcde")}
    pq.write_table(pa.table(table | columns), file, row_group_size=group)
    return file


def as_read(crawl):
    labels = [crawl.class_names[c] for c in crawl.web_labels]
    return list(zip(crawl.read_images(), labels, crawl.texts(), strict=True))


EXPECTED = list(
    zip(map(jpeg, COLORS), ["crane", "bat", "crane", "bat", "bat"], "abcde", strict=True)
)


@pytest.mark.parametrize("group", [1, 2, 5])
def test_pictures_in_parquet_are_read_in_place(tmp_path, group):
    crawl = read_crawl(write(tmp_path / "data" / "train-0.parquet", group=group))
    assert as_read(crawl) == EXPECTED
    assert crawl.table["image"].to_pylist()[3] == "train-0.parquet/000000003.jpg"
    assert crawl.image_path(0) is None
    assert [crawl.read_image(row) for row in (4, 0, 3)] == [jpeg(COLORS[i]) for i in (4, 0, 3)]
    assert as_read(read_crawl(tmp_path)) == EXPECTED
    assert inspect_crawl(crawl).pictures.unreadable == 0


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_bytes_alone_are_pictures(tmp_path, kind):
    raw = pa.array(map(jpeg, COLORS), kind)
    crawl = read_crawl(
        write(tmp_path / "c.parquet", image=raw, path=[f"old/{i}" for i in range(5)])
    )
    assert as_read(crawl) == EXPECTED
    assert crawl.other_columns == ("path",)


def test_a_crawl_with_pictures_inside_is_saved_and_opened(tmp_path):
    save_to = tmp_path / "saved"
    save_to.mkdir()
    save_crawl(read_crawl(write(tmp_path / "c.parquet")), save_to)
    assert as_read(load_crawl(save_to)) == EXPECTED


def hub_dataset(datasets):
    features = datasets.Features({
        "image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES),
        "caption": datasets.Value("string"),
        "truth": datasets.List(datasets.ClassLabel(names=NAMES)),
    })  # fmt: skip
    truth = [[0], [1], [0, 1], [], None]
    rows = {"image": cells(), "label": [0, 1, 0, 1, 1], "caption": list("abcde"), "truth": truth}
    return datasets.Dataset.from_dict(rows, features)


def test_data_sets_of_hugging_face_are_read_with_the_names_of_their_classes(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    data = hub_dataset(datasets)
    data.to_parquet(tmp_path / "hub" / "data" / "train-00000-of-00001.parquet")
    data.save_to_disk(tmp_path / "disk")
    datasets.DatasetDict({"train": data}).save_to_disk(tmp_path / "dict")
    for name in ("hub", "disk", "dict"):
        crawl = read_crawl(tmp_path / name)
        assert as_read(crawl) == EXPECTED, name
        both = [[False, True], [True, False], [True, True], [False, False], [False, False]]
        assert crawl.truth.toarray().tolist() == both
        assert crawl.truth_known.tolist() == [True] * 4 + [False]


def test_a_cell_without_a_picture_is_missing(tmp_path):
    empty = [*cells()[:3], {"bytes": None, "path": "x.jpg"}, None]
    crawl = read_crawl(write(tmp_path / "c.parquet", image=pa.array(empty)))
    assert list(crawl.read_images())[3:] == [b"", b""]
    assert inspect_crawl(crawl, every_picture=True).pictures.unreadable == 2


def test_pictures_inside_without_a_label_are_refused(tmp_path):
    table = pa.table({"image": cells(), "title": list("abcde")})
    pq.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(InputError, match="has no column for the label"):
        read_crawl(tmp_path / "c.parquet")


def test_a_group_of_rows_that_is_too_large_is_refused(tmp_path, monkeypatch):
    crawl = read_crawl(write(tmp_path / "c.parquet"))
    monkeypatch.setattr(picture_tables, "LARGEST_GROUP", 10)
    with pytest.raises(InputError, match=r"c\.parquet: a group of rows has .* smaller ones"):
        crawl.read_image(0)


def test_a_file_that_changed_is_read_anew_and_one_that_is_gone_is_missing(tmp_path):
    path = write(tmp_path / "c.parquet")
    crawl = read_crawl(path)
    assert crawl.read_image(0) == jpeg("red")
    put(path, b"PAR1 no more")
    assert crawl.read_image(0) == b""
    path.unlink()
    assert crawl.read_image(0) == b""


ODD = [b"[]", b"{", b'{"info": {"features": {"label": 3}}}']
ONE_NAME = b'{"info": {"features": {"label": {"names": [1]}}}}'


@pytest.mark.parametrize("note", [*ODD, ONE_NAME])
def test_odd_notes_of_classes_do_no_harm(tmp_path, note):
    table = pa.table({"image": cells(), "label": [0, 1, 7, -1, 0]})
    schema = table.schema.with_metadata({"huggingface": note})
    pq.write_table(table.cast(schema), tmp_path / "c.parquet")
    crawl = read_crawl(tmp_path / "c.parquet")
    assert len(crawl) == (2 if note == ONE_NAME else 5)


def test_large_pictures_are_decoded_as_from_files(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (300, 300, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(noise).save(data, "PNG")
    one = [{"bytes": data.getvalue(), "path": None}] * 5
    crawl = read_crawl(write(tmp_path / "c.parquet", image=pa.array(one)))
    assert crawl.table["image"][0].as_py() == "c.parquet/000000000"
    assert crawl.read_image(2) == data.getvalue()
