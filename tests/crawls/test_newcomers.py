"""New images in all the forms that may be labeled."""

import numpy as np
import pytest

from vsgraph.crawls.newcomers import read_newcomers
from vsgraph.errors import InputError, VSGraphWarning

NAMES = ("bat", "owl")


@pytest.fixture
def folder(tmp_path):
    for name in ("a.jpg", "b.png", "deeper/c.jpg"):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(b"x")
    (tmp_path / "pictures" / "a.txt").write_text("an owl at night")
    return tmp_path / "pictures"


def read(*paths, **options):
    return read_newcomers(list(paths), NAMES, **options)


def test_a_folder_of_pictures_needs_no_labels(folder):
    crawl = read(folder)
    assert crawl.table["image"].to_pylist() == ["a.jpg", "b.png", "deeper/c.jpg"]
    assert crawl.web_labels.tolist() == [-1, -1, -1]
    assert crawl.texts() == ["an owl at night", "", ""]
    assert crawl.class_names == NAMES


def test_single_pictures_are_read_with_the_text_beside_them(folder):
    crawl = read(folder / "deeper" / "c.jpg", folder / "a.jpg")
    assert crawl.table["image"].to_pylist() == ["deeper/c.jpg", "a.jpg"]
    assert crawl.texts() == ["", "an owl at night"]
    assert crawl.root == folder


def test_a_table_may_lack_labels_in_all_rows_or_in_some(folder):
    table = folder / "new.csv"
    table.write_text("path,title,url\na.jpg,an owl,u1\nb.png,,u2\n")
    crawl = read(table)
    assert crawl.web_labels.tolist() == [-1, -1]
    assert crawl.other_columns == ("url",)
    table.write_text("path,label\na.jpg,owl\nb.png,\n")
    assert read(table).web_labels.tolist() == [1, -1]
    table.write_text("path,label\na.jpg,owl\nb.png,auk\n")
    with pytest.warns(VSGraphWarning, match="no class of the run and are left aside: 'auk'"):
        assert read(table).web_labels.tolist() == [1, -1]


def test_class_folders_are_labels(folder):
    (folder / "a.jpg").rename(folder / "deeper" / "d.jpg")
    (folder / "b.png").unlink()
    (folder / "deeper").rename(folder / "owl")
    assert read(folder).web_labels.tolist() == [1, 1]


def test_what_cannot_be_read_is_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "labels.npy", np.zeros(3, int))
    table = tmp_path / "several.jsonl"
    table.write_text('{"path": "pictures/a.jpg", "labels": ["owl", "bat"]}\n')
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds no images"):
        read(tmp_path / "empty")
    with pytest.raises(InputError, match="has no pictures, only labels"):
        read(tmp_path / "labels.npy")
    with pytest.raises(InputError, match="several pictures, or one folder"):
        read(folder, folder / "a.jpg")
