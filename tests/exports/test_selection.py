"""Which images an export holds: by quality, and in parts."""

import csv
import dataclasses
import json
import tarfile

import numpy as np
import pyarrow as pa
import pytest
from exports_data import LOST, NAMES, REJECTED, N, make_crawl

from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports import FORMATS, export
from vsgraph.exports.selection import Selection, split_images
from vsgraph.result.parts import Decision
from vsgraph.result.scores import TopScores


@pytest.fixture(scope="module")
def doubted(made):
    """The correction with labels that are doubted one by one: confidences from 0.51 to 0.95."""
    belief = np.linspace(0.51, 0.95, N)
    final = np.where(made.final_labels < 0, made.web_labels, made.final_labels)
    table = np.full((N, 3), 0.01, np.float32)
    table[np.arange(N), final] = belief
    probs = TopScores.of(table, n_kept=3)
    return dataclasses.replace(made, final_probs=probs, unwanted=np.full(N, -1, np.int16))


def exported_rows(out):
    with out.open(newline="", encoding="utf-8") as file:
        return [int(row["image"].split("/")[1].split(".")[0]) for row in csv.DictReader(file)]


def test_labels_less_probable_are_left_out(crawl, doubted, out):
    done = export(crawl, doubted, out, to="csv", min_confidence=0.8)
    assert exported_rows(out) == [row for row in range(N) if doubted.confidence[row] >= 0.8]
    assert "other images left out by the choice made: 7" in str(done)


def test_the_surest_of_each_class(crawl, doubted, out):
    export(crawl, doubted, out, to="csv", top=2)
    rows = exported_rows(out)
    final = doubted.final_labels
    for number in range(3):
        given = np.flatnonzero(final == number)
        best = sorted(given[np.argsort(-doubted.confidence[given])][:2])
        assert [row for row in rows if final[row] == number] == best


def test_as_many_as_leave_the_wanted_share_right(crawl, doubted, out):
    done = export(crawl, doubted, out, to="csv", purity=0.81)
    rows = exported_rows(out)
    assert done.right == pytest.approx(doubted.confidence[rows].mean())
    assert done.right >= 0.81
    others = np.setdiff1d(np.flatnonzero(doubted.decisions != Decision.REJECT), rows)
    more = [*rows, max(others, key=lambda row: doubted.confidence[row])]
    assert doubted.confidence[more].mean() < 0.81
    assert f"estimated: {done.right:.1%} of the labels are right" in str(done)


def test_purity_needs_labels_that_are_doubted(multi_crawl, multi, out):
    with pytest.raises(InputError, match="doubted one by one"):
        export(multi_crawl, multi, out, to="csv", purity=0.9)


def test_rejected_images_come_along_only_if_asked(crawl, doubted, tmp_path):
    export(crawl, doubted, tmp_path / "a.csv", to="csv", top=1)
    export(crawl, doubted, tmp_path / "b.csv", to="csv", top=1, rejected=True)
    assert REJECTED not in exported_rows(tmp_path / "a.csv")
    assert REJECTED in exported_rows(tmp_path / "b.csv")


@pytest.mark.parametrize("to", sorted(set(FORMATS) - {"cleanlab"}))
def test_every_format_can_be_narrowed(crawl, doubted, out, to):
    done = export(crawl, doubted, out, to=to, min_confidence=0.9)
    assert done.n_images == (doubted.confidence >= 0.9).sum()


def test_cleanlab_needs_every_image(crawl, doubted, out):
    with pytest.raises(InputError, match="cleanlab needs every image"):
        export(crawl, doubted, out, to="cleanlab", top=1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_confidence": 2}, "min_confidence must"),
        ({"top": 0}, "top must be at least 1"),
        ({"split": 1.0}, "split must be the share of train"),
        ({"split": (0.5, 0.4)}, "split must be the share of train"),
        ({"split": (0.2,) * 5}, "split must be the share of train"),
    ],
)
def test_wrong_choices_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Selection(**wrong)


# --- splits


def many(tmp_path, order):
    """A crawl of files in some order; of ten, two have the same content."""
    for i in order:
        (tmp_path / f"{i}.jpg").write_bytes(b"same" if i % 10 == 0 else str(i).encode())
    labels = pa.array([0] * len(order), pa.int32())
    table = pa.table({"image": [f"{i}.jpg" for i in order], "web_labels": labels})
    return Crawl("test", tmp_path, table, ("ant",))


def parts_of(crawl, shares=(0.8, 0.2)):
    split = split_images(crawl, np.arange(len(crawl)), shares)
    return dict(zip(crawl.table["image"].to_pylist(), split.numbers.tolist(), strict=True))


