"""Crawls in an object store: the same as on disk, read in place by range."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

from s3_server import S3Server
from vsgraph.cli import main
from vsgraph.common.stores import StorePath, place
from vsgraph.crawls import crawl_digest, inspect_crawl, read_crawl
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders import pictures_digest
from vsgraph.errors import InputError, StoreError

CLASSES = ("bat", "owl")


def picture(seed, side=24):
    pixels = np.random.default_rng(seed).integers(0, 255, (side, side, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def rows(n=8, side=24):
    for i in range(n):
        yield f"{i:03d}", CLASSES[i % 2], f"a {CLASSES[i % 2]} {i}", picture(i, side)


def write_folder(root, **options):
    for name, label, title, data in rows(**options):
        (root / label).mkdir(parents=True, exist_ok=True)
        (root / label / f"{name}.png").write_bytes(data)
        (root / label / f"{name}.json").write_text(json.dumps({"title": title}))


def write_csv(root, **options):
    (root / "pictures").mkdir(parents=True)
    lines = ["path,label,title"]
    for name, label, title, data in rows(**options):
        (root / "pictures" / f"{name}.png").write_bytes(data)
        lines.append(f"{name}.png,{label},{title}")
    (root / "list.csv").write_text("\n".join(lines))


def write_tars(root, **options):
    root.mkdir()
    with tarfile.open(root / "00000.tar", "w") as tar:
        for name, label, title, data in rows(**options):
            side = json.dumps({"query": label, "title": title}).encode()
            for ending, content in (("cls", label.encode()), ("png", data), ("json", side)):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def write_parquet(root, **options):
    root.mkdir()
    entries = [
        {"image": {"bytes": data, "path": f"{name}.png"}, "label": label, "title": title}
        for name, label, title, data in rows(**options)
    ]
    pq.write_table(pa.Table.from_pylist(entries), root / "train.parquet", row_group_size=2)


def write_img2dataset(root, **options):
    (root / "00000").mkdir(parents=True)
    for name, label, title, data in rows(**options):
        (root / "00000" / f"{name}.png").write_bytes(data)
        side = {"query": label, "title": title}
        (root / "00000" / f"{name}.json").write_text(json.dumps(side))
    pq.write_table(pa.table({"key": [1]}), root / "00000.parquet")


WRITERS = (write_folder, write_csv, write_tars, write_parquet, write_img2dataset)


@pytest.mark.parametrize("write", WRITERS)
def test_a_crawl_in_a_store_is_the_crawl_on_disk(s3, tmp_path, write):
    write(tmp_path / "crawl")
    here, there = (
        read_crawl(tmp_path / "crawl"),
        read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl")),
    )
    assert str(there.root) == "s3://crawls/crawl"
    assert crawl_digest(there) == crawl_digest(here)
    assert list(there.read_images()) == list(here.read_images()) != []
    assert str(inspect_crawl(there)) == str(inspect_crawl(here))
    assert there.image_path(0) is None
    assert len(there) == 8
    assert not there.problems


def test_a_picture_in_a_shard_is_one_request_of_its_size(s3, tmp_path):
    write_tars(tmp_path / "crawl", n=4, side=1100)  # pictures of 3.6 MB, which are skipped
    crawl = read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl"))
    whole = (tmp_path / "crawl" / "00000.tar").stat().st_size
    assert sum(s3.fetched(".tar")) < 0.75 * whole
    s3.requests.clear()
    data = crawl.read_image(2)
    assert data == picture(2, 1100)
    assert s3.fetched(".tar") == [len(data)]


def test_small_members_of_a_shard_are_walked_in_blocks(s3, tmp_path):
    write_tars(tmp_path / "crawl", n=40)
    read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl"))
    assert len(s3.fetched(".tar")) == 1


def test_parquet_is_read_by_groups_of_rows(s3, tmp_path):
    write_parquet(tmp_path / "crawl", n=8, side=900)  # groups of 4.8 MB
    crawl = read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl"))
    whole = (tmp_path / "crawl" / "train.parquet").stat().st_size
    assert sum(s3.fetched(".parquet")) < whole  # and no picture is among it
    s3.requests.clear()
    assert crawl.read_image(5) == picture(5, 900)
    assert sum(s3.fetched(".parquet")) < whole / 2


def test_a_table_may_name_pictures_by_their_addresses(s3, tmp_path):
    write_csv(tmp_path / "crawl")
    table = tmp_path / "crawl" / "list.csv"
    text = table.read_text().replace("\n0", "\ns3://crawls/crawl/pictures/0")
    table.write_text(f"{text}\ns3://others/secret.png,bat,x")
    crawl = read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl"))
    assert crawl.table["image"][0].as_py() == "pictures/000.png"
    assert dict(crawl.problems.counts) == {"image path leads out of the folder": 1}
    assert all(crawl.read_images())


def test_an_object_that_changes_changes_the_key_of_the_pictures(s3, tmp_path):
    write_csv(tmp_path / "crawl")
    address = s3.upload(tmp_path / "crawl", "crawls", "crawl")
    before = pictures_digest(read_crawl(address))
    assert pictures_digest(read_crawl(address)) == before
    s3.client.put_object(Bucket="crawls", Key="crawl/pictures/003.png", Body=picture(99, 30))
    assert pictures_digest(read_crawl(address)) != before


def test_a_missing_picture_is_counted_as_on_disk(s3, tmp_path):
    write_csv(tmp_path / "crawl")
    (tmp_path / "crawl" / "pictures" / "003.png").unlink()
    crawl = read_crawl(s3.upload(tmp_path / "crawl", "crawls", "crawl"))
    assert list(crawl.read_images())[3] == b""
    assert inspect_crawl(crawl).pictures.missing.tolist() == [3]


def test_a_name_that_climbs_stays_within_the_crawl(s3):
    s3.client.put_object(Bucket="crawls", Key="secret.png", Body=picture(0))
    s3.client.put_object(Bucket="crawls", Key="crawl/x.png", Body=picture(1))
    table = pa.table({"image": ["../secret.png", "x.png"], "web_labels": pa.array([0, 0], "int32")})
    crawl = Crawl("a table", place("s3://crawls/crawl"), table, ("bat",))
    assert list(crawl.read_images()) == [b"", picture(1)]


@pytest.mark.slow
def test_a_store_that_goes_away_is_not_a_picture_that_is_missing(tmp_path, s3, monkeypatch):
    other = S3Server()
    monkeypatch.setenv("AWS_ENDPOINT_URL", other.url)
    other.client.create_bucket(Bucket="other")
    write_csv(tmp_path / "crawl")
    crawl = read_crawl(other.upload(tmp_path / "crawl", "other", "crawl"))
    inspect_crawl(crawl)
    other.stop()
    with pytest.raises(StoreError, match="does not answer; tried"):
        list(crawl.read_images())
    found = CliRunner().invoke(main, ["inspect", "s3://other/crawl"])
    assert found.exit_code == 3
    assert found.output.count("\n") == 1
    assert "does not answer" in found.output


def test_a_bucket_without_permission_is_one_line(s3, monkeypatch, tmp_path):
    write_csv(tmp_path / "crawl")
    address = s3.upload(tmp_path / "crawl", "crawls", "crawl")
    with s3.as_nobody(monkeypatch):
        for arguments in (
            ["inspect", address],
            ["correct", address, "-o", str(tmp_path / "run")],
            ["correct", str(tmp_path / "crawl"), "-o", "s3://crawls/run"],
        ):
            found = CliRunner().invoke(main, arguments)
            assert found.exit_code == 3, found.output
            assert found.output.count("\n") == 1
            assert "the store denies access" in found.output
    assert CliRunner().invoke(main, ["inspect", address]).exit_code == 0


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://crawls/nothing", "s3://crawls/nothing does not exist"),
        ("s3://no-such-bucket/crawl", "s3://no-such-bucket/crawl does not exist"),
        ("ftp://host/crawl", "ftp://host/crawl: addresses begin with s3:// or gs://"),
        ("s3://me:password@crawls/x", "s3://...: keys, region and endpoint are not part"),
        ("s3://crawls/x?secret_key=password", "s3://crawls/x: keys, region and endpoint are not"),
        ("s3://", "s3:// names no bucket"),
    ],
)
def test_addresses_that_cannot_be_read_are_one_line(s3, address, message):
    found = CliRunner().invoke(main, ["inspect", address])
    assert found.exit_code == 1
    assert found.output.startswith(f"Error: {message}")
    assert found.output.count("\n") == 1
    assert "password" not in found.output


def test_formats_that_need_a_disk_say_so(s3):
    s3.client.put_object(Bucket="crawls", Key="coco/captions_x.json", Body=b"{}")
    s3.client.put_object(Bucket="crawls", Key="hf/data-0.arrow", Body=b"ARROW1")
    with pytest.raises(InputError, match="coco is read from a folder on this machine"):
        read_crawl("s3://crawls/coco")
    with pytest.raises(InputError, match="Arrow files are read from disk"):
        read_crawl("s3://crawls/hf")


def test_what_needs_a_path_on_this_machine_says_so(s3, tmp_path, monkeypatch):
    write_csv(tmp_path / "crawl")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for arguments in (["embed", "../crawl", "-o"], ["describe", "../crawl", "-o"],
                      ["inspect", "../crawl", "--problems"]):  # fmt: skip
        found = CliRunner().invoke(main, [*arguments, "s3://crawls/x"])
        assert found.exit_code == 1, arguments
        assert "s3://crawls/x lies in an object store; this needs a path" in found.output
    assert not list(Path.cwd().iterdir())


def test_a_path_of_a_store_is_a_path():
    path = place("s3://crawls/a/./b/../c.csv")
    assert str(path) == repr(path)[11:-2] == "s3://crawls/a/c.csv"
    assert isinstance(path / "x", StorePath)
    assert (path.name, path.suffix, str(path.parent)) == ("c.csv", ".csv", "s3://crawls/a")
    assert str(path.relative_to(place("s3://crawls"))) == "a/c.csv"
    assert place(path.parent / "c.csv") == path == place(str(path))
    assert place(Path("s3://crawls/a/c.csv")) == path
    for write in (lambda: path.open("w"), path.mkdir, path.unlink, lambda: path.write_text("x")):
        with pytest.raises(InputError, match="needs a path on this machine"):
            write()
