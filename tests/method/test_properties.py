"""What must hold whatever the data."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import vsgraph
from two_senses import QUICK, make_two_senses
from vsgraph.method.network import grow_anchors

SEEDS = st.integers(0, 2**32 - 1)


def test_labels_are_better_after_than_before(two_senses, corrected):
    before = (two_senses.web_labels == two_senses.truth).mean()
    after = (corrected.final_labels == two_senses.truth).mean()
    assert before < 0.75
    assert after > 0.97


def test_the_papers_fusion_alone_corrects_too(two_senses):
    paper = vsgraph.Settings.google_500(anchors_per_class=8, epochs=300)
    corrected = two_senses.correct(paper)
    assert (corrected.final_probs.argmax(axis=1) == two_senses.truth).mean() > 0.9
    assert corrected.text_factor is None
    np.testing.assert_allclose(corrected.gnn_probs[:].sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("form", ["released", "printed"])
def test_the_order_of_rows_does_not_matter(two_senses, form):
    chosen = dataclasses.replace(QUICK, form=form)
    order = np.random.default_rng(1).permutation(len(two_senses.truth))
    straight = two_senses.correct(chosen)
    shuffled = dataclasses.replace(
        two_senses,
        features=two_senses.features[order],
        text=two_senses.text[order],
        web_labels=two_senses.web_labels[order],
    ).correct(chosen)
    np.testing.assert_allclose(shuffled.gnn_probs, straight.gnn_probs[order], atol=1e-6)
    np.testing.assert_allclose(shuffled.final_probs, straight.final_probs[order], atol=1e-3)
    assert (shuffled.final_labels == straight.final_labels[order]).all()


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_the_scale_of_features_does_not_matter_for_the_graph(seed):
    random = np.random.default_rng(seed)
    s = random.normal(size=(30, 6))
    scaled = s * np.exp(random.normal(size=(30, 1)) * 5)
    plain, stretched = (vsgraph.visual_graph(x, n_neighbors=4).toarray() for x in (s, scaled))
    np.testing.assert_allclose(stretched, plain, atol=1e-9)


@given(seed=SEEDS, k=st.integers(1, 10))
@settings(deadline=None, max_examples=25)
def test_the_graph_is_symmetric_without_loops_and_never_negative(seed, k):
    s = np.random.default_rng(seed).normal(size=(25, 5))
    graph = vsgraph.visual_graph(s, n_neighbors=k)
    assert abs(graph - graph.T).max() == 0
    assert graph.diagonal().max() == 0
    assert graph.nnz == 0 or graph.data.min() > 0


def test_lambda_one_gives_the_graphs_labels(two_senses):
    cnn = np.full((len(two_senses.truth), 4), 0.25)
    chosen = dataclasses.replace(QUICK, text_evidence=False, gnn_weight=1.0)
    corrected = two_senses.correct(chosen, cnn_probs=cnn)
    np.testing.assert_array_equal(corrected.final_probs, corrected.gnn_probs)


def test_lambda_zero_gives_the_cnns_labels_where_the_graph_is_unsure(two_senses):
    cnn = np.random.default_rng(0).dirichlet(np.ones(4), len(two_senses.truth))
    chosen = dataclasses.replace(
        QUICK, text_evidence=False, gnn_weight=0.0, confidence_threshold=1.0
    )
    corrected = two_senses.correct(chosen, cnn_probs=cnn)
    np.testing.assert_allclose(corrected.final_probs, cnn)


def test_the_same_seed_gives_the_same_result_and_another_seed_another(two_senses):
    walk = dataclasses.replace(QUICK, solver="adam")
    first, again = two_senses.correct(walk), two_senses.correct(walk)
    other = two_senses.correct(dataclasses.replace(walk, random_state=1))
    np.testing.assert_array_equal(first.gnn_probs, again.gnn_probs)
    np.testing.assert_array_equal(first.final_probs, again.final_probs)
    assert not np.array_equal(first.gnn_probs, other.gnn_probs)


def test_the_optimum_depends_on_no_seed_and_no_epochs(two_senses):
    first = two_senses.correct(QUICK)
    other = two_senses.correct(dataclasses.replace(QUICK, random_state=1, epochs=7))
    np.testing.assert_array_equal(first.final_probs, other.final_probs)


def test_one_hot_rows_of_a_matrix_pick_the_same_anchors_as_integers(two_senses):
    graph = vsgraph.visual_graph(two_senses.features, n_neighbors=5)
    smoothed = vsgraph.smooth_text(two_senses.text, graph, self_weight=0, form="released")
    as_matrix = np.eye(4, dtype=bool)[two_senses.web_labels]
    single, multi = (
        vsgraph.select_anchors(
            vsgraph.text_match(smoothed, two_senses.meaning, labels), per_class=5
        )
        for labels in (two_senses.web_labels, as_matrix)
    )
    assert single.rows.tolist() == multi.rows.tolist()
    assert single.classes.tolist() == multi.classes.tolist()


def test_multi_label_data_goes_through_the_same_call(two_senses):
    """An image carries its query and, half the time, the truth as web labels."""
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    also = np.random.default_rng(0).uniform(size=len(web)) < 0.5
    web[also, two_senses.truth[also]] = True
    corrected = two_senses.correct(web_labels=web)
    truth = np.eye(4, dtype=bool)[two_senses.truth]
    assert corrected.final_labels.shape == web.shape
    assert (web == truth).all(axis=1).mean() < 0.75
    assert (corrected.final_labels == truth).all(axis=1).mean() > 0.85
    assert (corrected.final_probs[:] <= 1).all()


def test_the_nus_preset_can_give_an_image_several_labels():
    random = np.random.default_rng(0)
    pairs = np.array([random.choice(6, 2, replace=False) for _ in range(600)])
    web = np.zeros((600, 6), bool)
    np.put_along_axis(web, pairs, values=True, axis=1)
    features = np.abs(random.normal(size=(6, 32)))[pairs].sum(axis=1)
    features += 0.3 * random.uniform(size=features.shape)
    meaning = random.normal(size=(6, 48))
    text = meaning[pairs].sum(axis=1) + 0.3 * random.normal(size=(600, 48))
    for form in ("released", "printed"):
        chosen = vsgraph.Settings.nus_81_web(epochs=300, form=form, learning_rate=0.05)
        made = vsgraph.correct(features, text, meaning, web, settings=chosen)
        assert (made.final_labels.sum(axis=1) == 2).mean() > 0.75, form
        assert (made.final_labels <= web).all(axis=1).mean() > 0.75, form


def test_a_sparse_matrix_of_web_labels_is_the_same_as_a_dense_one(two_senses):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    dense, sparse = (two_senses.correct(web_labels=w) for w in (web, csr_array(web)))
    np.testing.assert_array_equal(dense.final_labels, sparse.final_labels)


def test_fp16_and_lists_and_fortran_order_are_taken(two_senses):
    plain = two_senses.correct()
    odd = dataclasses.replace(
        two_senses,
        features=np.asfortranarray(two_senses.features.astype(np.float16)),
        text=two_senses.text.tolist(),
    ).correct()
    assert (odd.final_labels == plain.final_labels).mean() > 0.99


def test_inputs_are_not_changed(two_senses):
    copies = [a.copy() for a in (two_senses.features, two_senses.text, two_senses.meaning)]
    two_senses.correct()
    for before, after in zip(
        copies, (two_senses.features, two_senses.text, two_senses.meaning), strict=True
    ):
        np.testing.assert_array_equal(before, after)


def test_a_graph_of_other_features_replaces_that_of_the_nodes(two_senses):
    weak = dataclasses.replace(two_senses, features=np.ones_like(two_senses.features))
    graph = vsgraph.visual_graph(two_senses.features, n_neighbors=5)
    unsure = dataclasses.replace(QUICK, purity=0.5)  # one look for all pictures: nothing is sure
    corrected = weak.correct(unsure, graph=graph)
    right = (corrected.final_probs.argmax() == two_senses.truth).mean()
    assert right > (two_senses.web_labels == two_senses.truth).mean()


def test_a_cleanlab_graph_of_distances_is_adopted(two_senses):
    found = vsgraph.nearest_neighbors(two_senses.features, n_neighbors=5)
    neighbors, cosines = found.rows, found.similarities
    n = len(neighbors)
    distances = csr_array(
        (1 - cosines.ravel(), neighbors.ravel(), np.arange(n + 1) * 5), shape=(n, n)
    )
    adopted = vsgraph.adopt_graph(distances, n_images=n, kind="distance")
    own = vsgraph.visual_graph(two_senses.features, n_neighbors=5)
    np.testing.assert_allclose(adopted.toarray(), own.toarray(), atol=1e-12)


def test_duplicates_in_a_cleanlab_graph_are_stored_zeros_and_become_weight_one():
    stored = csr_array((np.array([0.0, 0.0]), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    adopted = vsgraph.adopt_graph(stored, n_images=2, kind="distance")
    assert adopted.toarray().tolist() == [[0, 1], [1, 0]]


def test_anchors_by_source_come_from_every_source(two_senses):
    sources = np.where(np.arange(len(two_senses.truth)) % 3 == 0, "flickr", "google")
    corrected = two_senses.correct(sources=sources)
    for c in range(4):
        rows = corrected.anchors.rows[corrected.anchors.classes == c]
        assert (sources[rows] == "flickr").sum() == 8
        assert (sources[rows] == "google").sum() == 8


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("form", ["released", "printed"])
def test_any_number_of_layers_and_any_self_weight_work(two_senses, layers, form):
    chosen = dataclasses.replace(QUICK, gnn_layers=layers, self_weight=0.5, form=form)
    corrected = two_senses.correct(chosen)
    assert (corrected.final_labels == two_senses.truth).mean() > 0.9


def test_an_image_the_graph_is_sure_of_becomes_an_anchor_and_no_class_is_lost():
    before = vsgraph.Anchors(np.array([0, 1]), np.array([0, 1]), np.ones(2))
    probs = np.array([[0.9, 0.0], [0.2, 0.6], [0.8, 0.1]])
    after = grow_anchors(probs, before, confidence_threshold=0.7)
    assert after.rows.tolist() == [0, 2, 1]
    assert after.classes.tolist() == [0, 0, 1]
    assert after.match.tolist() == [0.9, 0.8, 0.6]


def test_more_rounds_find_more_anchors(two_senses):
    chosen = dataclasses.replace(QUICK, rounds=3, weight_decay=1e-6, epochs=300)
    corrected = two_senses.correct(chosen)
    assert len(corrected.anchors) > 32
    assert (corrected.final_labels == two_senses.truth).mean() > 0.95


def test_noise_can_be_the_majority():
    """More than half of a query's images show something else; the text still tells."""
    crawl = make_two_senses(noise=0.6, seed=3)
    corrected = crawl.correct()
    assert (crawl.web_labels == crawl.truth).mean() < 0.5
    assert (corrected.final_labels == crawl.truth).mean() > 0.95
