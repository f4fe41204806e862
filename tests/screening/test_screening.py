"""From a crawl with copies and flawed pictures to a run, its tables, its exports and its report."""

import collections
import csv
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.sparse import csr_array

from made_pictures import as_jpeg, page_of_text, photo, put
from vsgraph.cli import main
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.vectors import Embedding
from vsgraph.errors import InputError
from vsgraph.exports.selection import split_images
from vsgraph.pictures.measures import MEASURES
from vsgraph.runs import Run, run
from vsgraph.screening import Screening, measured, screen
from vsgraph.screening.screened import FLAWS

NAMES = ("crane", "owl", "bat", "seal")
PER_CLASS = 8


FEW = {"n_neighbors": 3, "anchors_per_class": 2}


def choices_of(table):
    return {"text_encoder": "lsa", "meanings": table.parent / "meanings.csv"}


def notice():
    """Return an "image not available"."""
    picture = Image.new("RGB", (200, 150), "lightgray")
    picture.paste(page_of_text(size=(120, 30)), (40, 60))
    return as_jpeg(picture)


def write_crawl(folder):
    """Write a crawl of four classes with copies, a placeholder and flawed pictures."""
    rows = []

    def add(name, label, data):
        put(folder / name, data)
        rows.append({"file": name, "label": label, "title": f"a {label}", "split": "train"})

    for place, label in enumerate(NAMES):
        for i in range(PER_CLASS):
            add(f"{label}/{i}.jpg", label, as_jpeg(photo(PER_CLASS * place + i)))
        add(f"{label}/none.jpg", label, notice())
    add("crane/small.jpg", "crane", as_jpeg(photo(0).resize((100, 100))))
    add("owl/same.jpg", "owl", as_jpeg(photo(1)))  # of crane/1.jpg, under another label
    add("bat/dark.jpg", "bat", as_jpeg(photo(90).point(lambda level: level // 6)))
    add("bat/page.jpg", "bat", b"<html>404</html>")
    rows[-3]["split"] = "test"
    with (folder / "crawl.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    lines = ["class,chosen,description", *(f"{n},yes,{n}: a kind of {n}" for n in NAMES)]
    (folder / "meanings.csv").write_text("\n".join(lines) + "\n")
    return folder / "crawl.csv"


@pytest.fixture(scope="module")
def done(tmp_path_factory, model_cache):
    """The run of that crawl, and what it said."""
    folder = tmp_path_factory.mktemp("screened")
    table = write_crawl(folder / "crawl")
    said = []
    out = folder / "run"
    made = run(table, out, tell=said.append, settings=FEW, choices=choices_of(table))
    return made, said


def rows_of(made):
    return {row["image"]: row for row in made.to_arrow().to_pylist()}


def test_copies_and_flaws_are_columns(done):
    rows = rows_of(done[0])
    assert rows["crane/small.jpg"]["copy_of"] == "crane/0.jpg"
    assert rows["crane/0.jpg"]["copy_of"] is None
    assert rows["crane/0.jpg"]["copy_group"] == rows["crane/small.jpg"]["copy_group"] is not None
    assert rows["owl/same.jpg"]["copy_labels"] == "crane"
    assert rows["crane/1.jpg"]["copy_labels"] == "owl"
    assert rows["bat/dark.jpg"]["flaws"] == "dark"
    assert rows["bat/page.jpg"]["flaws"] == "broken"
    assert {rows[f"{name}/none.jpg"]["flaws"] for name in NAMES} == {"placeholder"}
    plain = rows["seal/3.jpg"]
    assert (plain["copy_group"], plain["copy_of"], plain["copy_labels"], plain["flaws"]) == (
        None,
    ) * 4


def test_the_run_says_what_it_found(done):
    made, said = done
    text = "\n".join(said)
    assert "copies: 5 more of 3 pictures; 2 of these pictures stand under several labels" in text
    assert "copies: 1 pictures are in several parts of 'split'" in text
    assert "broken 1, dark 1, placeholder 4" in text
    assert made.record["stages"]["screening"]["found"]


def test_the_report_shows_copies_and_flaws(done):
    made = done[0]
    first = made.page.read_text()
    assert 'href="pictures.html"' in first
    assert "By web labels, the largest class has 11 images, the smallest 9" in first
    page = (made.page.parent / "pictures.html").read_text()
    placeholder, differing, copies, broken, dark = (
        page.index(f'<section id="{name}"')
        for name in ("placeholder", "differing", "copies", "broken", "dark")
    )
    assert placeholder < differing < copies < broken < dark
    assert "<bdi>crane</bdi>, <bdi>owl</bdi>" in page[differing:copies]
    shown = set(re.findall(r"pictures/(\d+)\.jpg", page))
    assert all((made.page.parent / "pictures" / f"{row}.jpg").exists() for row in shown)
    assert len(shown) >= 9


def exported(made, tmp_path, **options):
    out = tmp_path / "table.csv"
    made.export(out, to="csv", **options)
    with out.open(newline="", encoding="utf-8") as file:
        return {row["image"] for row in csv.DictReader(file)}


def test_an_export_leaves_out_what_is_asked(done, tmp_path):
    everything = exported(done[0], tmp_path)
    left = exported(
        done[0], tmp_path, overwrite=True, drop=["duplicates", "placeholders", "dark", "broken"]
    )
    gone = everything - left
    assert {f"{name}/none.jpg" for name in NAMES} | {"bat/dark.jpg", "bat/page.jpg"} < gone
    assert "crane/small.jpg" in gone
    assert len(gone & {"crane/1.jpg", "owl/same.jpg"}) == 1
    assert len(gone) == 8


def test_of_copies_an_export_keeps_the_one_with_the_surest_label(done, tmp_path):
    made = done[0]
    rows = rows_of(made)
    pair = [rows["crane/1.jpg"], rows["owl/same.jpg"]]
    kept = [row for row in pair if row["decision"] != "reject"]
    left = exported(made, tmp_path, drop=["duplicates"])
    if kept:
        best = max(kept, key=lambda row: row["confidence"])
        assert best["image"] in left


def test_the_command_drops_by_name(done, tmp_path):
    out = str(tmp_path / "list")
    arguments = ["export", str(done[0].path), "--to", "imglist", "-o", out]
    result = CliRunner().invoke(main, [*arguments, "--drop", "duplicates, dark"])
    assert result.exit_code == 0, result.output
    assert "copies and flawed pictures left out:" in result.output
    result = CliRunner().invoke(main, [*arguments, "--overwrite", "--drop", "ugly"])
    assert "drop must be one of" in result.output


def test_copies_are_in_one_part_of_a_split(done, tmp_path):
    made = done[0]
    made.export(tmp_path / "t.parquet", to="parquet", split=0.5)
    table = pq.read_table(tmp_path / "t.parquet").to_pylist()
    parts = collections.defaultdict(set)
    for row in table:
        parts[row["copy_group"]].add(row["split"])
    assert all(len(found) == 1 for group, found in parts.items() if group is not None)
    assert parts[None] == {"train", "test"}


def test_an_older_run_without_screening_can_be_exported_but_not_dropped_from(done, tmp_path):
    folder = shutil.copytree(done[0].path, tmp_path / "run")
    record = folder / "run.json"
    values = json.loads(record.read_text())
    del values["made"]["stages"]["screening"]
    record.write_text(json.dumps(values))
    old = Run.open(folder)
    assert old.screening is None
    assert "flaws" not in old.to_arrow().column_names
    with pytest.raises(InputError, match="run vsgraph correct again"):
        old.export(tmp_path / "x.csv", to="csv", drop=["duplicates"])


def test_a_grown_crawl_measures_only_new_pictures(done, tmp_path, monkeypatch):
    folder = shutil.copytree(done[0].path.parent, tmp_path / "world")
    table = folder / "crawl" / "crawl.csv"
    put(folder / "crawl" / "seal" / "new.jpg", as_jpeg(photo(77)))
    with table.open("a") as file:
        file.write("seal/new.jpg,seal,a seal,train\n")
    seen = []
    real = measured.measure_picture
    monkeypatch.setattr(measured, "measure_picture", lambda data: seen.append(1) or real(data))
    run(table, folder / "later", settings=FEW, choices=choices_of(table), with_report=False)
    assert len(seen) == 2  # the new one, and the broken one is tried again


def test_a_crawl_of_vectors_alone_has_copies():
    groups = np.array([0, 1, 0, 3])
    found = screen(None, groups, csr_array(np.eye(4)[[0, 1, 1, 2]]))
    assert found.best.tolist() == [0, 1, 0, 3]
    assert not found.flaws.any()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_each_group_has_one_best_and_one_stand_in(numbers, data):
    """Whatever the rows, best copies and stand-ins belong to their group and are its own."""
    _, groups = np.unique(numbers, return_inverse=True)
    groups = np.array([np.flatnonzero(groups == g)[0] for g in groups])
    n = len(groups)
    values = data.draw(st.lists(st.integers(1, 300), min_size=n, max_size=n))
    vectors = np.zeros((n, len(MEASURES)), np.float32)
    vectors[:, 0] = vectors[:, 1] = values
    vectors[:, MEASURES.index("dark_end")] = 255
    keys = np.arange(16 * n, dtype=np.uint8).reshape(n, 16)
    measured = Embedding(None, vectors, None, keys, {})
    found = screen(measured, groups, csr_array(np.ones((n, 1))))
    assert (found.groups[found.best] == groups).all()
    assert (found.groups[found.stand_ins] == groups).all()
    for rows in found.members():
        assert found.best[rows[0]] == rows[0]
        assert sorted(found.ranks[rows]) == list(range(len(rows)))
        healthy = rows[found.flaws[rows] == 0]
        if len(healthy):
            assert max(np.array(values)[healthy]) == values[rows[0]]


def test_a_picture_under_many_labels_is_a_placeholder():
    """Four labels are too many for a photo; three are, for a drawing."""
    labels = csr_array(np.eye(9)[[0, 1, 2, 3, 4, 5, 6, 0, 1, 2]])
    groups = np.array([0, 0, 0, 0, 4, 4, 4, 7, 7, 7])
    vectors = np.zeros((10, len(MEASURES)), np.float32)
    vectors[4:7, MEASURES.index("page")] = 0.9
    measured = Embedding(None, vectors, None, np.zeros((10, 16), np.uint8), {})
    found = screen(measured, groups, labels).has("placeholder")
    assert found.tolist() == [True] * 7 + [False] * 3


def test_an_image_with_several_labels_of_its_own_is_no_placeholder():
    labels = csr_array(np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]))
    assert not screen(None, np.zeros(3, np.intp), labels).has("placeholder").any()


def test_a_new_image_moves_no_other_unless_it_is_a_copy(tmp_path):
    names = [f"{i}.png" for i in range(40)]
    for i, name in enumerate(names):
        Image.new("RGB", (9, 9), (i, 2 * i, 3 * i)).save(tmp_path / name)

    def crawl(n):
        labels = pa.array([0] * n, pa.int32())
        return Crawl("test", tmp_path, pa.table({"image": names[:n], "web_labels": labels}), ("a",))

    def parts(n, groups):
        screening = Screening(groups, np.zeros(n, np.intp), groups, np.zeros(n, np.uint8))
        return split_images(crawl(n), np.arange(n), (0.5, 0.5), screening).numbers

    before = parts(39, np.arange(39))
    grown = np.arange(40)
    grown[39] = 5
    assert (parts(40, grown)[:39] == before).all()
    assert parts(40, grown)[39] == before[5]
    assert {0, 1} == set(before.tolist())


def test_flaws_fit_into_their_bits():
    assert len(FLAWS) <= 8
