# ruff: noqa: E501
"""Readers and the opener of pictures on random input: an answer, or one of our own errors.

`make faults` runs many more examples: VSGRAPH_FUZZ_SECONDS is the time for each test.
"""

import contextlib
import io
import json
import os
import random
import tarfile
import tempfile
import time
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hostile_pictures import KINDS, picture
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from made_pictures import jpeg, put
from vsgraph.crawls import inspect_crawl, read_crawl
from vsgraph.crawls.texts import plain_name, plain_text
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.exports.names import folder_names, safe_name, split_name
from vsgraph.pictures.decode import Preparation, quiet_decoders, read_picture
from vsgraph.pictures.opener import PictureError, read_header, small_jpeg

SECONDS = float(os.environ.get("VSGRAPH_FUZZ_SECONDS", "1.5"))
ODD = st.sampled_from(['"', ",", ";", "\t", "|", "\n", "\r", "\0", "..", "/", "\\", "é", "\ud800"])
WORDS = st.one_of(
    st.text(max_size=20), st.lists(ODD, max_size=6).map("".join),
    st.sampled_from(["a.jpg", "../x", "/etc/passwd", "ant", "none", "n02012849", "9" * 30, "1e999"]),
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["path", "label", "title", "tags", "truth", "source", "file_name", "query"])
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=5)


def for_a_while(strategy):
    """Run a test on examples until its time is over; each failure is told with its example."""

    def decorate(test):
        def timed(**fixtures):
            end = time.monotonic() + SECONDS
            seed = 0
            while seed == 0 or time.monotonic() < end:

                @settings(deadline=None, max_examples=60, database=None,
                          suppress_health_check=list(HealthCheck))  # fmt: skip
                @given(strategy)
                def once(example):
                    test(example, **fixtures)

                once._hypothesis_internal_use_seed = seed
                once()
                seed += 1

        timed.__name__ = test.__name__
        return timed

    return decorate


def encoded(text):
    return text.encode("utf-8", "surrogatepass")


def read_all(path, **options):
    """Read and inspect a crawl, by every way to use its columns."""
    with contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", VSGraphWarning)
        crawl = read_crawl(path, **options)
        str(inspect_crawl(crawl))
        crawl.texts()
        crawl.labels_matrix()
        assert all(plain_name(name) == name for name in crawl.class_names)
        for image in crawl.table["image"].to_pylist():
            assert ".." not in image.split("/")
            assert not image.startswith("/")


@contextlib.contextmanager
def file_of(name, content):
    with tempfile.TemporaryDirectory() as folder:
        yield put(Path(folder) / "crawl" / name, content)


@for_a_while(
    st.tuples(
        st.binary(max_size=400),
        st.sampled_from(["csv", "tsv", "jsonl", "parquet", "arrow", "tar"]),
    )
)
def test_any_bytes_are_a_file(example):
    content, ending = example
    with file_of(f"c.{ending}", content) as path:
        read_all(path)


@for_a_while(st.tuples(st.lists(st.lists(WORDS, min_size=2, max_size=4), max_size=6),
                       st.sampled_from(["\n", "\r", "\r\n"]), st.sampled_from(",;\t"),
                       st.sampled_from([None, ","])))  # fmt: skip
def test_any_cells_are_a_csv(example):
    rows, end, mark, separator = example
    lines = [mark.join(cells) for cells in [["path", "label", "title"], *rows]]
    with file_of("c.csv", encoded(end.join(lines))) as path:
        read_all(path, label_separator=separator)


@for_a_while(
    st.tuples(ROWS, st.sampled_from([None, ",", "|"]), st.sampled_from([None, ["ant", "bee"]]))
)
def test_any_objects_are_lines_of_json(example):
    rows, separator, classes = example
    with file_of("c.jsonl", "\n".join(map(json.dumps, rows))) as path:
        read_all(path, label_separator=separator, classes=classes)


@for_a_while(
    st.tuples(st.lists(st.tuples(WORDS, VALUES), max_size=4), st.sampled_from([None, ","]))
)
def test_any_members_are_a_shard(example):
    members, separator = example
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, value in members:
            for ending, data in (
                (".jpg", jpeg()),
                (".json", json.dumps({"label": value}).encode()),
            ):
                with contextlib.suppress(UnicodeEncodeError):
                    header = tarfile.TarInfo(name + ending)
                    header.size = len(data)
                    tar.addfile(header, io.BytesIO(data))
    with file_of("c.tar", raw.getvalue()) as path:
        read_all(path, label_separator=separator, columns={"truth": "label", "source": "label"})


