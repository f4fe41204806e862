"""Pictures whose files were not touched are not read again; any change of a file is seen."""

import os
import time

import numpy as np
import pytest
from test_vector_store import Own, crawl_of, picture

from vsgraph.crawls import crawl as crawls
from vsgraph.encoders import embed_images, places
from vsgraph.encoders.store import KnownPlaces
from vsgraph.encoders.vectors import NOTHING

NAMES = [f"{i}.png" for i in range(90)]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Ninety pictures, one of them broken; their files count as old at once."""
    monkeypatch.setattr(places, "YOUNG", -1)
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


def test_only_new_and_broken_files_are_opened_again(root, opened, tmp_path):
    embed_images(crawl_of(root, NAMES[:80]), Own(), tmp_path / "before")
    assert len(opened) == 80
    opened.clear()
    whole = crawl_of(root, NAMES[::-1])
    grown = embed_images(whole, Own(), tmp_path / "grown", known=[tmp_path / "before"])
    assert sorted(opened) == sorted(["7.png", *NAMES[80:]])
    fresh = embed_images(crawl_of(root, NAMES[::-1]), Own(), tmp_path / "fresh")
    assert (grown.vectors == fresh.vectors).all()
    assert (grown.keys == fresh.keys).all()
    assert (grown.places == fresh.places).all()
    assert whole.problems.counts == {"not a picture": 1}


def test_other_bytes_of_the_same_size_and_time_are_seen(root, opened, tmp_path):
    embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    opened.clear()
    path, old = root / "3.png", (root / "3.png").stat()
    content = picture(3)
    (root / "4.png").unlink()
    path.write_bytes(picture(200)[: len(content)].ljust(len(content), b"\0"))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (old.st_size, old.st_mtime_ns)
    names = [name for name in NAMES if name != "4.png"]
    again = embed_images(crawl_of(root, names), Own(), tmp_path / "again", known=[tmp_path / "out"])
    assert sorted(opened) == ["3.png", "7.png"]
    fresh = embed_images(crawl_of(root, names), Own(), tmp_path / "fresh")
    assert (again.vectors == fresh.vectors).all()


def test_the_same_name_below_another_folder_is_another_place(root, opened, tmp_path):
    embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    opened.clear()
    root.rename(tmp_path / "moved")
    moved = crawl_of(tmp_path / "moved", NAMES)
    again = embed_images(moved, Own(), tmp_path / "again", known=[tmp_path / "out"])
    assert len(opened) == len(NAMES)
    assert again.record["problems"] == {"not a picture": 1}


def test_a_file_that_changed_just_now_has_no_place(tmp_path):
    (tmp_path / "a.png").write_bytes(picture(1))
    crawl = crawl_of(tmp_path, ["a.png", "missing.png", "\0.png"])
    assert places.places(crawl, (0, 3)) == [NOTHING] * 3
    time.sleep(places.YOUNG / 1e9 + 0.1)
    old, missing, odd = places.places(crawl, (0, 3))
    assert old != NOTHING
    assert missing == odd == NOTHING
    assert places.places(crawl, (0, 1)) == [old]


def test_places_are_found_whatever_their_bytes(root, tmp_path):
    made = embed_images(crawl_of(root, NAMES), Own(), tmp_path / "out")
    known = KnownPlaces.of([made, made])
    for place, key in zip(made.places, made.keys, strict=True):
        assert known.at(place.tobytes()) == key.tobytes()
    assert known.at(NOTHING) == NOTHING
    assert known.at(b"\1" * 16) == NOTHING
    assert KnownPlaces.of([]).at(made.places[0].tobytes()) == NOTHING
    assert np.count_nonzero(made.keys.any(axis=1)) == len(NAMES) - 1
