"""Audits: the sample is fair, and the interval holds the truth as often as it says."""

import functools
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, hypergeom

from vsgraph.errors import InputError
from vsgraph.judge.audit import (
    audit_sample,
    audit_statement,
    draw_strata,
    exact_interval,
    strata_shares,
)
from vsgraph.result.parts import Decision

interval = functools.cache(exact_interval)


def crawl_of(kind):
    """Return confidence and whether labels are right, (n_images,), of a made-up export."""
    random = np.random.default_rng(7)
    confidence = random.beta(9, 1, 200 if kind == "few images" else 3000)
    right = {
        "all right": np.ones(len(confidence), bool),
        "all wrong": np.zeros(len(confidence), bool),
        "99 % right": random.random(len(confidence)) < 0.99,
        "as sure as said": random.random(len(confidence)) < confidence,
        "half right": random.random(len(confidence)) < 0.5,
        "one class bad": np.arange(len(confidence)) % 20 > 0,
        "the surest are wrong": confidence < np.quantile(confidence, 0.9),
        "few images": random.random(len(confidence)) < 0.9,
    }[kind]
    return confidence, right


KINDS = ("all right", "all wrong", "99 % right", "as sure as said", "half right", "one class bad",
         "the surest are wrong", "few images")  # fmt: skip


CASES = [(kind, n) for kind in KINDS for n in (30, 150)]


@pytest.mark.parametrize(("kind", "n"), CASES)
def test_the_interval_holds_the_truth_in_95_of_100_audits(kind, n):
    """The chance of each count of right checks is computed, not simulated."""
    confidence, right = crawl_of(kind)
    truth, hit = right.mean(), 0.0
    for start in np.linspace(0.05, 0.95, 10):
        chances = np.ones(1)
        for stratum, share in strata_shares(confidence, np.arange(len(right)), n, start):
            counts = np.arange(share + 1)
            own = hypergeom.pmf(counts, len(stratum), right[stratum].sum(), share)
            chances = np.convolve(chances, own)
        likely = np.flatnonzero(chances > 1e-9)
        bounds = [interval(int(count), n, len(right)) for count in likely]
        held = [low <= truth <= high for low, high in bounds]
        hit += chances[likely][held].sum() / 10
    assert hit >= 0.95


def test_simulated_audits_hold_the_truth_and_are_not_biased():
    hits = []
    for kind, n in CASES:
        confidence, right = crawl_of(kind)
        truth, shares = right.mean(), []
        for seed in range(100):
            numbers = np.random.default_rng([seed, n]).random(len(right) + 1)
            drawn = draw_strata(confidence, numbers[:-1], n, numbers[-1])
            assert len(set(drawn.tolist())) == n
            n_right = int(right[drawn].sum())
            low, high = interval(n_right, n, len(right))
            hits.append(low <= truth <= high)
            shares.append(n_right / n)
        error = 4 * np.sqrt(truth * (1 - truth) / n / 100) + 1e-9
        assert abs(np.mean(shares) - truth) <= error, kind
        assert np.mean(hits[-100:]) >= 0.9, kind  # by chance fewer than 95
    assert np.mean(hits) >= 0.95


@pytest.mark.parametrize("n", [7, 40, 99])
def test_every_image_has_the_same_chance(n):
    confidence = np.random.default_rng(0).random(101)
    counts = np.zeros(101)
    for seed in range(2000):
        numbers = np.random.default_rng(seed).random(102)
        counts[draw_strata(confidence, numbers[:-1], n, numbers[-1])] += 1
    expected, chance = 2000 * n / 101, n / 101
    assert abs(counts - expected).max() < 5 * np.sqrt(2000 * chance * (1 - chance))
    assert counts.sum() == 2000 * n


def test_the_interval_is_no_wider_than_that_of_draws_with_return_and_narrows_with_the_share():
    by_binomial = binomtest(186, 200).proportion_ci(0.95, "exact")
    low, high = exact_interval(186, 200, 10**7)
    assert (low, high) == pytest.approx((by_binomial.low, by_binomial.high), abs=2e-4)
    widths = [np.ptp(exact_interval(186, 200, n_all)) for n_all in (200, 250, 1000, 10**6)]
    assert widths[0] == 0  # all of them were checked
    assert widths == sorted(widths)
    assert widths[-1] < 0.08


@given(st.integers(1, 60), st.data())
def test_the_interval_holds_what_was_seen(n_all, data):
    n_checks = data.draw(st.integers(1, n_all))
    n_right = data.draw(st.integers(0, n_checks))
    low, high = exact_interval(n_right, n_checks, n_all)
    assert 0 <= low <= n_right / n_checks <= high <= 1
    assert low * n_all == pytest.approx(round(low * n_all))
    assert (high == 1) == (n_right == n_checks)
    assert (low == 0) == (n_right == 0)


def correction(n_images, seed=3):
    random = np.random.default_rng(seed)
    decisions = random.choice([Decision.KEEP, Decision.RELABEL, Decision.REJECT], n_images)
    made = types.SimpleNamespace(decisions=decisions, confidence=random.random(n_images))
    return type("Small", (), {"__len__": lambda _: n_images, **vars(made)})()


def test_only_exported_images_are_drawn_and_samples_stay_alike():
    made = correction(2000)
    rows = audit_sample(made, 200, seed=1)
    assert len(set(rows.tolist())) == 200
    assert (made.decisions[rows] != Decision.REJECT).all()
    np.testing.assert_array_equal(rows, audit_sample(made, 200, seed=1))
    assert len(set(rows) & set(audit_sample(made, 200, seed=2))) < 60
    assert len(set(rows) - set(audit_sample(made, 260, seed=1))) < 10
    changed = correction(2000)
    rejected = np.flatnonzero(made.decisions != Decision.REJECT)[::20]
    changed.decisions[rejected] = Decision.REJECT
    assert len(set(rows) & set(audit_sample(changed, 200, seed=1))) > 150


def test_few_images_are_all_drawn():
    made = correction(12)
    left = np.flatnonzero(made.decisions != Decision.REJECT)
    assert sorted(audit_sample(made, 200)) == left.tolist()
    made.decisions[:] = Decision.REJECT
    assert len(audit_sample(made, 5)) == 0
    with pytest.raises(InputError, match="images must be at least 1"):
        audit_sample(made, 0)


def test_the_statement_in_words():
    told = str(audit_statement(186, 200, 5000, 3))
    assert told == (
        "93.0 % of the exported labels are right (88.6 to 96.1, 200 checks of 5,000 images; "
        "3 unanswered)"
    )
    assert str(audit_statement(0, 0, 5000)) == "no label was checked yet"
