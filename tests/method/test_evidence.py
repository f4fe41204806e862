"""Weighing graph, CNN, web label and text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

import vsgraph
from two_senses import make_two_senses
from vsgraph.common import blocks
from vsgraph.method import evidence
from vsgraph.method import evidence_fit as witnesses


def weighed(crawl, cnn=None):
    graph = vsgraph.visual_graph(crawl.features, n_neighbors=5)
    smoothed = vsgraph.smooth_text(crawl.text, graph, self_weight=0, form="released")
    match = vsgraph.text_match(smoothed, crawl.meaning, crawl.web_labels)
    anchors = vsgraph.select_anchors(match, per_class=8)
    gnn = vsgraph.label_by_graph(
        crawl.features, graph, anchors, crawl.web_labels,
        n_classes=len(crawl.meaning), settings=vsgraph.Settings(epochs=150),
    )  # fmt: skip
    return gnn, vsgraph.weigh_evidence(gnn, cnn, crawl.text, crawl.meaning, crawl.web_labels)


def swap_texts(crawl, share, seed=0):
    random = np.random.default_rng(seed)
    rows = random.choice(len(crawl.text), int(share * len(crawl.text)), replace=False)
    crawl.text[rows] = crawl.text[np.roll(rows, 1)]
    return crawl


@given(seed=st.integers(0, 2**32 - 1), n_channels=st.integers(2, 3))
@settings(deadline=None, max_examples=30)
def test_the_gradient_of_the_surprise_is_right(seed, n_channels):
    random = np.random.default_rng(seed)
    channels = [np.log(random.dirichlet(np.ones(4), 20)) for _ in range(n_channels)]
    texts = witnesses.Spoken(random.uniform(-1, 1, (20, 4)), random.uniform(0, 1, 20))
    x = np.append(random.uniform(0, 2, n_channels), [random.uniform(1, 10), random.normal()])
    given = (channels, texts)
    error = check_grad(
        lambda x: witnesses.surprise(x, *given)[0], lambda x: witnesses.surprise(x, *given)[1], x
    )
    assert error < 1e-5


def test_the_surprise_by_blocks_is_that_of_all_texts(monkeypatch):
    random = np.random.default_rng(0)
    channels = [np.log(random.dirichlet(np.ones(4), 20)) for _ in range(2)]
    texts = witnesses.Spoken(random.uniform(-1, 1, (20, 4)), random.uniform(0, 1, 20))
    given = np.array([1.5, 0.5, 8.0, 1.0]), channels, texts
    whole, slopes = witnesses.surprise(*given)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 4 * 7)
    value, in_blocks = witnesses.surprise(*given)
    assert value == pytest.approx(whole)
    np.testing.assert_allclose(in_blocks, slopes, atol=1e-12)


def test_the_surprise_is_the_formula_of_the_module():
    """One text, two classes, by hand; the usual weights, so that the prior adds nothing."""
    prior = np.array([0.8, 0.2])
    told = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    background, trust, own = (told + 0.5) / 2, 0.9, 0.7
    trusted = trust * own
    expected = -np.log(trusted * (prior * told / background).sum() + 1 - trusted)
    channels = [np.log(prior)[None], np.zeros((1, 2))]
    x = np.array([1.0, 1.0, 2.0, np.log(trust / (1 - trust))])
    texts = witnesses.Spoken(np.array([[0.5, 1.0]]), np.array([own]))
    value, _ = witnesses.surprise(x, channels, texts)
    assert value == pytest.approx(expected)


@pytest.mark.parametrize("n_listed", [5, 20])
def test_a_class_that_nothing_speaks_of_takes_no_images(n_listed):
    """Classes are listed that no query found: once they swallowed the whole crawl."""
    random = np.random.default_rng(0)
    truth = np.arange(600) % (n_listed - 1)
    features = np.abs(
        random.normal(size=(n_listed, 32))[truth] + 0.3 * random.normal(size=(600, 32))
    )
    meaning = random.normal(size=(n_listed, 48))
    text = meaning[truth] + 0.6 * random.normal(size=(600, 48))
    with pytest.warns(vsgraph.VSGraphWarning, match="have no images"):
        made = vsgraph.correct(
            features, text, meaning, truth, settings=vsgraph.Settings(anchors_per_class=10)
        )
    assert (made.final_labels == truth).mean() > 0.99
    assert made.final_probs[:][:, n_listed - 1].max() == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_class_whose_images_have_no_text_does_not_upset_the_others(seed):
    random = np.random.default_rng(seed)
    truth = np.arange(300) % 5
    features = np.abs(random.normal(size=(5, 32))[truth] + 0.3 * random.normal(size=(300, 32)))
    meaning = random.normal(size=(5, 24))
    text = meaning[truth] + 0.6 * random.normal(size=(300, 24))
    text[truth == 4] = 0
    with pytest.warns(vsgraph.VSGraphWarning, match="no text near"):
        made = vsgraph.correct(
            features, text, meaning, truth, settings=vsgraph.Settings(anchors_per_class=10)
        )
    assert (made.final_labels == truth).mean() > 0.98


def test_clean_text_is_trusted_and_rows_sum_to_one():
    _, found = weighed(make_two_senses(n=400))
    assert found.weights["trust"] > 0.9
    np.testing.assert_allclose(found.probs.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(found.confusion.sum(axis=1), 1, atol=1e-5)


def test_the_share_of_swapped_texts_is_found():
    crawl = swap_texts(make_two_senses(n=1200, missing=0.3), 0.3)
    _, found = weighed(crawl)
    own = (crawl.text @ crawl.meaning.T).argmax(axis=1) == crawl.truth
    believable = own[crawl.text.any(axis=1)].mean()
    assert found.weights["trust"] == pytest.approx(believable, abs=0.12)


def test_a_small_crawl_of_many_classes_does_not_take_wrong_texts_for_proof():
    """Few texts a class, a third of them another image's: each must not count as its own proof."""
    crawl = swap_texts(make_two_senses(n=600, n_classes=30, noise=0.2, missing=0.4, seed=2), 0.35)
    _, found = weighed(crawl)
    assert found.weights["trust"] < 0.85
    right = (found.probs.argmax(axis=1) == crawl.truth).mean()
    assert right > (crawl.web_labels == crawl.truth).mean() + 0.05


