"""What images really show: one rule, whether the crawl says it or a table beside it."""

import io
import json
import tarfile
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_pictures import put
from vsgraph.crawls import load_crawl, read_crawl, save_crawl
from vsgraph.crawls.truth_table import tell_others, truth_as_label, with_truth
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.training.model_scores import judge_model
from vsgraph.training.validation_set import read_validation

WEB = ["cat", "dog", "cat", "dog", "cat"]
SHOWN = [[False, True], [False, False], [False, False], [False, False], [True, False]]
KNOWN = [True, False, True, True, True]


def rows_of(truth):
    return [
        {"path": f"{i}.jpg", "label": web} | ({} if shown is ... else {"truth": shown})
        for i, (web, shown) in enumerate(zip(WEB, truth, strict=True))
    ]


def as_csv(path, truth):
    lines = [",".join(row.values()) for row in rows_of(truth)]
    return put(path, "\n".join(["path,label,truth", *lines]) + "\n")


def as_json_lines(path, truth):
    return put(path, "\n".join(map(json.dumps, rows_of(truth))) + "\n")


def as_parquet(path, truth):
    pq.write_table(pa.Table.from_pylist(rows_of(truth)), path)
    return path


@pytest.mark.parametrize(
    ("write", "ending", "truth"),
    [
        (as_csv, "csv", ["dog", " ", "none", "kat", "cat"]),
        (as_parquet, "parquet", ["dog", None, "none", "kat", "cat"]),
        (as_parquet, "parquet", [["dog"], None, [], ["kat"], ["cat"]]),
        (as_json_lines, "jsonl", ["dog", "", "none", "kat", "cat"]),
        (as_json_lines, "jsonl", ["dog", ..., "none", "kat", "cat"]),
        (as_json_lines, "jsonl", [["dog"], None, [], ["kat"], ["cat", "none"]]),
        (as_json_lines, "jsonl", ["dog", "", [], "kat", ["cat"]]),
    ],
)
def test_nothing_is_unknown_and_a_name_that_is_no_class_shows_none(tmp_path, write, ending, truth):
    table = write(tmp_path / f"c.{ending}", truth)
    crawl = read_crawl(table)
    bare = read_crawl(as_json_lines(tmp_path / "bare.jsonl", [...] * 5))

    assert bare.truth is None
    assert not bare.truth_known.any()
    assert bare.judgeable().tolist() == [0, 1, 2, 3, 4]
    for found in (crawl, with_truth(bare, table)):
        assert found.truth.toarray().tolist() == SHOWN
        assert found.truth_known.tolist() == KNOWN
        assert found.other_truths == {"kat": 1}


def test_several_true_classes_may_stand_in_a_cell(tmp_path):
    table = as_csv(tmp_path / "c.csv", ["dog|cat", "|", "none", "kat", "cat| person"])
    bare = read_crawl(as_json_lines(tmp_path / "bare.jsonl", [...] * 5))
    found = with_truth(bare, table, label_separator="|")

    assert found.truth.toarray().tolist() == [[True, True], *SHOWN[1:]]
    assert found.truth_known.tolist() == KNOWN
    assert found.other_truths == {"kat": 1, "person": 1}


def test_a_truth_that_is_empty_everywhere_is_none(tmp_path):
    crawl = read_crawl(as_csv(tmp_path / "c.csv", [""] * 5))

    assert crawl.truth is None
    with pytest.raises(InputError, match="has no truth for any image of the crawl"):
        with_truth(crawl, tmp_path / "c.csv")


def test_what_is_known_is_kept_on_disk(tmp_path):
    crawl = read_crawl(as_csv(tmp_path / "c.csv", ["dog", "", "none", "kat", "cat"]))
    (tmp_path / "kept").mkdir()
    save_crawl(crawl, tmp_path / "kept")
    kept = load_crawl(tmp_path / "kept")

    assert kept.truth_known.tolist() == KNOWN
    assert kept.other_truths == {"kat": 1}
    assert kept.judgeable().tolist() == [0, 2, 3, 4]
    assert kept.take(slice(1, 3)).truth_known.tolist() == [False, True]


def test_names_that_are_no_class_are_told_once_those_like_a_class_first(tmp_path):
    truth = ["person", "person", "chair", "Dog", "cat"]
    crawl = read_crawl(as_csv(tmp_path / "c.csv", truth))

    told = r"3 names that are no class: 'Dog' \(1 image; is 'dog' meant\?\), 'person' \(2 images\)"
    with pytest.warns(VSGraphWarning, match=told):
        tell_others(crawl)


