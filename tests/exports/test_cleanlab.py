"""Exports for cleanlab: the arrays, and that cleanlab finds issues in them."""

import dataclasses
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from exports_data import NAMES, REJECTED, RELABELED, N
from scipy.sparse import csr_array, load_npz

import vsgraph
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.exports import export
from vsgraph.exports.cleanlab import neighbor_distances


def arrays(out):
    return {path.stem: np.load(path) for path in out.glob("*.npy")}


def test_cleanlab_arrays_are_in_the_order_of_the_names(crawl, made, out):
    export(crawl, made, out, to="cleanlab")
    found = arrays(out)
    names = (out / "class_names.txt").read_text().splitlines()
    assert names == sorted(NAMES)
    assert [names[c] for c in found["labels"]] == [NAMES[c] for c in made.web_labels]
    assert found["final_labels"][REJECTED] == -1
    assert names[found["final_labels"][RELABELED]] == "owl"
    probs = np.asarray(made.final_probs)[:, [NAMES.index(name) for name in names]]
    probs /= probs.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["pred_probs"], probs, atol=1e-6)
    assert found["pred_probs"].dtype == np.float32


def test_the_graph_for_cleanlab_has_equally_many_neighbors_nearest_first(crawl, made, out):
    export(crawl, made, out, to="cleanlab")
    graph, adjacency = load_npz(out / "knn_graph.npz"), made.adjacency.toarray()
    k = int((adjacency > 0).sum(axis=1).min())
    assert graph.nnz == N * k
    for row in range(N):
        near = graph.indices[row * k : (row + 1) * k]
        distances = graph.data[row * k : (row + 1) * k]
        assert row not in near
        np.testing.assert_allclose(distances, 1 - adjacency[row, near], atol=1e-6)
        np.testing.assert_allclose(1 - distances, np.sort(adjacency[row])[::-1][:k], atol=1e-6)


def test_images_without_neighbors_get_far_ones_and_twins_are_at_zero():
    features = np.array([[1.0, 0], [1, 0], [1, 0.1], [0, 0], [0, 0], [1, 0.2], [1, 0.3]])
    adjacency = vsgraph.visual_graph(features, n_neighbors=2)
    for k in (None, 3, 6):
        graph = neighbor_distances(adjacency, n_neighbors=k)
        near = graph.indices.reshape(7, -1)
        distances = graph.data.reshape(7, -1)
        assert near.shape[1] == (k or 2)
        assert (distances[[3, 4]] == 1).all()
        assert distances[0, 0] == 0
        assert near[0, 0] == 1
        assert (np.diff(distances, axis=1) >= 0).all()
        for row in range(7):
            assert len(set(near[row]) - {row}) == near.shape[1]


def test_a_graph_without_edges_is_not_written(crawl, made, out):
    alone = dataclasses.replace(made, adjacency=csr_array((N, N)))
    done = export(crawl, alone, out, to="cleanlab")
    assert done.problems.counts == {"no neighbors": 1}
    assert not (out / "knn_graph.npz").exists()


def test_options_for_cleanlab_are_checked(crawl, made, out, monkeypatch):
    with pytest.raises(InputError, match=r"n_neighbors must be in 1\.\.11, got 12"):
        export(crawl, made, out, to="cleanlab", n_neighbors=12)
    with pytest.raises(InputError, match="scores must be one of final, gnn, cnn"):
        export(crawl, made, out, to="cleanlab", scores="text")
    with pytest.raises(InputError, match="made without a CNN"):
        export(crawl, made, out, to="cleanlab", scores="cnn")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(InputError, match="but only 0 bytes are free; make room"):
        export(crawl, made, out, to="cleanlab")
    assert not out.parent.exists()


@pytest.fixture
def cleanlab():
    return pytest.importorskip("cleanlab")


@pytest.mark.parametrize("scores", ["final", "gnn"])
def test_cleanlab_finds_issues_in_the_arrays(two_senses, tmp_path, cleanlab, scores):
    from cleanlab.filter import find_label_issues

    names = ("dog", "ant", "cat", "bee")
    made = two_senses.correct(class_names=names)
    web = two_senses.web_labels
    table = pa.table(
        {"image": [f"{i}.jpg" for i in range(len(web))], "web_labels": pa.array(web, pa.int32())}
    )
    crawl = Crawl("test", tmp_path, table, names)
    export(crawl, made, tmp_path / "out", to="cleanlab", scores=scores)
    found = arrays(tmp_path / "out")
    issues = find_label_issues(found["labels"], found["pred_probs"], n_jobs=1)
    wrong = two_senses.truth != web
    assert wrong[issues].mean() > 0.9
    assert issues[wrong].mean() > 0.3


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
def test_datalab_takes_the_graph(two_senses, tmp_path, cleanlab, capsys):
    names = ("dog", "ant", "cat", "bee")
    made = two_senses.correct(class_names=names)
    web = two_senses.web_labels
    table = pa.table(
        {"image": [f"{i}.jpg" for i in range(len(web))], "web_labels": pa.array(web, pa.int32())}
    )
    crawl, out = Crawl("test", tmp_path, table, names), tmp_path / "out"
    export(crawl, made, out, to="cleanlab")
    lab = cleanlab.Datalab({"y": np.load(out / "labels.npy")}, label_name="y", verbosity=0)
    graph = load_npz(out / "knn_graph.npz")
    k = graph.nnz // len(web)
    lab.find_issues(
        knn_graph=graph,
        pred_probs=np.load(out / "pred_probs.npy"),
        issue_types={"label": {}, "outlier": {"k": k}, "near_duplicate": {}},
    )
    assert "Error in" not in capsys.readouterr().out
    found = lab.get_issues()
    assert {"is_label_issue", "is_outlier_issue", "is_near_duplicate_issue"} <= set(found.columns)
    assert found["is_label_issue"].any()


def test_cleanlab_takes_several_labels(multi_crawl, multi, out, cleanlab):
    from cleanlab.multilabel_classification.filter import find_label_issues

    export(multi_crawl, multi, out, to="cleanlab")
    found = arrays(out)
    labels = [np.flatnonzero(row).tolist() for row in found["labels"]]
    issues = find_label_issues(labels, found["pred_probs"], n_jobs=1)
    assert issues.shape == (N,)
    assert (out / "class_names.txt").read_text().splitlines() == sorted(NAMES)
    assert found["labels"][0].tolist() == [False, False, True]


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
def test_datalab_takes_images_without_neighbors_for_outliers(two_senses, cleanlab, capsys):
    features = two_senses.features.copy()
    features[[7, 100]] = 0
    graph = neighbor_distances(vsgraph.visual_graph(features, n_neighbors=5), n_neighbors=5)
    labels = two_senses.web_labels
    lab = cleanlab.Datalab({"y": labels}, label_name="y", verbosity=0)
    lab.find_issues(knn_graph=graph, issue_types={"outlier": {"k": 5}, "near_duplicate": {}})
    assert "Error in" not in capsys.readouterr().out
    found = lab.get_issues()
    assert found["is_outlier_issue"][[7, 100]].all()
    assert not found["is_near_duplicate_issue"][[7, 100]].any()