def test_swapped_text_does_not_hurt():
    crawl = swap_texts(make_two_senses(n=800), 0.5)
    gnn, found = weighed(crawl)
    before, after = ((p.argmax(axis=1) == crawl.truth).mean() for p in (gnn, found.probs))
    assert after >= before - 0.005


def test_text_that_is_pure_noise_is_left_out():
    crawl = make_two_senses(n=800)
    gnn, _ = weighed(crawl)
    noise = np.random.default_rng(1).normal(size=crawl.text.shape)
    found = vsgraph.weigh_evidence(gnn, None, noise, crawl.meaning, crawl.web_labels)
    largest = np.abs(np.log(found.text_factor)).max()
    assert largest < 0.7
    assert (found.probs.argmax(axis=1) == crawl.truth).mean() > 0.9


def test_an_image_without_text_is_judged_without_it():
    crawl = make_two_senses(n=400)
    _, found = weighed(crawl)
    silent = ~crawl.text.any(axis=1)
    assert silent.any()
    np.testing.assert_array_equal(found.text_factor[silent], 1)


def test_the_confusion_table_finds_how_wrong_each_query_is():
    crawl = make_two_senses(n=2000, noise=0.35)
    _, found = weighed(crawl)
    for c in range(4):
        expected = (crawl.web_labels[crawl.truth == c] == c).mean()
        assert found.confusion[c, c] == pytest.approx(expected, abs=0.08)


def test_a_cnn_that_repeats_the_web_labels_is_not_believed():
    """In-sample probabilities of a network that learned its labels by heart."""
    crawl = make_two_senses(n=800, noise=0.4)
    parrot = np.full((800, 4), 0.01)
    parrot[np.arange(800), crawl.web_labels] = 0.97
    _, without = weighed(crawl)
    _, found = weighed(crawl, parrot)
    right, alone = ((f.probs.argmax(axis=1) == crawl.truth).mean() for f in (found, without))
    assert right >= alone - 0.01
    fused = vsgraph.fuse(weighed(crawl)[0], parrot, confidence_threshold=0.99, gnn_weight=0.5)
    assert right > (fused.argmax(axis=1) == crawl.truth).mean()


def test_rows_of_zeros_in_the_witnesses_say_nothing():
    crawl = make_two_senses(n=200)
    gnn, _ = weighed(crawl)
    gnn[:10] = 0
    found = vsgraph.weigh_evidence(gnn, None, crawl.text, crawl.meaning, crawl.web_labels)
    assert np.isfinite(found.probs).all()


def test_multi_label_rows_without_any_web_label_are_judged_by_the_rest():
    crawl = make_two_senses(n=400)
    gnn, _ = weighed(crawl)
    web = np.eye(4, dtype=bool)[crawl.web_labels]
    web[:20] = False
    found = vsgraph.weigh_evidence(gnn, None, crawl.text, crawl.meaning, web)
    assert (found.probs[:20].argmax(axis=1) == crawl.truth[:20]).mean() > 0.9
    assert ((found.probs >= 0) & (found.probs <= 1)).all()


def test_a_large_crawl_is_sampled_for_the_estimate(monkeypatch):
    crawl = make_two_senses(n=1200)
    _, whole = weighed(crawl)
    monkeypatch.setattr(evidence, "SAMPLE_CELLS", 4 * 400)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4 * 8 * 100)
    _, sampled = weighed(crawl)
    agree = whole.probs.argmax(axis=1) == sampled.probs.argmax(axis=1)
    assert agree.mean() > 0.98
