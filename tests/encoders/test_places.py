"""Pictures whose files were not touched are not read again; any change of a file is seen."""

import io
import os
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from test_vector_store import Own, crawl_of, mean_colors, picture

from vsgraph.crawls import crawl as crawls
from vsgraph.crawls import read_crawl
from vsgraph.encoders import Embedding, embed_images, pictures_digest, places
from vsgraph.encoders.batches import Errand, run_errand
from vsgraph.encoders.known import KnownKeys, KnownPlaces
from vsgraph.encoders.pipeline import load_pictures
from vsgraph.encoders.places import look
from vsgraph.encoders.store import Form, content_key
from vsgraph.encoders.vectors import NOTHING, PLACES

NAMES = [f"{i}.png" for i in range(90)]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Ninety pictures, one of them broken; their files count as old at once."""
    monkeypatch.setattr(places, "YOUNG", -(10**9))
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, name in enumerate(NAMES):
        (folder / name).write_bytes(picture(i))
    (folder / "7.png").write_bytes(b"no picture")
    return folder


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that are opened."""
    names, read = [], crawls.read_regular

    def noting(path, most):
        names.append(path.name)
        return read(path, most)

    monkeypatch.setattr(crawls, "read_regular", noting)
    return names


def keys_now(crawl, *sources):
    """What is known of the pictures of a crawl without reading them."""
    known = KnownPlaces.of([Embedding.load(folder) for folder in sources])
    return known.keys_of(look(crawl, (0, len(crawl))).places)


def replace_in_place(path, content):
    """Write other bytes of the same size, and set the time back."""
    old = path.stat()
    path.write_bytes(content[: old.st_size].ljust(old.st_size, b"\0"))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    new = path.stat()
    assert (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns)


def test_only_new_and_broken_files_are_opened_again(root, opened, tmp_path):
    embed_images(crawl_of(root, NAMES[:80]), Own(), tmp_path / "before")
    assert len(opened) == 80
    opened.clear()
    whole = crawl_of(root, NAMES[::-1])
    grown = embed_images(whole, Own(), tmp_path / "grown", known=[tmp_path / "before"])
    assert sorted(opened) == sorted(["7.png", *NAMES[80:]])
    fresh = embed_images(crawl_of(root, NAMES[::-1]), Own(), tmp_path / "fresh")
    for name in ("vectors.npy", "keys.npy", PLACES, "record.json"):
        assert (grown.folder / name).read_bytes() == (fresh.folder / name).read_bytes(), name
    assert whole.problems.counts == {"not a picture": 1}


def test_other_bytes_of_the_same_size_and_time_are_seen_when_the_crawl_changes(
    root, opened, tmp_path
):
    embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    opened.clear()
    replace_in_place(root / "3.png", picture(200))
    fewer = crawl_of(root, NAMES[:-1])
    again = embed_images(fewer, Own(), tmp_path / "again", known=[tmp_path / "out"])
    assert sorted(opened) == ["3.png", "7.png"]
    fresh = embed_images(fewer, Own(), tmp_path / "fresh")
    assert (again.vectors == fresh.vectors).all()


def test_a_file_that_is_replaced_while_it_is_encoded_is_read_next_time(root, tmp_path):
    crawl = crawl_of(root, NAMES)

    def replacing(pixels):
        for path in [root / "80.png"] * (len(pixels) > 1):
            path.write_bytes(picture(300))
        return mean_colors(pixels)

    made = embed_images(crawl, Own(replacing), tmp_path / "out")
    known = keys_now(crawl, tmp_path / "out")
    assert known[80] == NOTHING
    assert known[79] == made.keys[79].tobytes()


def test_the_same_name_below_another_folder_is_another_place(root, opened, tmp_path):
    embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    opened.clear()
    root.rename(tmp_path / "moved")
    moved = crawl_of(tmp_path / "moved", NAMES)
    again = embed_images(moved, Own(), tmp_path / "again", known=[tmp_path / "out"])
    assert len(opened) == len(NAMES)
    assert again.record["problems"] == {"not a picture": 1}


def test_a_folder_that_became_a_link_out_of_the_crawl_is_not_known(root, tmp_path):
    (root / "own").mkdir()
    (root / "0.png").rename(root / "own" / "0.png")
    crawl = crawl_of(root, ["own/0.png"])
    embed_images(crawl, Own(), tmp_path / "out")
    assert keys_now(crawl, tmp_path / "out") != [NOTHING]
    (root / "own").rename(tmp_path / "elsewhere")
    (root / "own").symlink_to(tmp_path / "elsewhere")
    assert keys_now(crawl, tmp_path / "out") == [NOTHING]


def test_a_file_that_changed_just_now_has_no_place(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "YOUNG", 3 * 10**8)
    (tmp_path / "a.png").write_bytes(picture(1))
    crawl = crawl_of(tmp_path, ["a.png", "missing.png", "\0.png"])
    assert look(crawl, (0, 3)).places == 3 * NOTHING
    time.sleep(0.5)
    first = look(crawl, (0, 3)).places
    assert first[:16] != NOTHING
    assert first[16:] == 2 * NOTHING
    assert look(crawl, (0, 1)).places == first[:16]


def test_pictures_of_a_shard_are_known_until_the_shard_is_touched(root, tmp_path, monkeypatch):
    shard = tmp_path / "tars" / "0.tar"
    shard.parent.mkdir()
    with tarfile.open(shard, "w") as tar:
        for i in range(5):
            for name, data in ((f"{i}.png", picture(i)), (f"{i}.cls", b"0")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    crawl = read_crawl(shard.parent)
    made = embed_images(crawl, Own(), tmp_path / "out")
    assert keys_now(crawl, tmp_path / "out") == [key.tobytes() for key in made.keys]
    assert len(set(map(bytes, made.places()))) == 5
    replace_in_place(shard, shard.read_bytes())
    assert keys_now(crawl, tmp_path / "out") == [NOTHING] * 5


def test_a_worker_reads_only_what_its_errand_does_not_know(root, opened, tmp_path):
    crawl = crawl_of(root, NAMES[:3])
    keys = [content_key((root / name).read_bytes()) for name in NAMES[:3]]
    seen = look(crawl, (0, 3))
    batch = run_errand(
        lambda span, *known: load_pictures(crawl, span, lambda data: np.float32(len(data)), *known),
        lambda sizes: np.array(sizes, np.float32)[:, None],
        Form("sizes", np.dtype("float32")),
        KnownKeys(np.sort(np.frombuffer(keys[0] + keys[1], "S16"))),
        Errand((0, 3), seen, [keys[0], NOTHING, NOTHING], None, tmp_path / "batch-0.npz"),
    )
    assert opened == NAMES[1:3]
    assert (batch.keys, batch.new, batch.places) == (keys, [2], seen.places)


def test_a_crawl_below_a_name_of_any_bytes_is_looked_at(root, tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    root.rename(odd)
    crawl = crawl_of(odd, NAMES)
    assert pictures_digest(crawl)
    embed_images(crawl, Own(), tmp_path / "out")
    assert keys_now(crawl, tmp_path / "out").count(NOTHING) == 1


@pytest.mark.parametrize("damage", [b"", b"x" * 15, b"x" * 16 * 89])
def test_damaged_places_are_no_places(damage, root, tmp_path):
    made = embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    assert len(made.places()) == len(NAMES)
    (tmp_path / "out" / PLACES).write_bytes(damage)
    assert made.places() is None
    assert keys_now(crawl_of(root, NAMES), tmp_path / "out") == [NOTHING] * len(NAMES)
    assert Embedding.load(tmp_path / "out", verify=True)
