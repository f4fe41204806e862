"""What keeps a large crawl within a small machine: top scores, blocks, estimates, files on disk."""

import dataclasses
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import vsgraph
from two_senses import make_two_senses
from vsgraph import TopScores, cli
from vsgraph.common import blocks
from vsgraph.errors import InputError
from vsgraph.method.estimate import check_room

ESTIMATE = importlib.import_module("vsgraph.method.estimate")  # the function has the same name


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(1, 12), n_kept=st.integers(1, 15))
@settings(deadline=None, max_examples=80)
def test_the_highest_scores_are_kept_and_the_rest_keep_their_mass(seed, n_classes, n_kept):
    random = np.random.default_rng(seed)
    dense = np.round(random.uniform(size=(9, n_classes)), 1).astype(np.float32)
    scores = TopScores.of(dense, n_kept=n_kept)
    n_kept = min(n_kept, n_classes)
    np.testing.assert_allclose(scores.values, -np.sort(-dense, axis=1)[:, :n_kept])
    np.testing.assert_allclose(scores[:].sum(axis=1), dense.sum(axis=1), atol=1e-5)
    np.testing.assert_array_equal(scores.max(axis=1), dense.max(axis=1))
    np.testing.assert_array_equal(
        np.take_along_axis(dense, scores.classes.astype(int), axis=1), scores.values
    )
    np.testing.assert_allclose(scores.total, dense.sum(axis=1), atol=1e-5)
    if n_kept == n_classes:
        np.testing.assert_array_equal(np.asarray(scores), dense)
        np.testing.assert_array_equal(scores.argmax(axis=1), dense.argmax(axis=1))
        asked = random.integers(n_classes, size=9)
        np.testing.assert_array_equal(scores.at(asked), dense[np.arange(9), asked])


def test_a_score_that_was_not_kept_is_its_share_of_the_rest():
    scores = TopScores.of([[0.5, 0.1, 0.3, 0.1]], n_kept=2)
    assert scores.at([1])[0] == pytest.approx(0.1)
    np.testing.assert_allclose(scores[0], [0.5, 0.1, 0.3, 0.1])
    np.testing.assert_allclose(np.asarray(scores, float)[0], [0.5, 0.1, 0.3, 0.1], atol=1e-6)


def test_scores_refuse_what_they_cannot_do():
    scores = TopScores.of(np.eye(3), n_kept=2)
    assert repr(scores) == "TopScores(3 rows, 2 of 3 kept)"
    with pytest.raises(InputError, match="along rows only"):
        scores.argmax(axis=0)
    with pytest.raises(InputError, match="read whole rows of scores"):
        scores[0, 1]


def test_more_than_65_thousand_classes_have_their_numbers():
    row = np.zeros((1, 70_000), np.float32)
    row[0, 69_999] = 1
    assert TopScores.of(row, n_kept=3).argmax()[0] == 69_999


def test_keeping_few_scores_changes_no_label():
    crawl = make_two_senses(n=400, n_classes=12)
    whole = crawl.correct(vsgraph.Settings(anchors_per_class=8))
    few = crawl.correct(vsgraph.Settings(anchors_per_class=8, kept_scores=3))
    np.testing.assert_array_equal(whole.final_labels, few.final_labels)
    assert few.final_probs.values.shape == (400, 3)
    np.testing.assert_allclose(few.final_probs.values, whole.final_probs.values[:, :3])
    np.testing.assert_allclose(few.confidence, whole.confidence, atol=0.05)


def test_small_blocks_change_no_result(monkeypatch):
    crawl = make_two_senses(n=300)
    whole = crawl.correct()
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2000)
    cut = crawl.correct()
    np.testing.assert_array_equal(whole.final_labels, cut.final_labels)
    np.testing.assert_allclose(whole.final_probs.values, cut.final_probs.values, atol=1e-4)


