"""Parquet and Arrow files with the pictures inside, as the Hugging Face hub serves them."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from made_pictures import jpeg, put
from vsgraph.crawls import (
    arrow_files,
    inspect_crawl,
    load_crawl,
    picture_tables,
    read_crawl,
    save_crawl,
)
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


def test_names_of_classes_that_are_no_text_do_no_harm(tmp_path):
    note = '{"info": {"features": {"label": {"names": ["\\ud800", "ant"]}}}}'
    table = pa.table({"image": cells(), "label": [0, 1, 0, 1, 0]})
    pq.write_table(table.replace_schema_metadata({"huggingface": note}), tmp_path / "c.parquet")
    assert read_crawl(tmp_path / "c.parquet").class_names == ("?", "ant")


def write_arrow(file, table, **options):
    with pa.ipc.new_stream(
        str(file), table.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as out:
        out.write_table(table)
    return file


def write_any(file, table):
    return write_arrow(file, table) if file.suffix == ".arrow" else pq.write_table(table, file)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_names_that_are_there_twice_are_read_once_or_refused(tmp_path, ending):
    image, label = pa.array(cells()), pa.array(["crane", "bat"] * 2 + ["bat"])
    file = tmp_path / f"c.{ending}"
    write_any(file, pa.Table.from_arrays([image, label, label], ["image", "label", "image"]))
    assert [data for data, _, _ in as_read(read_crawl(file))] == [jpeg(color) for color in COLORS]
    twice = pa.StructArray.from_arrays([image.field("bytes")] * 2, ["bytes", "bytes"])
    write_any(file, pa.table({"image": twice, "label": label}))
    with pytest.raises(InputError, match=r"holds struct<bytes: binary, bytes: binary>, not text"):
        read_crawl(file)


def test_files_of_arrow_are_read_compressed_or_not_but_not_if_they_swell(tmp_path, monkeypatch):
    table = pa.table({"image": cells(), "label": ["crane", "bat"] * 2 + ["bat"]})
    table = table.append_column("title", pa.array(list("abcde"), pa.string()).dictionary_encode())
    for codec in (None, "lz4", "zstd"):
        file = write_arrow(tmp_path / f"{codec}.arrow", table, compression=codec)
        assert as_read(read_crawl(file)) == EXPECTED
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(str(tmp_path / "f.arrow"), table.schema, options=options) as out:
            out.write_table(table)
        assert as_read(read_crawl(tmp_path / "f.arrow")) == EXPECTED
    monkeypatch.setattr(arrow_files, "LARGEST_PACKED", 10_000)
    swelling = table.set_column(1, "label", pa.array(["x" * 10_000] * 5))
    assert len(read_crawl(write_arrow(tmp_path / "a.arrow", swelling))) == 5
    file = write_arrow(tmp_path / "b.arrow", swelling, compression="zstd")
    assert file.stat().st_size < 10_000
    with pytest.raises(InputError, match=r"b\.arrow is compressed and takes .* GB in memory"):
        read_crawl(file)


LONG = "x" * 10_000
REPEATED = {
    "parquet": lambda n: pa.array([LONG] * n),
    "dictionary.arrow": lambda n: pa.array([LONG] * n).dictionary_encode(),
    "views.arrow": lambda n: pa.Array.from_buffers(
        pa.string_view(), n,
        [None, pa.py_buffer(np.array([10_000, 2021161080, 0, 0] * n, "<i4")),
         pa.py_buffer(LONG.encode())],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(REPEATED))
@pytest.mark.parametrize("column", ["title", "url", "label"])
def test_a_long_value_said_many_times_cannot_fill_the_memory(tmp_path, monkeypatch, kind, column):
    n = 300
    plain = {"path": [f"{i}.jpg" for i in range(n)], "label": ["crane", "bat"] * (n // 2)}
    file = tmp_path / f"c.{kind}"
    write_any(file, pa.table(plain | {column: REPEATED[kind](n)}))
    assert len(read_crawl(file)) == n
    monkeypatch.setattr(arrow_files, "LARGEST", 1_000_000)
    monkeypatch.setattr(arrow_files, "MOST_TIMES", 20)
    with pytest.raises(InputError, match="take more than 20 times the room of the file"):
        read_crawl(file)


def test_rows_of_nothing_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_files, "LARGEST", 1_000_000)
    n = 50_000
    table = pa.table({"image": pa.nulls(n, pa.array(cells()).type), "label": ["ant"] * n})
    pq.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(InputError, match="take more than 200 times"):
        read_crawl(tmp_path / "c.parquet")


def test_a_picture_said_many_times_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(picture_tables, "LARGEST_GROUP", 1_000_000)
    table = pa.table({"image": pa.array([LONG.encode()] * 200), "label": ["ant"] * 200})
    pq.write_table(table, tmp_path / "c.parquet")
    crawl = read_crawl(tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"a group of rows has more than .* GB of pictures"):
        crawl.read_image(0)


def test_large_pictures_are_decoded_as_from_files(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (300, 300, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(noise).save(data, "PNG")
    one = [{"bytes": data.getvalue(), "path": None}] * 5
    crawl = read_crawl(write(tmp_path / "c.parquet", image=pa.array(one)))
    assert crawl.table["image"][0].as_py() == "c.parquet/000000000"
    assert crawl.read_image(2) == data.getvalue()
