"""A linear classifier in place of a CNN: out of fold, by blocks, deterministic."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import vsgraph
from two_senses import make_two_senses
from vsgraph import InputError
from vsgraph.method import probe as probing
from vsgraph.method.probe import linear_probe


@pytest.fixture(scope="module")
def crawl():
    return make_two_senses(n=400, noise=0.2, spread=0.5)


def test_it_says_what_images_show_where_the_web_label_is_wrong(crawl):
    found = linear_probe(crawl.features, crawl.web_labels, n_classes=4)
    assert found.shape == (400, 4)
    np.testing.assert_allclose(found.total, 1, atol=1e-5)
    wrong = crawl.web_labels != crawl.truth
    assert (found.argmax() == crawl.truth)[wrong].mean() > 0.85


@pytest.mark.slow
def test_no_image_is_judged_by_what_has_seen_its_label(crawl):
    changed = crawl.web_labels.copy()
    found = linear_probe(crawl.features, changed, n_classes=4)
    random = np.random.default_rng(0).normal(size=(400, 1000)).astype(np.float32)
    noise = linear_probe(random, changed, n_classes=4)
    assert (noise.argmax() == changed).mean() < 0.4  # more numbers than images, yet none remembered
    assert (found.argmax() == changed).mean() > 0.7


def test_weights_are_those_of_a_plain_logistic_regression(crawl, monkeypatch):
    monkeypatch.setattr(probing, "STEPS", 2000)
    unit = crawl.features / np.linalg.norm(crawl.features, axis=1, keepdims=True)
    inputs, labels = unit.astype(np.float32), csr_array(np.eye(4)[crawl.web_labels])
    share = np.bincount(crawl.web_labels, minlength=4) / 400
    fitted = probing._Task(inputs, labels, share, single=True).fit(np.arange(400))
    plain = LogisticRegression(C=1 / (400 * probing.PENALTY), max_iter=5000, tol=1e-8)
    expected = plain.fit(unit, crawl.web_labels).predict_proba(unit)
    np.testing.assert_allclose(fitted(inputs), expected, atol=5e-3)


@pytest.mark.parametrize("single", [True, False])
def test_the_gradient_is_that_of_the_loss(single):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(30, 3))
    labels = csr_array(np.eye(4)[random.integers(4, size=30)])

    def value(flat):
        return probing._loss(flat.reshape(4, 4), inputs, labels, single)[0]

    def slope(flat):
        return probing._loss(flat.reshape(4, 4), inputs, labels, single)[1].ravel()

    assert check_grad(value, slope, random.normal(size=16)) < 1e-5


def test_several_labels_an_image_get_a_probability_each(crawl):
    both = np.eye(4, dtype=bool)[crawl.truth]
    both[:, 3] |= both[:, 0]  # whoever shows class 0 shows class 3 as well
    dense = np.asarray(linear_probe(crawl.features, both, n_classes=4))
    sparse = np.asarray(linear_probe(crawl.features, csr_array(both), n_classes=4))
    np.testing.assert_array_equal(dense, sparse)
    assert ((dense > 0.5) == both).mean() > 0.95
    assert (dense.sum(axis=1) > 1.5)[both.sum(axis=1) == 2].mean() > 0.9


def test_a_sample_keeps_the_shares_of_the_classes():
    random = np.random.default_rng(0)
    labels = (random.uniform(size=3000) < 0.1).astype(int)
    features = random.normal(size=(3000, 4)) + 5  # they say nothing
    whole = linear_probe(features, labels, n_classes=2)
    few = linear_probe(features, labels, n_classes=2, per_class=60)
    several = linear_probe(features, np.eye(2, dtype=bool)[labels], n_classes=2, per_class=60)
    for found in (whole, few, several):
        assert np.asarray(found)[:, 1].mean() == pytest.approx(0.1, abs=0.03)


def test_the_same_seed_gives_the_same_and_another_nearly_the_same(crawl):
    first, same, other = (
        np.asarray(linear_probe(crawl.features, crawl.web_labels, n_classes=4, random_state=seed))
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert (first.argmax(axis=1) == other.argmax(axis=1)).mean() > 0.9


def test_the_number_of_threads_does_not_matter(crawl, monkeypatch):
    two = np.asarray(linear_probe(crawl.features, crawl.web_labels, n_classes=4))
    monkeypatch.setattr("vsgraph.common.blocks.n_threads", lambda: 1)
    one = np.asarray(linear_probe(crawl.features, crawl.web_labels, n_classes=4))
    np.testing.assert_array_equal(one, two)


def test_half_precision_mapped_from_disk_does_nearly_as_well(crawl, tmp_path):
    np.save(tmp_path / "f.npy", crawl.features.astype(np.float16))
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    half = linear_probe(mapped, crawl.web_labels, n_classes=4)
    full = linear_probe(crawl.features, crawl.web_labels, n_classes=4)
    assert (half.argmax() == full.argmax()).mean() > 0.98


def test_an_unreadable_picture_gets_nothing_and_changes_nothing_else(crawl):
    features = crawl.features.copy()
    features[7] = 0
    found = linear_probe(features, crawl.web_labels, n_classes=4)
    assert found.total[7] == 0
    assert (found.total > 0.99).sum() == 399


def test_a_class_with_one_image_and_one_with_none_are_no_trouble(crawl):
    labels = crawl.web_labels.copy()
    labels[0] = 4
    found = linear_probe(crawl.features, labels, n_classes=6)
    assert np.isfinite(np.asarray(found)).all()
    assert found.argmax().max() < 4


def test_only_the_highest_scores_are_kept(crawl):
    found = linear_probe(crawl.features, crawl.web_labels, n_classes=4, n_kept=2)
    assert found.classes.shape == (400, 2)
    np.testing.assert_allclose(found.total, 1, atol=1e-5)


def test_a_correction_takes_it_and_is_no_worse(two_senses):
    found = linear_probe(two_senses.features, two_senses.web_labels, n_classes=4)
    without = two_senses.correct()
    made = two_senses.correct(cnn_probs=found)
    right = [(c.final_labels == two_senses.truth).mean() for c in (without, made)]
    assert right[1] >= right[0] - 0.01
    assert isinstance(made.cnn_probs, vsgraph.TopScores)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_folds": 1}, "n_folds must lie between 2 and the number of readable images, 40, got 1"),
        ({"n_folds": 41}, "n_folds must lie between 2"),
        ({"n_classes": 0}, "n_classes must be at least 1"),
        ({"per_class": 0}, "per_class must be at least 1"),
        ({"n_kept": 0}, "n_kept must be at least 1"),
        ({"n_classes": 3}, r"web_labels must lie in 0\.\.2"),
        ({"web_labels": [0, 1]}, "web_labels must have one entry per image"),
        ({"features": np.full((40, 2), np.nan)}, "features has NaN"),
    ],
)
def test_bad_input_gets_one_clear_line(changes, said):
    crawl = dataclasses.asdict(make_two_senses(n=40))
    given = {"features": crawl["features"], "web_labels": crawl["web_labels"], "n_classes": 4}
    with pytest.raises(InputError, match=said) as caught:
        linear_probe(**(given | changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [1e-42, 1e-60, 1e39, 1e150])
def test_lengths_of_features_do_not_matter(scale):
    random = np.random.default_rng(0)
    features = np.repeat(random.normal(size=(3, 8)), 40, axis=0) + 0.2 * random.normal(
        size=(120, 8)
    )
    labels = np.repeat(np.arange(3), 40)
    stretched = features.copy()
    stretched[::7] *= scale
    plain, other = (np.asarray(linear_probe(f, labels, n_classes=3)) for f in (features, stretched))
    np.testing.assert_allclose(plain, other, atol=1e-3)
