"""The library against the literal transcription of the paper's equations."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import vsgraph
from vsgraph.common.checks import check_labels
from vsgraph.method import linear_fit
from vsgraph.method.linear_fit import (
    AnchorTask,
    anchor_loss,
    anchor_task,
    train_by_adam,
    train_to_optimum,
)
from vsgraph.method.network import Network, NetworkInputs
from vsgraph.result.parts import Anchors

SEEDS = st.integers(0, 2**32 - 1)
OPERATORS = {"printed": oracle.printed_operator, "released": oracle.released_operator}


def features_of(random, n=14, d=4, kind="normal"):
    """Random features; 'adversarial' ones have duplicates, zeros, ties and negative cosines."""
    s = random.normal(size=(n, d))
    if kind == "positive":
        return np.abs(s)
    if kind == "adversarial":
        s = np.round(s)
        s[random.integers(n)] = 0
        s[random.integers(n, size=3)] = s[random.integers(n)]
    return s


KINDS = st.sampled_from(["normal", "positive", "adversarial"])


@given(seed=SEEDS, k=st.integers(1, 13), kind=KINDS)
@settings(deadline=None, max_examples=60)
def test_the_visual_graph_is_equation_1(seed, k, kind):
    s = features_of(np.random.default_rng(seed), kind=kind)
    if kind == "adversarial":  # float rounding may order equal cosines differently
        s = s[np.linalg.norm(s, axis=1) > 0]
        similarities = vsgraph.nearest_neighbors(s, n_neighbors=min(k, len(s) - 1)).similarities
        for i, row in enumerate(similarities):
            others = sorted((oracle.cos(s[i], s[j]) for j in range(len(s)) if j != i), reverse=True)
            np.testing.assert_allclose(row, others[: len(row)], atol=1e-12)
        return
    graph = vsgraph.visual_graph(s, n_neighbors=k)
    np.testing.assert_allclose(graph.toarray(), oracle.eq1(s, k), atol=1e-12)


@given(seed=SEEDS, w=st.sampled_from([0.0, 0.3, 1.0, 5.0]), form=st.sampled_from(list(OPERATORS)))
@settings(deadline=None, max_examples=60)
def test_smoothing_is_equation_4(seed, w, form):
    random = np.random.default_rng(seed)
    A = oracle.eq1(features_of(random), 3)
    A[0, :] = A[:, 0] = 0  # an isolated node
    t = random.normal(size=(14, 5))
    smoothed = vsgraph.smooth_text(t, vsgraph_csr(A), self_weight=w, form=form)
    np.testing.assert_allclose(smoothed, oracle.eq4(A, w, t, OPERATORS[form]), atol=1e-12)


@given(seed=SEEDS, m=st.integers(1, 8), n_classes=st.integers(1, 4), ties=st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_anchors_are_equation_5(seed, m, n_classes, ties):
    random = np.random.default_rng(seed)
    t_hat, l = random.normal(size=(20, 5)), random.normal(size=(n_classes, 5))
    if ties:
        t_hat[10:] = t_hat[:10]
    t_hat[3] = 0
    y = random.integers(n_classes, size=20)
    anchors = vsgraph.select_anchors(vsgraph.text_match(t_hat, l, y), per_class=m)
    assert set(anchors.rows.tolist()) == oracle.eq5(t_hat, l, y.tolist(), m)
    assert (anchors.classes == y[anchors.rows]).all()


@given(seed=SEEDS, layers=st.integers(1, 3), w=st.sampled_from([0.0, 1.0]))
@settings(deadline=None, max_examples=40)
def test_the_printed_network_is_equation_6(seed, layers, w):
    random = np.random.default_rng(seed)
    s, A, S, thetas = network(random, layers, w, "printed")
    one_matrix = np.linalg.multi_dot([*thetas, np.eye(3)])
    inputs = NetworkInputs(s, np.ones(len(s)), S, layers, "printed")
    p_g = np.asarray(Network(inputs, one_matrix, np.ones(3, bool), softmax=True))
    np.testing.assert_allclose(p_g, oracle.eq6_printed(A, w, s, thetas), atol=1e-10)


@given(seed=SEEDS, w=st.sampled_from([0.0, 1.0]))
@settings(deadline=None, max_examples=40)
def test_the_released_network_is_equation_6_as_the_authors_wrote_it(seed, w):
    random = np.random.default_rng(seed)
    s, A, S, _ = network(random, 1, w, "released")
    theta = random.normal(size=(8, 3))
    inputs = NetworkInputs(s, np.ones(len(s)), S, 1, "released")
    p_g = np.asarray(Network(inputs, theta, np.ones(3, bool), softmax=False))
    np.testing.assert_allclose(p_g, oracle.eq6_released(A, w, s, theta), atol=1e-10)


@given(seed=SEEDS, layers=st.integers(1, 3), form=st.sampled_from(list(OPERATORS)))
@settings(deadline=None, max_examples=40)
def test_some_rows_are_the_same_rows_of_all_also_in_half_precision(seed, layers, form):
    random = np.random.default_rng(seed)
    s, _, S, _ = network(random, layers, 0.5, form)
    scale, rows = random.uniform(size=len(s)), np.array([5, 1, 7])
    steps = [s * scale[:, None]]
    for _ in range(layers):
        steps.append(S @ steps[-1])
    whole = steps[-1] if form == "printed" else np.hstack(steps)
    inputs = NetworkInputs(s, scale, S, layers, form)
    np.testing.assert_allclose(inputs.at(rows), whole[rows], atol=1e-9)
    half = dataclasses.replace(inputs, features=s.astype(np.float16)).at(rows)
    np.testing.assert_allclose(half, whole[rows], atol=0.05)


@given(seed=SEEDS, form=st.sampled_from(list(OPERATORS)))
@settings(deadline=None, max_examples=60)
def test_the_loss_is_equation_7_and_its_gradient_is_right(seed, form):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=14)
    rows = random.choice(14, 6, replace=False)
    anchors = Anchors(rows, y[rows], np.ones(6))
    task = anchor_task(anchors, check_labels("y", y, n_rows=14, n_classes=3))
    inputs, theta = random.normal(size=(6, 4)), random.normal(size=(4, 3))
    loss, gradient = anchor_loss(theta, inputs, task, form=form)
    z = inputs @ theta
    h = np.zeros((14, 3))
    if form == "printed":
        h[task.rows] = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        expected = oracle.eq7_printed(h, set(rows.tolist()), y)
    else:
        h[task.rows] = 1 / (1 + np.exp(-z))
        expected = oracle.eq7_released(h, set(rows.tolist()), y, 3)
    assert loss * 6 == pytest.approx(expected, rel=1e-5)
    nudge = np.zeros_like(theta)
    nudge[1, 2] = 1e-6
    up, down = (anchor_loss(theta + d, inputs, task, form=form)[0] for d in (nudge, -nudge))
    assert (up - down) / 2e-6 == pytest.approx(gradient[1, 2], abs=1e-6)


def test_a_web_label_that_is_no_anchor_neither_counts_for_nor_against():
    labels = check_labels("y", [[True, True, False]], n_rows=1, n_classes=3)
    task = anchor_task(Anchors(np.array([0]), np.array([0]), np.ones(1)), labels)
    assert task.targets.toarray().tolist() == [[1, 0, 0]]
    assert task.unknown.toarray().tolist() == [[0, 1, 0]]
    loss, gradient = anchor_loss(np.zeros((1, 3)), np.ones((1, 1)), task, form="released")
    assert loss == pytest.approx(2 * np.log(2))
    assert gradient[0, 1] == 0


@pytest.mark.parametrize("form", list(OPERATORS))
def test_the_loss_by_blocks_is_that_of_all_anchors(form, monkeypatch):
    inputs, task = anchor_problem(np.random.default_rng(0), n_rows=20, n_dims=4)
    theta = np.random.default_rng(1).normal(size=(4, 3))
    whole = anchor_loss(theta, inputs, task, form=form)
    monkeypatch.setattr(linear_fit, "MOST_ROWS", 7)
    loss, gradient = anchor_loss(theta, inputs, task, form=form)
    assert loss == pytest.approx(whole[0])
    np.testing.assert_allclose(gradient, whole[1], atol=1e-12)


def test_training_with_many_classes_holds_no_array_of_anchors_times_classes():
    n = 4000
    rows = np.arange(n)
    labels = check_labels("y", rows, n_rows=n, n_classes=n)
    inputs = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    tracemalloc.start()
    task = anchor_task(Anchors(rows, rows, np.ones(n)), labels)
    anchor_loss(np.zeros((2, n), np.float32), inputs, task, form="released")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * n  # an array of float32


@given(seed=SEEDS, tau_f=st.floats(0, 1), lam=st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_fusion_is_equation_8(seed, tau_f, lam):
    random = np.random.default_rng(seed)
    p_g, p_c = random.uniform(size=(9, 3)), random.uniform(size=(9, 3))
    fused = vsgraph.fuse(p_g, p_c, confidence_threshold=tau_f, gnn_weight=lam)
    np.testing.assert_allclose(fused, oracle.eq8(p_g, p_c, tau_f, lam), atol=1e-12)


def test_a_row_exactly_at_the_threshold_is_confident():
    fused = vsgraph.fuse([[0.7, 0.0]], [[0.0, 1.0]], confidence_threshold=0.7, gnn_weight=0.5)
    assert fused.tolist() == [[0.7, 0.0]]


def vsgraph_csr(A):
    from scipy.sparse import csr_array

    return csr_array(A)


def network(random, layers, w, form):
    s = features_of(random)
    A = oracle.eq1(s, 3)
    S = vsgraph.propagation_matrix(vsgraph_csr(A), self_weight=w, form=form)
    thetas = [random.normal(size=(4, 4)) for _ in range(layers - 1)] + [random.normal(size=(4, 3))]
    return s, A, S, thetas


def test_adam_is_the_textbook_adam():
    """Two steps by hand, from the same start."""
    targets, unknown = vsgraph_csr([[1.0, 0.0]]), vsgraph_csr([[0.0, 0.0]])
    task = AnchorTask(np.array([0]), targets, unknown, np.ones(1))
    x = np.array([[2.0]])
    chosen = vsgraph.Settings(epochs=2, learning_rate=0.1, weight_decay=0.01)
    bound = 1 / np.sqrt(2)
    theta = np.random.default_rng(0).uniform(-bound, bound, (1, 2))
    m = v = np.zeros((1, 2))
    for step in (1, 2):
        g = x.T @ (1 / (1 + np.exp(-(x @ theta))) - [[1, 0]]) + 0.01 * theta
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta = theta - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(train_by_adam(x, task, settings=chosen), theta, rtol=1e-6)


def anchor_problem(random, *, n_rows, n_dims, n_classes=3):
    y = random.integers(n_classes, size=n_rows)
    anchors = Anchors(np.arange(n_rows), y, np.ones(n_rows))
    labels = check_labels("y", y, n_rows=n_rows, n_classes=n_classes)
    return random.normal(size=(n_rows, n_dims)), anchor_task(anchors, labels)


def decayed(weights, inputs, task, chosen):
    loss, slope = anchor_loss(weights, inputs, task, form=chosen.form)
    return loss + chosen.weight_decay / 2 * (
        weights**2
    ).sum(), slope + chosen.weight_decay * weights


@pytest.mark.slow
@given(seed=SEEDS, n_dims=st.sampled_from([3, 30]), form=st.sampled_from(list(OPERATORS)))
@settings(deadline=None, max_examples=30)
def test_the_optimum_has_no_slope_left_and_adam_goes_there(seed, n_dims, form):
    inputs, task = anchor_problem(np.random.default_rng(seed), n_rows=12, n_dims=n_dims)
    chosen = vsgraph.Settings(form=form, weight_decay=1e-2, learning_rate=0.05, epochs=3000)
    best = train_to_optimum(inputs, task, settings=chosen)
    loss, slope = decayed(best, inputs, task, chosen)
    assert abs(slope).max() < 1e-4
    walked = train_by_adam(inputs, task, settings=chosen)
    assert loss <= decayed(walked, inputs, task, chosen)[0] + 1e-7
    np.testing.assert_allclose(walked, best, atol=0.02)


@given(seed=SEEDS, n_dims=st.sampled_from([3, 30]), form=st.sampled_from(list(OPERATORS)))
@settings(deadline=None, max_examples=20)
def test_the_optimum_does_not_depend_on_the_start(seed, n_dims, form):
    random = np.random.default_rng(seed)
    inputs, task = anchor_problem(random, n_rows=12, n_dims=n_dims)
    chosen = vsgraph.Settings(form=form, weight_decay=1e-2)
    best = train_to_optimum(inputs, task, settings=chosen)
    start = random.normal(size=(n_dims, 3))
    again = train_to_optimum(inputs, task, settings=chosen, start=start)
    np.testing.assert_allclose(again, best, atol=1e-3)
    other = train_to_optimum(inputs, task, settings=chosen, start=start[:-1])  # of other inputs
    np.testing.assert_array_equal(other, best)