@pytest.fixture
def on_disk(tmp_path):
    """A crawl in half precision on disk, and its options for the command."""
    crawl = make_two_senses(n=300)
    cnn = np.full((300, 4), 0.1, np.float16)
    cnn[np.arange(300), crawl.web_labels] = 0.7
    arrays = {
        "features": crawl.features.astype(np.float16),
        "text-embeddings": crawl.text.astype(np.float16),
        "label-embeddings": crawl.meaning,
        "cnn-probs": cnn,
    }
    np.save(tmp_path / "web_labels.npy", crawl.web_labels)
    options = [tmp_path / "web_labels.npy"]
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        options += [f"--{name}", tmp_path / f"{name}.npy"]
    (tmp_path / "names.txt").write_text("one\ntwo\nthree\nfour\n")
    return crawl, [*options, "--classes", tmp_path / "names.txt", "-o", tmp_path / "out"]


def run(options, *more):
    return CliRunner().invoke(cli.main, ["correct", *map(str, options), *more])


def test_arrays_on_disk_are_corrected_by_one_command(on_disk, tmp_path):
    crawl, options = on_disk
    ran = run(options, "--set", "anchors_per_class=8", "--set", "neighbor_search=exact")
    assert ran.exit_code == 0, ran.output
    assert "\nexpected: about " in ran.output
    correction = vsgraph.Run.open(tmp_path / "out").correction
    assert correction.class_names == ("one", "two", "three", "four")
    assert correction.settings.anchors_per_class == 8
    assert correction.graph_recall == 1
    assert (correction.final_labels == crawl.truth).mean() > 0.9
    assert correction.cnn_probs.shape == (300, 4)
    assert isinstance(correction.final_probs.values, np.memmap)


def test_the_command_says_what_it_would_take_and_does_nothing(on_disk, tmp_path):
    ran = run(on_disk[1], "--dry-run")
    assert ran.exit_code == 0
    assert "GB of memory beside the mapped files" in ran.output
    assert not (tmp_path / "out").exists()


def test_the_command_refuses_in_one_line_before_it_starts(on_disk, tmp_path):
    _, options = on_disk
    assert "--set needs NAME=VALUE, as in n_neighbors=10" in run(options, "--set", "k").output
    assert "unknown setting 'neighbours'" in run(options, "--set", "neighbours=3").output
    assert "n_neighbors must be at least 1" in run(options, "--set", "k=0").output
    for name, array, message in (
        ("text-embeddings", np.ones((299, 12)), "has 299 rows, but 300 are needed"),
        ("cnn-probs", np.ones((3, 4)), "has 3 rows, but 300 are needed"),
        ("label-embeddings", np.ones((5, 12)), "has 5 rows, but 4 are needed"),
        ("web_labels", np.full(300, 4), "web_labels must lie in 0..3"),
    ):
        kept = np.load(tmp_path / f"{name}.npy")
        np.save(tmp_path / f"{name}.npy", array)
        ran = run(options, "--dry-run")
        assert ran.exit_code == 1
        assert message in ran.output
        assert "expected" not in ran.output
        np.save(tmp_path / f"{name}.npy", kept)
    (tmp_path / "features.npy").write_bytes(b"no array")
    assert "features.npy is not a complete array; give a .npy file" in run(options).output
    np.savez(tmp_path / "features.npz", a=np.zeros(3))
    (tmp_path / "features.npz").rename(tmp_path / "features.npy")
    assert "features.npy is an archive of arrays" in run(options).output
    (tmp_path / "names.txt").write_bytes(b"\xff\xfe\x00")
    assert "names.txt cannot be read as a list of classes" in run(options).output


def test_too_little_room_is_said_before_the_start(on_disk, tmp_path, monkeypatch):
    _, options = on_disk
    monkeypatch.setattr(ESTIMATE, "available_memory", lambda: 1e6)
    ran = run(options)
    assert ran.exit_code == 1
    assert "of memory, but 1.0 MB are free; close other programs" in ran.output
    assert run(options, "--anyway").exit_code == 0
    huge = vsgraph.Estimate({"graph": 1.0}, memory=0.0, disk=1e18)
    with pytest.raises(
        InputError, match=r"1000000000\.0 GB are needed in .*, but only .* are free"
    ):
        check_room(huge, tmp_path / "not" / "there")


