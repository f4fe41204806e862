"""Whose text it is: pictures tell, and names of labels."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import vsgraph
from vsgraph.method.belonging import learn_belonging, own_shares
from vsgraph.method.inputs import Words, check_inputs
from vsgraph.method.trust import count_names, trust_texts

N, KINDS, N_TEXT = 600, 12, 32


@dataclasses.dataclass
class Pairs:
    """Pictures of some kinds of things, and texts that speak of them."""

    features: np.ndarray
    texts: np.ndarray
    kinds: np.ndarray
    foreign: np.ndarray  # texts that are another image's


def make(seed=0, *, foreign=0.3, missing=0.0, n=N):
    random = np.random.default_rng(seed)
    kinds = random.integers(0, KINDS, n)
    looks, senses = random.normal(size=(KINDS, 24)), random.normal(size=(KINDS, N_TEXT))
    features = np.abs(looks[kinds] + 0.4 * random.normal(size=(n, 24))).astype(np.float32)
    texts = (senses[kinds] + 0.8 * random.normal(size=(n, N_TEXT))).astype(np.float32)
    order = random.permutation(n)
    moved, gone = order[: int(foreign * n)], order[n - int(missing * n) :]
    texts[moved] = texts[np.roll(moved, 1)]
    texts[gone] = 0
    is_foreign = np.zeros(n, bool)
    is_foreign[moved] = kinds[moved] != kinds[np.roll(moved, 1)]
    return Pairs(features, texts, kinds, is_foreign)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("foreign", [0.15, 0.4])
def test_foreign_texts_are_found(seed, foreign):
    pairs = make(seed, foreign=foreign)
    own = learn_belonging(pairs.features, pairs.texts).of_crawl(pairs.texts)
    assert own[pairs.foreign].mean() < 0.3
    assert own[~pairs.foreign].mean() > 0.85
    assert abs(own.mean() - (1 - pairs.foreign.mean())) < 0.1


def test_texts_that_all_belong_are_trusted_in_full():
    pairs = make(foreign=0.0, missing=0.2)
    own = learn_belonging(pairs.features, pairs.texts).of_crawl(pairs.texts)
    has_text = pairs.texts.any(axis=1)
    assert own[has_text].mean() > 0.99
    assert (own[~has_text] == 0).all()


def test_a_picture_that_cannot_be_read_has_the_usual_share():
    pairs = make()
    pairs.features[:5] = 0
    learned = learn_belonging(pairs.features, pairs.texts)
    np.testing.assert_allclose(learned.of_crawl(pairs.texts)[:5], learned.usual, rtol=1e-6)


def test_others_are_judged_as_those_learned_from():
    pairs = make(n=900)
    learned = learn_belonging(pairs.features[:600], pairs.texts[:600])
    own = learned.of_others(pairs.features[600:], pairs.texts[600:])
    assert own[pairs.foreign[600:]].mean() < 0.3
    assert own[~pairs.foreign[600:]].mean() > 0.85


@pytest.mark.parametrize("what", ["few", "unrelated", "all alike", "no texts"])
def test_where_pictures_cannot_tell_nothing_is_said(what):
    pairs = make(n=80) if what == "few" else make()
    if what == "unrelated":
        pairs.texts[:] = np.random.default_rng(1).normal(size=pairs.texts.shape)
    if what == "all alike":
        pairs.texts[:] = 1
    if what == "no texts":
        pairs.texts[:] = 0
    assert learn_belonging(pairs.features, pairs.texts) is None
    inputs = check_inputs(pairs.features, pairs.texts, np.eye(KINDS, N_TEXT), pairs.kinds)
    np.testing.assert_array_equal(trust_texts(inputs).own, pairs.texts.any(axis=1))


def test_the_shares_of_own_texts_by_hand():
    """All exchanged texts match with 0; of the others two thirds match with 1, the rest with 0."""
    edges, own, usual = own_shares(np.repeat([0.0, 1.0], [100, 200]), np.full(1000, -1e-9))
    assert usual == 1.0  # none is worse than exchanged ones
    assert own[np.digitize(1.0, edges)] == 1.0


def test_a_text_without_the_name_that_all_others_have_is_foreign():
    labels = csr_array(np.repeat(np.eye(2), 100, axis=0))
    names = labels.toarray().astype(bool)
    names[:4] = False  # of the first class, which is otherwise always named
    names[100:160] = False  # of the second, which seldom is
    own = np.full(200, 0.6, np.float32)
    found = count_names(own, csr_array(names), labels).ask(own, csr_array(names), labels)
    assert found[:4].max() < 0.2
    assert found[4:100].min() > 0.9
    assert abs(found[100:160] - 0.5).max() < 0.2
    sure = np.ones(200, np.float32)  # pictures say that all texts belong
    assert (
        count_names(sure, csr_array(names), labels).ask(sure, csr_array(names), labels) == 1
    ).all()


def test_an_image_without_a_label_is_not_asked_for_a_name():
    labels = csr_array(np.array([[1.0, 0], [0, 0]]))
    names = csr_array(np.array([[True, False], [True, False]]))
    own = np.array([0.5, 0.5], np.float32)
    asked = count_names(own, names, labels).ask(own, names, labels)
    assert asked[1] == 0.5
    nobody = csr_array((2, 2))
    np.testing.assert_array_equal(count_names(own, names, labels).ask(own, names, nobody), own)


def test_exchanged_texts_do_not_move_labels():
    """Half of the texts are exchanged; labels are right, and stay so."""
    pairs = make(foreign=0.5, n=900)
    meanings = np.stack([pairs.texts[pairs.kinds == k].mean(axis=0) for k in range(KINDS)])
    said = np.eye(KINDS, dtype=bool)[pairs.kinds] & ~pairs.foreign[:, None]
    words = Words(
        meanings, csr_array(said), csr_array(said), np.empty((0, N_TEXT)), np.empty(0, np.intp), ()
    )
    corrected = vsgraph.correct(
        pairs.features, pairs.texts, meanings, pairs.kinds, words=words,
        settings=vsgraph.Settings(anchors_per_class=20),
    )  # fmt: skip
    assert (corrected.final_probs.argmax() == pairs.kinds)[pairs.foreign].mean() > 0.95
    assert 0.4 < corrected.evidence_weights["trust"] < 0.75


def test_names_in_texts_that_are_surely_foreign_are_not_counted():
    """One class has nearly all images, and many texts that are surely foreign have its name."""
    labels = csr_array(np.eye(2)[np.r_[np.zeros(990, int), np.ones(10, int)]])
    own = np.where(np.arange(1000) % 2 == 0, 0.9, 0).astype(np.float32)
    names = csr_array(np.c_[own == 0, np.zeros(1000, bool)])
    shares = count_names(own, names, labels)
    assert (shares.elsewhere < 1).all()
    asked = shares.ask(own, names, labels)
    assert ((asked >= 0) & (asked <= 1)).all()


@pytest.mark.parametrize("n_kinds", [2, 8, 12])
def test_the_order_of_the_images_does_not_matter(n_kinds):
    pairs = make(foreign=0.2, n=900)
    pairs.kinds %= n_kinds
    random = np.random.default_rng(3)
    looks, senses = random.normal(size=(n_kinds, 24)), random.normal(size=(n_kinds, N_TEXT))
    features = np.abs(looks[pairs.kinds] + 0.3 * random.normal(size=(900, 24)))
    texts = senses[pairs.kinds] + 0.5 * random.normal(size=(900, N_TEXT))
    moved = np.arange(0, 900, 5)
    texts[moved] = texts[np.roll(moved, 7)]
    foreign = np.zeros(900, bool)
    foreign[moved] = pairs.kinds[moved] != pairs.kinds[np.roll(moved, 7)]
    in_turns = np.argsort(np.argsort(np.argsort(pairs.kinds, kind="stable")) % (900 // n_kinds))
    for order in (np.arange(900), np.argsort(pairs.kinds, kind="stable"), in_turns):
        learned = learn_belonging(features[order], texts[order])
        own = learned.of_crawl(texts[order])
        assert own[foreign[order]].mean() < own[~foreign[order]].mean() - 0.4