def test_no_word_is_said_where_every_name_is_a_class_or_none(tmp_path):
    tell_others(read_crawl(as_csv(tmp_path / "c.csv", ["dog", "", "none", "", "cat"])))


def test_a_model_is_not_judged_by_images_of_unknown_truth(tmp_path):
    crawl = read_crawl(as_csv(tmp_path / "c.csv", ["dog", "", "cat", "cat", "cat"]))
    scores = np.array([[0.1, 0.9], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6], [0.0, 0.0]])
    found = judge_model(SimpleNamespace(class_names=("cat", "dog")), scores, crawl)

    assert (found.n_images, found.n_unreadable) == (3, 1)
    assert found.measures["top_1"] == pytest.approx(2 / 3)


def test_several_classes_in_a_cell_are_hinted_at(tmp_path):
    table = as_csv(tmp_path / "c.csv", ["dog; cat", "", "none", "person; car", "cat"])
    with pytest.warns(VSGraphWarning, match="if ';' separates several classes, pass --label-sep"):
        tell_others(read_crawl(table))
    alone = as_csv(tmp_path / "d.csv", ["kat; or so", "", "none", "", "cat"])
    with pytest.warns(VSGraphWarning, match="no class") as said:
        tell_others(read_crawl(alone))
    assert "--label-separator" not in str(said[0].message)


def test_an_image_with_two_truths_is_refused_and_one_listed_twice_is_not(tmp_path):
    crawl = read_crawl(put(tmp_path / "c.csv", "path,label\na.jpg,ant\nb.jpg,bee\n"))
    twice = put(tmp_path / "t.csv", "path,truth\na.jpg,ant\nb.jpg,bee\na.jpg,ant\n")
    assert with_truth(crawl, twice).truth.toarray().tolist() == [[True, False], [False, True]]
    for other in ("bee", ""):
        path = put(tmp_path / "t.csv", f"path,truth\na.jpg,ant\nb.jpg,bee\na.jpg,{other}\n")
        with pytest.raises(InputError, match=r"t\.csv lists 'a\.jpg' more than once, with differ"):
            with_truth(crawl, path)


def test_paths_that_do_not_fit_are_shown(tmp_path):
    bare = read_crawl(as_json_lines(tmp_path / "bare.jsonl", [...] * 5))
    table = put(tmp_path / "t.csv", "path,truth\nx/0.jpg,cat\n")
    with pytest.raises(InputError, match=r"it has 'x/0.jpg' and the crawl '0.jpg'"):
        with_truth(bare, table)


def test_files_may_be_named_without_their_folder_if_no_two_are_called_the_same(tmp_path):
    for place in ("one/a.jpg", "two/b.jpg", "one/c.jpg", "two/c.jpg"):
        put(tmp_path / place, b"x")
    lines = "path,label\none/a.jpg,cat\ntwo/b.jpg,dog\none/c.jpg,cat\ntwo/c.jpg,dog\n"
    crawl = read_crawl(put(tmp_path / "t.csv", lines))
    truth = put(tmp_path / "truth.csv", "path,truth\na.jpg,dog\nb.jpg,dog\nc.jpg,cat\n")
    judged = with_truth(crawl, truth)
    assert judged.truth_known.tolist() == [True, True, False, False]
    assert judged.truth.toarray()[:2].tolist() == [[False, True], [False, True]]


def test_pictures_in_shards_may_be_named_without_their_shard(tmp_path):
    for shard in ("a", "b"):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            for name, data in (("both.jpg", b"x"), ("both.cls", b"0"),
                               (f"{shard}1.jpg", b"y"), (f"{shard}1.cls", b"1")):  # fmt: skip
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    crawl = read_crawl(tmp_path, classes=["cat", "dog"])
    table = put(tmp_path / "t.csv", "path,truth\nb1.jpg,cat\nboth.jpg,dog\n")
    found = with_truth(crawl, table)
    assert found.table["image"].to_pylist()[3] == "b.tar/b1.jpg"
    assert found.truth_known.tolist() == [False, False, False, True]
    whole = put(tmp_path / "u.csv", "path,truth\na.tar/both.jpg,dog\n")
    assert with_truth(crawl, whole).truth_known.tolist() == [True, False, False, False]


def test_a_table_of_truth_alone_gives_its_classes(tmp_path):
    table = put(tmp_path / "t.csv", "path,truth\nsome/0.jpg,cat\nsome/1.jpg,dog\n")
    assert truth_as_label(table) == {"label": "truth"}
    assert truth_as_label(as_csv(tmp_path / "c.csv", ["cat"] * 5)) == {}
    assert truth_as_label(tmp_path) == {}
    crawl, others = read_validation(table, ["dog"])
    assert (len(crawl), others) == (1, ["cat"])
