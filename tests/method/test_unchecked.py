"""Crawls without text are judged by their pictures, and say that meanings are not checked."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import vsgraph
from vsgraph import Settings
from vsgraph.common.checks import label_matrix
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.method.inputs import check_inputs
from vsgraph.method.unchecked import has_texts, match_pictures
from vsgraph.result.correction import Correction

N_CLASSES, PER_CLASS = 4, 60


def make(n_wrong, seed=0):
    """Return features, web labels and what is shown; the first images of each class are wrong."""
    random = np.random.default_rng(seed)
    shown = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    features = random.normal(size=(N_CLASSES, 32))[shown]
    features += 0.4 * random.normal(size=features.shape)
    wrong = np.arange(len(shown)) % PER_CLASS < n_wrong
    web_labels = np.where(wrong, (shown + 1) % N_CLASSES, shown)
    return features, web_labels, shown


def correct(features, web_labels, **settings):
    settings.setdefault("anchors_per_class", 20)
    nothing = np.zeros((len(features), 3))
    return vsgraph.correct(
        features, nothing, np.eye(N_CLASSES, 3) + 0.1, web_labels, settings=Settings(**settings)
    )


@pytest.mark.parametrize("seed", range(3))
def test_images_unlike_their_class_are_found_without_text(seed):
    features, web_labels, shown = make(n_wrong=8, seed=seed)
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        corrected = correct(features, web_labels)
    wrong = web_labels != shown
    assert (corrected.final_labels[wrong] != web_labels[wrong]).mean() > 0.9
    assert (corrected.final_labels[~wrong] == shown[~wrong]).mean() > 0.95
    quality = corrected.label_quality
    assert quality[wrong].mean() < 0.4 < 0.8 < quality[~wrong].mean()


def test_the_meaning_is_said_to_be_unchecked_and_no_share_is_promised(tmp_path):
    features, web_labels, _ = make(n_wrong=8)
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        corrected = correct(features, web_labels)
    corrected.save(tmp_path / "kept")
    for one in (corrected, Correction.load(tmp_path / "kept")):
        assert not one.is_checked
        assert one.estimate is None
        assert one.text_factor is None


def test_a_crawl_without_noise_is_hardly_touched():
    features, web_labels, _ = make(n_wrong=0)
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        corrected = correct(features, web_labels)
    assert corrected.counts["keep"] >= 0.98 * len(web_labels)


def test_several_labels_need_no_text_either():
    features, web_labels, _ = make(n_wrong=0)
    several = label_matrix(web_labels, N_CLASSES).toarray().astype(bool)
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        corrected = correct(features, several)
    assert (corrected.final_labels[several]).mean() > 0.95


def test_the_papers_forms_need_text():
    features, web_labels, _ = make(n_wrong=0)
    with pytest.raises(InputError, match="no image has text near it"):
        correct(features, web_labels, text_evidence=False)


@pytest.mark.parametrize(
    ("n_texts", "n_classes", "enough"),
    [(4, N_CLASSES, False), (5, N_CLASSES, True), (5, N_CLASSES // 2, True), (50, 1, False)],
)
def test_half_of_the_classes_need_five_texts(n_texts, n_classes, enough):
    features, web_labels, _ = make(n_wrong=0)
    texts = np.zeros((len(features), 3))
    for number in range(n_classes):
        texts[np.flatnonzero(web_labels == number)[:n_texts]] = 1
    inputs = check_inputs(features, texts, np.eye(N_CLASSES, 3) + 0.1, web_labels)
    assert has_texts(inputs) is enough


def test_texts_of_small_classes_are_enough_for_half_of_their_images():
    features, texts = np.ones((6, 2)), np.zeros((6, 2))
    texts[[0, 1, 3, 4]] = 1
    assert has_texts(check_inputs(features, texts, np.eye(2), [0, 0, 0, 1, 1, 1]))


def test_texts_that_say_nothing_are_left_out():
    features, web_labels, truth = make(n_wrong=6)
    noise = np.random.default_rng(0).normal(size=(len(features), 16))
    meanings = np.random.default_rng(1).normal(size=(N_CLASSES, 16))
    with pytest.warns(VSGraphWarning, match="say nothing of the pictures"):
        corrected = vsgraph.correct(features, noise, meanings, web_labels)
    left = corrected.final_labels >= 0
    assert left.mean() > 0.7
    assert (corrected.final_labels == truth)[left].mean() >= (web_labels == truth).mean()


def test_pictures_speak_for_a_label_as_often_as_neighbors_have_it():
    edges = csr_array(np.array([[0, 1, 1, 2], [1, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0.0]]))
    features = np.ones((4, 2))
    features[3] = 0
    inputs = check_inputs(features, np.zeros((4, 2)), np.ones((2, 2)), [0, 0, 1, 0])
    match = match_pictures(inputs, edges)
    np.testing.assert_allclose(match.data[:3], [0.75, 1, 0])
    assert np.isnan(match.data[3])
    assert match.indices.tolist() == [0, 0, 1, 0]


def test_answers_teach_without_text_too():
    features, web_labels, shown = make(n_wrong=25)
    answers = np.full(len(shown), -2)
    answers[::6] = shown[::6]
    nothing = np.zeros((len(features), 3))
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        taught = vsgraph.correct(
            features, nothing, np.eye(N_CLASSES, 3) + 0.1, web_labels, answers=answers,
            settings=Settings(anchors_per_class=20),
        )  # fmt: skip
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        plain = correct(features, web_labels)
    others, wrong = answers == -2, web_labels != shown
    assert taught.label_quality[others & wrong].mean() < plain.label_quality[others & wrong].mean()
