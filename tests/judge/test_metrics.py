"""The paper's measures, against scikit-learn, by hand, and against the paper's own tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from vsgraph import InputError, TopScores
from vsgraph.judge.metrics import (
    accuracy,
    auroc,
    average_accuracy,
    average_precisions,
    calibration,
    count_classes,
    f1_at_top,
    harmonic_mean,
    macro_map,
    open_set,
    precision_at,
    top_k_accuracy,
)

SEEDS = st.integers(0, 2**32 - 1)

# Table "Results on Google-500 open-set problem": C-P, C-R, C-F1 on WebVision, then on ImageNet.
OPEN_SET_CELLS = [
    (40.44, 67.23, 50.50), (37.75, 60.36, 46.45),
    (40.38, 69.21, 51.00), (38.27, 63.58, 47.78),
    (40.34, 68.21, 50.70), (38.54, 62.10, 47.56),
    (59.64, 55.63, 57.56), (56.74, 48.89, 52.52),
    (52.47, 62.95, 57.24), (49.66, 56.36, 52.80),
]  # fmt: skip
# Table "Ablation study on Google-500": top-1, top-5 of WebVision, of ImageNet; in the same order.
CLOSED_SET_ROWS = {
    "pretrained": ((66.96, 82.68), (61.54, 78.89), 72.52),
    "co-teaching": ((67.61, 84.04), (62.18, 80.98), 73.70),
    "p_c": ((67.83, 83.93), (62.68, 80.68), 73.78),
    "p_g": ((64.79, 81.22), (60.39, 78.76), 71.29),
    "p_f": ((68.14, 84.46), (63.16, 81.45), 74.30),
}


def make_scores(seed, *, n=40, n_classes=7, ties=True):
    random = np.random.default_rng(seed)
    scores = random.uniform(size=(n, n_classes))
    scores = scores.round(1) if ties else scores
    shown = random.uniform(size=(n, n_classes)) < 0.3
    shown[0] = True
    return scores, shown


@pytest.mark.parametrize(("c_p", "c_r", "c_f1"), OPEN_SET_CELLS)
def test_the_papers_open_set_f1_is_the_harmonic_mean_of_its_precision_and_recall(c_p, c_r, c_f1):
    assert harmonic_mean(c_p, c_r) == pytest.approx(c_f1, abs=0.006)


@pytest.mark.parametrize("row", CLOSED_SET_ROWS)
def test_the_papers_average_accuracy_is_the_mean_of_its_four_cells(row):
    webvision, imagenet, average = CLOSED_SET_ROWS[row]
    assert average_accuracy(webvision, imagenet) == pytest.approx(average, abs=0.006)


def test_the_papers_recall_beyond_the_threshold_can_exceed_its_top_1_accuracy():
    closed = [cell[0] for row in CLOSED_SET_ROWS.values() for cell in row[:2]]
    exceeding = sum(cell[1] > top for cell, top in zip(OPEN_SET_CELLS, closed, strict=True))
    assert exceeding == 4


def test_only_the_reading_every_can_recall_more_than_top_1():
    scores, truth = [[0.5, 0.3], [0.6, 0.4], [0.1, 0.9], [0.3, 0.7]], [1, 1, 1, 0]
    top = top_k_accuracy(scores, truth)
    assert open_set(scores, truth, reading="highest").o_r <= top
    assert open_set(scores, truth, reading="every").o_r > top


@given(seed=SEEDS, k=st.integers(1, 7))
@settings(deadline=None, max_examples=40)
def test_top_k_accuracy_agrees_with_scikit_learn(seed, k):
    scores, _ = make_scores(seed, ties=False)
    truth = np.random.default_rng(seed).integers(7, size=len(scores))
    expected = 1.0 if k == 7 else sk.top_k_accuracy_score(truth, scores, k=k, labels=range(7))
    assert top_k_accuracy(scores, truth, k=k) == pytest.approx(expected)


def test_top_k_ties_go_to_the_lower_class_and_images_of_no_class_are_left_out():
    scores = [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.9, 0.0, 0.0]]
    assert top_k_accuracy(scores, [1, 1, -1]) == 0.5
    assert accuracy(scores, [1, 2, -1]) == (0.0, 1.0)
    assert np.isnan(top_k_accuracy(scores, [-1, -1, -1]))


def test_any_of_several_true_classes_counts_as_a_hit():
    shown = csr_array(np.array([[True, False, True], [False, True, False]]))
    assert top_k_accuracy([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]], shown) == 0.5


@given(seed=SEEDS, k=st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_f1_at_top_agrees_with_scikit_learn(seed, k):
    scores, shown = make_scores(seed, ties=False)
    given_labels = np.zeros_like(shown)
    np.put_along_axis(given_labels, np.argsort(-scores, axis=1)[:, :k], True, axis=1)
    found = f1_at_top(scores, shown, k=k)
    for average, precision, recall in (
        ("macro", found.c_p, found.c_r),
        ("micro", found.o_p, found.o_r),
    ):
        expected = sk.precision_recall_fscore_support(
            shown, given_labels, average=average, zero_division=0
        )
        assert (precision, recall) == pytest.approx(expected[:2])
    micro = sk.f1_score(shown, given_labels, average="micro")
    assert found.o_f1 == pytest.approx(micro)
    assert found.c_f1 == pytest.approx(harmonic_mean(found.c_p, found.c_r))
    assert found.to_dict()["o_f1"] == found.o_f1


def test_f1_at_top_3_by_hand():
    scores = [[0.9, 0.8, 0.7, 0.1], [0.1, 0.8, 0.7, 0.9]]
    found = f1_at_top(scores, [[1, 0, 0, 1], [0, 1, 0, 0]])
    assert found.n_given.tolist() == [1, 2, 2, 1]
    assert found.n_right.tolist() == [1, 1, 0, 0]
    assert (found.c_p, found.c_r) == (0.375, 0.5)
    assert (found.o_p, found.o_r) == pytest.approx((1 / 3, 2 / 3))


@given(seed=SEEDS, ties=st.booleans())
@settings(deadline=None, max_examples=40)
def test_average_precision_agrees_with_scikit_learn(seed, ties):
    scores, shown = make_scores(seed, ties=ties)
    macro = sk.average_precision_score(shown, scores, average="macro")
    assert macro_map(scores, shown) == pytest.approx(macro)


def test_a_class_without_images_is_left_out_of_the_mean():
    precisions = average_precisions([[0.9, 0.1], [0.1, 0.9]], [0, -1])
    assert precisions[0] == 1
    assert np.isnan(precisions[1])
    assert macro_map([[0.9, 0.1], [0.1, 0.9]], [0, -1]) == 1
    assert np.isnan(macro_map([[0.9, 0.1]], [-1]))


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_open_set_agrees_with_scikit_learn_in_both_readings(seed):
    scores, _ = make_scores(seed, ties=False)
    truth = np.random.default_rng(seed).integers(-1, 7, size=len(scores))
    highest = np.where(scores.max(axis=1) > 0.9, scores.argmax(axis=1), -1)
    expected = sk.precision_recall_fscore_support(
        truth, highest, labels=range(7), average="macro", zero_division=0
    )
    found = open_set(scores, truth, reading="highest", threshold=0.9)
    assert (found.c_p, found.c_r) == pytest.approx(expected[:2])
    every = open_set(scores, truth, reading="every", threshold=0.9)
    expected = sk.precision_recall_fscore_support(
        truth[:, None] == np.arange(7), scores > 0.9, average="macro", zero_division=0
    )
    assert (every.c_p, every.c_r) == pytest.approx(expected[:2])


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_auroc_agrees_with_scikit_learn(seed):
    random = np.random.default_rng(seed)
    score, positive = random.uniform(size=30).round(1), random.uniform(size=30) < 0.5
    positive[:2] = [True, False]
    assert auroc(score, positive) == pytest.approx(sk.roc_auc_score(positive, score))


def test_auroc_needs_both_kinds():
    assert np.isnan(auroc([0.1, 0.2], [True, True]))


def test_precision_at_a_share_by_hand():
    confidence, right = [0.9, 0.8, 0.8, 0.8, 0.1], [True, True, False, False, False]
    assert precision_at(confidence, right, kept=0.2) == 1
    assert precision_at(confidence, right, kept=0.4) == pytest.approx((1 + 1 / 3) / 2)
    assert precision_at(confidence, right, kept=0.8) == pytest.approx(0.5)
    assert precision_at(confidence, right, kept=1) == pytest.approx(0.4)
    assert np.isnan(precision_at([], [], kept=0.5))


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_precision_at_a_share_does_not_depend_on_the_order_of_rows(seed):
    random = np.random.default_rng(seed)
    confidence, right = random.uniform(size=30).round(1), random.uniform(size=30) < 0.5
    order = random.permutation(30)
    for kept in (0.1, 0.5, 0.9):
        assert precision_at(confidence, right, kept=kept) == pytest.approx(
            precision_at(confidence[order], right[order], kept=kept)
        )


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_the_reliability_table_agrees_with_scikit_learn(seed):
    random = np.random.default_rng(seed)
    confidence = random.uniform(size=50)
    right = random.uniform(size=50) < confidence
    right[:2] = [True, False]
    table = calibration(confidence, right, n_bins=10)
    share, mean = calibration_curve(right, confidence, n_bins=10)
    filled = table.counts > 0
    np.testing.assert_allclose(table.accuracy[filled], share)
    np.testing.assert_allclose(table.confidence[filled], mean)
    expected = (np.abs(share - mean) * table.counts[filled]).sum() / 50
    assert table.error == pytest.approx(expected)
    assert [row["images"] for row in table.to_rows()] == table.counts[filled].tolist()


def test_nothing_has_no_calibration_error():
    assert np.isnan(calibration([], []).error)


def test_measures_on_top_scores_are_those_on_what_they_hold():
    scores, shown = make_scores(3, n=300, ties=False)
    kept = TopScores.of(scores / 10, n_kept=5)
    dense = np.asarray(kept)
    assert accuracy(kept, shown) == accuracy(dense, shown)
    assert f1_at_top(kept, shown).to_dict() == f1_at_top(dense, shown).to_dict()
    assert macro_map(kept, shown) == pytest.approx(macro_map(dense, shown))
    for reading in ("highest", "every"):
        chosen = {"reading": reading, "threshold": 0.05}
        assert open_set(kept, shown, **chosen).c_f1 == open_set(dense, shown, **chosen).c_f1


def test_blocks_do_not_matter(monkeypatch):
    scores, shown = make_scores(5)
    whole = (macro_map(scores, shown), f1_at_top(scores, shown).c_f1)
    monkeypatch.setattr("vsgraph.common.blocks.BLOCK_BYTES", 1)
    assert whole == pytest.approx((macro_map(scores, shown), f1_at_top(scores, shown).c_f1))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: top_k_accuracy(np.eye(2), [0, 1], k=0), "k must be at least 1"),
        (lambda: top_k_accuracy(np.eye(2), [0, 2]), r"truth must lie in -1\.\.1, got 0\.\.2"),
        (lambda: top_k_accuracy(np.eye(2), [0.5, 1]), "truth must be .2,. whole numbers, -1"),
        (lambda: top_k_accuracy(np.eye(2), [0]), "truth must be .2,. whole numbers, -1"),
        (lambda: top_k_accuracy(np.eye(2), np.eye(3)), "truth must have one entry per image"),
        (lambda: f1_at_top(TopScores.of(np.eye(4), n_kept=2), [0, 1, 2, 3]), "k must be at most"),
        (lambda: open_set(np.eye(2), [0, 1], reading="all"), "reading must be one of highest"),
        (lambda: open_set(np.eye(2), [0, 1], reading="every", threshold=2), "threshold must lie"),
        (lambda: count_classes([0, 1], [0, 1]), "given must be a 2-d table"),
        (lambda: average_accuracy(), "takes a pair"),
        (lambda: auroc([np.nan], [True]), "score must be numbers, but holds NaN"),
        (lambda: auroc([0.1], [True, False]), r"positive must have shape \(1,\)"),
        (lambda: precision_at([0.1], [True], kept=0), "kept must be a share above 0"),
        (lambda: calibration([1.5], [True]), "confidence must lie between 0 and 1"),
        (lambda: calibration([0.5], [True], n_bins=0), "n_bins must be at least 1"),
    ],
)
def test_bad_input_gets_one_clear_line(call, said):
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
