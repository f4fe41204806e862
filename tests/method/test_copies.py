"""Copies of one picture share what is known of them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

import vsgraph
from two_senses import make_two_senses
from vsgraph.errors import InputError
from vsgraph.method.copies import share_scores
from vsgraph.method.scoring import ImageScores
from vsgraph.result.scores import TopScores

NAMES = [field.name for field in dataclasses.fields(ImageScores)]


def scores_of(probs, unwanted=None):
    """Scores of some images that only have final probabilities."""
    n = len(probs)
    values = dict.fromkeys(NAMES)
    values["final"] = TopScores.of(np.asarray(probs, np.float32), n_kept=32)
    values["unwanted"] = np.full(n, -1, np.int16) if unwanted is None else np.array(unwanted)
    values["silent"] = np.zeros(n, bool)
    return ImageScores(**values)


def test_labels_that_differ_are_weighed_and_agreeing_ones_stay():
    probs = [[0.9, 0.2], [0.1, 0.6], [0.8, 0.1], [0.8, 0.1], [0.3, 0.4]]
    shared = share_scores(scores_of(probs), np.array([0, 0, 2, 2, 4])).final[:]
    np.testing.assert_allclose(shared[0], shared[1])
    mean = (logit(0.9) + logit(0.1)) / 2
    np.testing.assert_allclose(logit(shared[0, 0]), (logit(0.9) + mean) / 2, atol=1e-5)
    np.testing.assert_allclose(shared[2:4], probs[2:4], atol=1e-6)
    np.testing.assert_allclose(shared[4], probs[4], atol=1e-6)


def test_a_picture_under_many_labels_is_believed_under_none():
    probs = np.full((10, 10), 0.05)
    np.fill_diagonal(probs, 0.95)
    assert share_scores(scores_of(probs), np.zeros(10, np.intp)).final.max().max() < 0.5


def test_an_unwanted_sense_holds_for_most_copies_or_for_none():
    probs = np.full((5, 2), 0.4)
    shared = share_scores(scores_of(probs, [1, 1, -1, 2, -1]), np.array([0, 0, 0, 3, 3]))
    assert shared.unwanted.tolist() == [1, 1, -1, -1, -1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_shared_scores_are_the_same_within_groups_in_any_order(numbers, seed):
    random = np.random.default_rng(seed)
    probs = random.uniform(0.02, 0.98, (len(numbers), 3)).astype(np.float32)
    groups = np.array([numbers.index(n) for n in numbers])
    shared = share_scores(scores_of(probs), groups).final[:]
    for group in np.unique(groups):
        inside = groups == group
        odds, n = logit(probs[inside].astype(float)), inside.sum()
        shared_odds = (odds.max(axis=0) + (n - 1) * odds.mean(axis=0)) / n
        expected = np.tile(shared_odds, (n, 1))
        np.testing.assert_allclose(logit(shared[inside].astype(float)), expected, atol=1e-3)


def test_many_groups_are_shared_in_blocks(monkeypatch):
    monkeypatch.setattr("vsgraph.common.blocks.BLOCK_BYTES", 200)
    random = np.random.default_rng(0)
    probs = random.uniform(0.1, 0.9, (300, 4)).astype(np.float32)
    groups = np.sort(random.integers(0, 60, 300))
    groups = np.searchsorted(groups, groups)
    shared = share_scores(scores_of(probs), groups).final[:]
    monkeypatch.undo()
    np.testing.assert_allclose(shared, share_scores(scores_of(probs), groups).final[:])


def test_without_copies_nothing_changes():
    scores = scores_of([[0.9, 0.1]])
    assert share_scores(scores, None) is scores
    alone = share_scores(scores_of([[0.9, 0.1], [0.2, 0.3]]), np.arange(2)).final[:]
    np.testing.assert_allclose(alone, [[0.9, 0.1], [0.2, 0.3]], atol=1e-6)


def test_copies_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"copies must be \(3,\) whole numbers"):
        vsgraph.correct(np.eye(3), np.eye(3), np.eye(3), [0, 1, 2], copies=[0, 1])
    with pytest.raises(InputError, match="copies must be"):
        vsgraph.correct(np.eye(3), np.eye(3), np.eye(3), [0, 1, 2], copies=[0.5, 1, 2])


def test_a_copy_under_a_wrong_label_is_put_right():
    """Of each picture there are two: the second has a label at random, and no text."""
    crawl = make_two_senses(n=160)
    random = np.random.default_rng(0)
    shown = np.r_[:160, :40]
    web = np.r_[crawl.web_labels, random.integers(4, size=40)]
    text = np.concatenate([crawl.text, np.zeros_like(crawl.text[:40])])
    given = {"features": crawl.features[shown], "text_embeddings": text, "web_labels": web}
    alone, shared = (crawl.correct(**given, copies=copies) for copies in (None, shown))
    late = np.arange(160, 200)
    assert (shared.final_labels[late] == shared.final_labels[:40]).all()
    wrong = [
        ((done.final_labels[late] >= 0) & (done.final_labels[late] != crawl.truth[:40])).sum()
        for done in (alone, shared)
    ]
    assert wrong[1] <= wrong[0]