@for_a_while(st.tuples(VALUES, VALUES, VALUES, VALUES))
def test_any_values_are_a_coco_file(example):
    images, notes, kinds, marks = example
    ours = {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "file_name": "a",
        "caption": "ant",
        "name": "ant",
    }

    def mixed(value):
        return [ours, value, *(ours | {key: value} for key in ours)]

    with file_of(
        "captions_x.json", json.dumps({"images": mixed(images), "annotations": mixed(notes)})
    ) as path:
        put(path.parent / "instances_x.json",
            json.dumps({"categories": mixed(kinds), "annotations": mixed(marks)}))  # fmt: skip
        read_all(path)


@for_a_while(st.lists(st.tuples(WORDS, WORDS), max_size=5))
def test_any_lines_are_lists_of_webvision(example):
    with file_of("info/synsets.txt", "n02012849 crane\n") as path:
        root = path.parent.parent
        lines = [
            "google/a.jpg 0",
            *(encoded(one).decode("utf-8", "replace") + " 0" for one, _ in example),
        ]
        images = put(path.parent / "train_filelist_google.txt", "\n".join(lines))
        n_lines = len(images.read_text(errors="replace").splitlines())
        metas = [
            encoded(other).decode("utf-8", "replace").replace("\n", "") for _, other in example
        ]
        metas = (metas + ["google/x.json 1"] * n_lines)[:n_lines]
        put(path.parent / "train_meta_list_google.txt", "\n".join(metas))
        put(root / "google" / "x.json", '[{"id": 5}]')
        read_all(root)


@for_a_while(st.integers(0, 2**32))
def test_a_damaged_parquet_is_read_or_refused(example):
    draw = random.Random(example)
    raw = io.BytesIO()
    columns = {
        "path": ["a.jpg", "b.jpg"],
        "label": ["ant", "bee"],
        "title": ["x", None],
        "truth": [["a"], []],
    }
    pq.write_table(pa.table(columns), raw)
    wrong = bytearray(raw.getvalue())
    for _ in range(draw.randrange(1, 6)):
        wrong[draw.randrange(len(wrong))] = draw.randrange(256)
    with file_of("c.parquet", bytes(wrong)) as path:
        read_all(path)


@for_a_while(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32)))
def test_a_damaged_picture_is_decoded_or_refused(example):
    kind, seed = example
    draw = random.Random(seed)
    wrong = bytearray(picture(kind))
    for _ in range(draw.randrange(1, 20)):
        wrong[draw.randrange(min(len(wrong), draw.choice([60, 10_000])))] = draw.randrange(256)
    data = bytes(wrong[: draw.randrange(len(wrong))] if draw.random() < 0.3 else wrong)
    with quiet_decoders():
        with contextlib.suppress(PictureError):
            assert read_picture(data, Preparation(32, 32)).shape == (32, 32, 3)
        with contextlib.suppress(PictureError):
            read_header(data)
        small = small_jpeg(data, side=32, quality=50)
        assert small == b"" or small.startswith(b"\xff\xd8")


@for_a_while(st.lists(WORDS | st.text(max_size=300), max_size=6, unique=True))
def test_any_names_make_files_and_plain_text(example):
    names = [encoded(name).decode("utf-8", "replace") for name in example]
    folders = folder_names(names)
    assert len({folder.casefold() for folder in folders}) == len(names)
    for name in names:
        safe = safe_name(name, empty="x")
        assert not set(safe) & set('/\\:*?"<>|\0\n')
        assert safe not in {"", ".", ".."}
        assert len(safe.encode()) <= 110
        assert "/" not in "".join(split_name(name))
        assert plain_text(name).isprintable() or "\u00ad" in name or not name.isprintable()
        assert plain_name(plain_name(name)) == plain_name(name)


def table_file(ending):
    """Return the bytes of a table with pictures inside."""
    cells = [{"bytes": bytes([i] * 40), "path": f"{i}.jpg"} for i in range(5)]
    table = pa.table({"image": cells, "label": list("abcab"), "title": ["x"] * 5})
    with io.BytesIO() as file:
        if ending == "parquet":
            pq.write_table(table, file, row_group_size=2)
        else:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
        return file.getvalue()


TABLES = {ending: table_file(ending) for ending in ("parquet", "arrow")}


@for_a_while(st.tuples(st.sampled_from(sorted(TABLES)),
                       st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)),
                                min_size=1, max_size=4)))  # fmt: skip
def test_any_damage_to_a_table_of_pictures(example):
    ending, changes = example
    content = bytearray(TABLES[ending])
    for place, new in changes:
        start = int(place * (len(content) - len(new)))
        content[start : start + len(new)] = new
    with file_of(f"c.{ending}", bytes(content)) as path, contextlib.suppress(InputError):
        read_all(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VSGraphWarning)
            assert all(len(data) <= 2**28 for data in read_crawl(path).read_images())