def test_a_crawl_that_grows_keeps_its_parts(tmp_path):
    small = parts_of(many(tmp_path, range(300)))
    order = np.random.default_rng(0).permutation(1000).tolist()
    large = parts_of(many(tmp_path, order))
    assert small.items() <= large.items()
    assert np.mean(list(large.values())) == pytest.approx(0.2, abs=0.04)


def test_copies_of_a_picture_stay_together(tmp_path):
    parts = parts_of(many(tmp_path, range(300)), (0.4, 0.3, 0.3))
    assert len({parts[f"{i}.jpg"] for i in range(0, 300, 10)}) == 1
    assert set(parts.values()) == {0, 1, 2}


def test_a_picture_that_is_missing_is_placed_by_its_path(tmp_path):
    crawl = many(tmp_path, range(50))
    for path in tmp_path.iterdir():
        path.unlink()
    assert set(parts_of(crawl, (0.5, 0.5)).values()) == {0, 1}


def test_formats_keep_the_parts_apart(crawl, made, tmp_path):
    export(crawl, made, tmp_path / "table.csv", to="csv", split=0.5)
    with (tmp_path / "table.csv").open(newline="") as file:
        parts = {row["image"]: row["split"] for row in csv.DictReader(file)}
    kept = [i for i in range(N) if i not in {REJECTED, LOST}]
    images = crawl.table["image"].take(kept).to_pylist()
    expected = {part: {i for i in images if parts[i] == part} for part in ("train", "test")}
    assert all(expected.values())

    done = export(crawl, made, tmp_path / "folder", to="imagefolder", split=0.5)
    found = {
        part: {path.name for path in (tmp_path / "folder" / part).glob("*/*")} for part in expected
    }
    assert found == {part: {i.split("/")[1] for i in some} for part, some in expected.items()}
    assert json.loads((tmp_path / "folder" / "classes.json").read_text()).keys() <= set(NAMES)
    n_train, n_test = (sum(parts[i] == part for i in crawl.table["image"].to_pylist()
                           if i != "q2/5.png") for part in ("train", "test"))  # fmt: skip
    assert f"split: train {n_train}, test {n_test}" in str(done)

    export(crawl, made, tmp_path / "shards", to="webdataset", split=0.5)
    for part, some in expected.items():
        with tarfile.open(tmp_path / "shards" / f"{part}-000000.tar") as tar:
            names = [name for name in tar.getnames() if name.endswith(".json")]
            assert {json.load(tar.extractfile(name))["path"] for name in names} == some

    export(crawl, made, tmp_path / "list", to="imglist", split=0.5)
    lines = (tmp_path / "list" / "imglist-test.txt").read_text().splitlines()
    assert {line.rpartition(" ")[0] for line in lines} - {"q0/9.png"} == expected["test"]


# --- what the user is told


def test_an_export_says_what_links_mean_and_who_is_left_out(crawl, made, tmp_path):
    done = str(export(crawl, made, tmp_path / "a", to="imagefolder"))
    assert f"the pictures are links to {crawl.root.absolute()} and are lost if it moves" in done
    assert "rejected images left out: 1 (--rejected includes them)" in done
    copied = str(export(crawl, made, tmp_path / "b", to="imagefolder", mode="copy", rejected=True))
    assert "the pictures are" not in copied
    assert "left out" not in copied


def test_a_class_without_a_test_image_is_told(crawl, made, out):
    assert "classes without an image in one of them: 3" in str(
        export(crawl, made, out, to="csv", split=0.999)
    )


def test_the_card_says_where_labels_come_from_and_how_sure_they_are(tmp_path, multi, doubted):
    names = ("<b>owl", "a|b", "![x](http://evil.example)")
    crawl = make_crawl(tmp_path / "birds", names=names)
    one = dataclasses.replace(doubted, class_names=names)
    done = export(crawl, one, tmp_path / "out", to="imagefolder")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# birds, labels corrected by vsgraph")
    assert "| label replaced | 1 | 1 |" in card
    assert "| rejected | 1 | 0 |" in card
    assert f"By estimate, {done.right:.1%} of the labels in this export are right" in card
    assert "\n| !\\[x\\](http://evil.example) |" in card
    assert "&lt;b>owl" in card.replace("&gt;", ">")
    assert "a\\|b" in card
    counts = [int(line.split("|")[2]) for line in card.splitlines() if " to " in line[:14]]
    assert sum(counts) == N - 1
    export(make_crawl(tmp_path / "c", several=True), multi, tmp_path / "other", to="soft")
    assert "By estimate" not in (tmp_path / "other" / "README.md").read_text()