def test_available_memory_is_read_from_the_system_or_unknown(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 2048 kB\n")
    monkeypatch.setattr(ESTIMATE, "Path", lambda _: tmp_path / "meminfo")
    assert ESTIMATE.available_memory() == 2048 * 1024
    monkeypatch.setattr(ESTIMATE, "Path", lambda _: tmp_path / "none")
    counts = {"SC_AVPHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(ESTIMATE.os, "sysconf_names", counts, raising=False)
    monkeypatch.setattr(ESTIMATE.os, "sysconf", counts.__getitem__, raising=False)
    assert ESTIMATE.available_memory() == 3 * 4096
    monkeypatch.setattr(ESTIMATE.os, "sysconf_names", {})
    assert ESTIMATE.available_memory() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"neighbor_search": "exact"},
        {"solver": "adam", "epochs": 5000},
        {"n_neighbors": 20},
        {"anchors_per_class": 500},
        {"gnn_layers": 2},
        {"kept_scores": 200},
    ],
)
def test_what_costs_more_is_expected_to(changes):
    shape = {"n_images": 400_000, "n_dims": 512, "n_classes": 300, "machine_flops": 1e11}
    usual = vsgraph.estimate(vsgraph.Settings(), **shape)
    more = vsgraph.estimate(vsgraph.Settings(**changes), **shape)
    total, other = (sum(plan.seconds.values()) + plan.disk / 1e9 for plan in (usual, more))
    assert other > total


def test_a_warning_on_the_command_line_is_one_line(on_disk):
    ran = run(on_disk[1], "--set", "anchors_per_class=500", "--set", "text_evidence=false")
    line = next(line for line in ran.output.splitlines() if "Warning" in line)
    assert line.startswith("Warning: 4 of 4 classes have fewer than 500 anchors (one, two, three")


def test_an_estimate_of_nothing_is_refused():
    with pytest.raises(InputError, match="n_images must be at least 1"):
        vsgraph.estimate(vsgraph.Settings(), n_images=0, n_dims=8, n_classes=3)


def test_an_estimate_reads_as_a_sentence():
    plan = vsgraph.estimate(
        vsgraph.Settings(), n_images=2_400_000, n_dims=2048, n_classes=1000, machine_flops=1.3e11
    )
    assert str(plan).startswith("about ")
    assert " min (reading " in str(plan)
    few = vsgraph.estimate(vsgraph.Settings(), n_images=500, n_dims=8, n_classes=3)
    assert sum(few.seconds.values()) < 10


def test_a_cnn_that_gives_top_scores_is_as_good_as_a_dense_one():
    crawl = make_two_senses(n=240)
    dense = np.random.default_rng(0).dirichlet(np.ones(4), size=240).astype(np.float32)
    whole = crawl.correct(cnn_probs=dense)
    top = crawl.correct(cnn_probs=TopScores.of(dense, n_kept=4))
    np.testing.assert_array_equal(whole.final_labels, top.final_labels)
    with pytest.raises(InputError, match=r"cnn_probs must have shape \(240, 4\), got \(3, 4\)"):
        crawl.correct(cnn_probs=TopScores.of(dense[:3], n_kept=2))


def test_the_results_of_the_benchmark_are_on_the_page():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "performance.md").read_text()
    results = json.loads((root / "benchmarks" / "results.json").read_text())
    whole = results["whole 500k"]
    assert f"{whole['n_images']:,} x 2048, 500 | {whole['seconds']:.0f}" in page


def test_an_estimate_leaves_out_what_takes_next_to_nothing():
    plan = vsgraph.estimate(vsgraph.Settings(), n_images=10, n_dims=8, n_classes=3)
    few = dataclasses.replace(plan, seconds={"graph": 0.1, "network": 12.0, "scores": 1.0})
    assert str(few).startswith("about 13 s (network 12 s, scores 1 s), ")
