"""The record: what it tells, how it saves, loads and becomes a table."""

import dataclasses
import json
import sys

import numpy as np
import pytest

import vsgraph
from vsgraph import Correction, InputError, MissingExtraError, TopScores


def same(a, b):
    for field in dataclasses.fields(Correction):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if field.name == "anchors":
            for part in ("rows", "classes", "match"):
                np.testing.assert_array_equal(getattr(x, part), getattr(y, part))
        elif field.name in {"adjacency", "text_match"}:
            np.testing.assert_array_equal(x.toarray(), y.toarray())
        elif isinstance(x, TopScores):
            for part in ("classes", "values", "rest"):
                np.testing.assert_array_equal(getattr(x, part), getattr(y, part))
        elif isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, y)
        else:
            assert x == y, field.name
    return True


def test_a_saved_record_loads_as_it_was(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    assert same(corrected, Correction.load(tmp_path / "run"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_a_multi_label_record_with_a_cnn_loads_as_it_was(two_senses, tmp_path):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    cnn = np.random.default_rng(0).uniform(size=web.shape)
    multi = two_senses.correct(web_labels=web, cnn_probs=cnn)
    multi.save(tmp_path / "run")
    assert same(multi, Correction.load(tmp_path / "run"))


def test_no_file_of_a_record_is_a_pickle(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    for path in (tmp_path / "run").glob("*.npy"):
        assert np.load(path, allow_pickle=False).dtype != object
    assert json.loads((tmp_path / "run" / "record.json").read_text())["format"] == "vsgraph-2"


def test_an_existing_folder_is_never_overwritten_unasked(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    with pytest.raises(InputError, match="exists already; choose another folder"):
        corrected.save(tmp_path / "run")
    corrected.save(tmp_path / "run", overwrite=True)
    assert len(Correction.load(tmp_path / "run")) == len(corrected)


def test_a_folder_of_other_files_is_left_alone_even_when_asked(corrected, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match="is not a correction of vsgraph and is left alone"):
        corrected.save(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "a.jpg").exists()


def test_an_interrupted_save_leaves_nothing_and_keeps_what_was_there(
    corrected, tmp_path, monkeypatch
):
    corrected.save(tmp_path / "run")
    monkeypatch.setattr(json, "dumps", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        corrected.save(tmp_path / "run", overwrite=True)
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]
    assert same(corrected, Correction.load(tmp_path / "run"))


def test_a_folder_that_is_no_record_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no readable record\.json"):
        Correction.load(tmp_path)
    (tmp_path / "record.json").write_text('{"format": "other"}')
    with pytest.raises(InputError, match="is not in the format vsgraph-2"):
        Correction.load(tmp_path)


def test_a_pickle_among_the_arrays_is_refused(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    np.save(tmp_path / "run" / "rules.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"rules\.npy is not a complete array"):
        Correction.load(tmp_path / "run")


def test_a_record_that_lacks_a_file_is_refused_by_name(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    (tmp_path / "run" / "gnn_probs_rest.npy").unlink()
    with pytest.raises(InputError, match=r"gnn_probs_rest\.npy does not exist"):
        Correction.load(tmp_path / "run")


def test_a_file_in_the_way_is_left_alone(corrected, tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file; choose the name of a folder"):
        corrected.save(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run").read_text() == "mine"


def test_the_table_has_a_row_an_image(corrected, two_senses):
    table = corrected.to_pandas()
    assert list(table.columns) == [
        "web_label", "final_label", "decision", "confidence", "rule", "quality", "shows", "anchor",
    ]  # fmt: skip
    assert len(table) == len(two_senses.truth)
    assert (table["decision"] == "relabel").sum() == corrected.counts["relabel"]
    moved = table["web_label"] != table["final_label"]
    assert (moved == (table["decision"] != "keep")).all()
    assert corrected.to_arrow().num_rows == len(table)


def test_rejected_images_have_no_final_label_in_the_table(corrected):
    labels = corrected.final_labels.copy()
    labels[0] = -1
    changed = dataclasses.replace(corrected, final_labels=labels)
    assert changed.to_arrow()["final_label"][0].as_py() is None
    assert changed.confidence[0] == changed.final_probs[0].max()


def test_a_multi_label_table_lists_names(two_senses):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    table = two_senses.correct(web_labels=web, class_names=list("abcd")).to_arrow()
    assert table["web_label"][0].as_py() == ["a"]


def test_a_missing_extra_is_named(corrected, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vsgraph\[table\]'"):
        corrected.to_pandas()


def test_soft_labels_sum_to_one_and_are_zero_where_rejected(corrected):
    decisions = corrected.decisions.copy()
    decisions[3] = vsgraph.Decision.REJECT
    changed = dataclasses.replace(corrected, decisions=decisions)
    soft = changed.soft_labels()
    assert soft[3].sum() == 0
    np.testing.assert_allclose(np.delete(soft, 3, axis=0).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(changed.soft_labels(with_rejected=True)[:].sum(axis=1), 1, atol=1e-5)


def test_soft_labels_are_squares_where_classes_were_judged_by_themselves(corrected):
    scores = np.tile([0.8, 0.5, 0.2, 0.0], (len(corrected), 1))
    final = vsgraph.TopScores.of(scores, n_kept=3)
    kept = np.full(len(corrected), vsgraph.Decision.KEEP)
    made = dataclasses.replace(corrected, final_probs=final, decisions=kept)
    each = dataclasses.replace(made, unwanted=np.full(len(made), -1)).soft_labels()
    np.testing.assert_allclose(each[0], np.array([64, 25, 4, 0]) / 93, rtol=1e-5)
    together = dataclasses.replace(made, unwanted=None).soft_labels()
    np.testing.assert_allclose(together[0], scores[0] / 1.5, rtol=1e-5)


def test_soft_labels_of_what_could_not_be_judged_are_the_web_labels(corrected, two_senses):
    rules = corrected.rules.copy()
    rules[5] = vsgraph.Rule.NOT_JUDGED
    soft = dataclasses.replace(corrected, rules=rules).soft_labels()
    assert soft[5].tolist() == np.eye(4)[two_senses.web_labels[5]].tolist()


def test_an_explanation_says_where_the_label_comes_from(corrected, two_senses):
    row = int(np.flatnonzero(corrected.decisions == vsgraph.Decision.RELABEL)[0])
    told = corrected.explain(row)
    names = corrected.class_names
    assert told.web_labels == (names[two_senses.web_labels[row]],)
    assert told.final_labels == (names[corrected.final_labels[row]],)
    assert told.decision == "relabel"
    assert told.reason == "another label is likely enough to replace the web label"
    assert next(iter(told.final)) == told.final_labels[0]
    assert told.cnn == {}
    edges = corrected.adjacency[[row]]
    assert told.neighbors[0].weight == edges.data.max()
    assert {link.row for link in told.neighbors} <= set(edges.indices.tolist())
    assert all(link.row in corrected.anchors.rows for link in told.anchors)
    assert str(told).startswith(f"image {row}: ")
    assert len(str(told).splitlines()) == 8


def test_an_anchor_is_its_own_nearest_anchor(corrected):
    row = int(corrected.anchors.rows[0])
    assert corrected.explain(row).anchors[0].row == row


def test_explaining_an_image_that_is_not_there_is_refused(corrected):
    with pytest.raises(InputError, match=r"row must lie in 0\.\.239, got 240"):
        corrected.explain(240)
    with pytest.raises(InputError, match=r"row must be a whole number, got 2\.5"):
        corrected.explain(2.5)


def test_the_record_shows_itself_shortly(corrected):
    assert repr(corrected).startswith("Correction(240 images, 4 classes: keep ")
    assert len(corrected) == 240
