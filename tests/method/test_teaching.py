"""Answers of people teach: look-alikes follow, wrong labels speak against their group."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import vsgraph
from vsgraph import Settings
from vsgraph.method.answers import exclude_from_anchors, pin_anchors
from vsgraph.method.inputs import check_inputs
from vsgraph.method.looks import left_out
from vsgraph.method.queue import queue
from vsgraph.result.parts import NONE, UNANSWERED, Anchors, Decision, Rule

N_CLASSES, N_EACH, N_GROUP = 3, 60, 24
GROUP = slice(0, N_GROUP)  # images of the first class that look and are spoken of alike


@dataclasses.dataclass
class Crawl:
    """Three classes; the texts of a group of the first leave open whether it shows the class."""

    features: np.ndarray
    texts: np.ndarray
    meanings: np.ndarray
    web_labels: np.ndarray

    def correct(self, answers=None, **changes):
        return vsgraph.correct(
            self.features, self.texts, self.meanings, self.web_labels, answers=answers,
            settings=Settings(anchors_per_class=10, **changes),
        )  # fmt: skip

    def answers(self, rows, said):
        answers = np.full(len(self.web_labels), UNANSWERED)
        answers[rows] = said
        return answers


def make(seed=0):
    random = np.random.default_rng(seed)
    web = np.repeat(np.arange(N_CLASSES), N_EACH)
    looks, senses = random.normal(size=(4, 16)), random.normal(size=(4, 24))
    kind = web.copy()
    kind[GROUP] = 3
    meant = senses[kind]
    meant[GROUP] += 0.9 * senses[0]
    features = np.abs(looks[kind] + 0.3 * random.normal(size=(len(web), 16)))
    texts = meant + 0.6 * random.normal(size=meant.shape)
    return Crawl(features, texts, senses[:N_CLASSES], web)


def quality_of_group(corrected, asked):
    rest = np.setdiff1d(np.arange(N_GROUP), asked)
    return float(corrected.label_quality[rest].mean())


def same(first, second):
    for name in ("final_labels", "decisions", "rules", "label_quality", "confidence"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(np.asarray(first.final_probs), np.asarray(second.final_probs))
    np.testing.assert_array_equal(first.anchors.rows, second.anchors.rows)


@pytest.fixture(scope="module")
def crawl():
    return make()


@pytest.fixture(scope="module")
def plain(crawl):
    return crawl.correct()


def test_without_answers_nothing_changes(crawl, plain):
    same(plain, crawl.correct(np.full(len(crawl.web_labels), UNANSWERED)))


def test_answered_images_are_what_people_say(crawl):
    rows, said = np.array([0, 1, 70, 130]), np.array([NONE, 2, 1, 0])
    corrected = crawl.correct(crawl.answers(rows, said))
    probs = np.asarray(corrected.final_probs)[rows]
    np.testing.assert_array_equal(probs, said[:, None] == np.arange(N_CLASSES))
    np.testing.assert_array_equal(corrected.final_labels[rows], said)


def test_answers_stand_where_nothing_can_be_judged():
    """A class without anchors, an image with neither picture nor text, copies that disagree."""
    crawl = make()
    crawl.features[0], crawl.texts[0] = 0, 0
    last = np.flatnonzero(crawl.web_labels == N_CLASSES - 1)
    rows, said = np.r_[0, last, 70, 71], np.r_[1, np.full(len(last), NONE), 1, 0]
    copies = np.arange(len(crawl.web_labels))
    copies[71] = 70
    with pytest.warns(vsgraph.VSGraphWarning, match="have no"):
        corrected = vsgraph.correct(
            crawl.features, crawl.texts, crawl.meanings, crawl.web_labels, copies=copies,
            answers=crawl.answers(rows, said),
        )  # fmt: skip
    np.testing.assert_array_equal(corrected.final_labels[rows], said)
    assert (corrected.rules[rows] == Rule.ANSWERED).all()
    np.testing.assert_array_equal(
        np.asarray(corrected.final_probs)[rows], said[:, None] == np.arange(N_CLASSES)
    )


def test_wrong_answers_pull_their_group_down_and_right_ones_up(crawl, plain):
    asked = np.arange(4)
    before = quality_of_group(plain, asked)
    wrong = crawl.correct(crawl.answers(asked, NONE))
    right = crawl.correct(crawl.answers(asked, 0))
    assert quality_of_group(wrong, asked) < before - 0.1
    assert quality_of_group(right, asked) > max(before, quality_of_group(wrong, asked) + 0.3)
    others = crawl.web_labels > 0  # classes that nobody was asked about
    assert (np.abs(wrong.label_quality - plain.label_quality)[others]).mean() < 0.1


def test_twins_follow_to_another_class(crawl):
    asked = np.arange(8)
    corrected = crawl.correct(crawl.answers(asked, 2))
    twins = np.arange(8, N_GROUP)
    assert (corrected.final_probs.argmax()[twins] == 2).mean() > 0.7


def test_more_answers_say_more(crawl, plain):
    groups = [quality_of_group(crawl.correct(crawl.answers(np.arange(n), NONE)), np.arange(12))
              for n in (1, 4, 12)]  # fmt: skip
    assert quality_of_group(plain, np.arange(12)) > groups[0] > groups[1] > groups[2]


@pytest.mark.parametrize("said", [0, NONE])
def test_a_class_of_which_all_answers_agree(crawl, said):
    asked = np.arange(0, N_EACH, 2)
    corrected = crawl.correct(crawl.answers(asked, said))
    rest = np.setdiff1d(np.arange(N_EACH), asked)
    share = corrected.label_quality[rest].mean()
    assert share > 0.9 if said == 0 else share < 0.3
    assert np.isfinite(corrected.label_quality).all()


def test_every_image_answered(crawl):
    corrected = crawl.correct(crawl.web_labels)
    np.testing.assert_array_equal(corrected.final_labels, crawl.web_labels)
    assert corrected.estimate == {"left": 1.0, "web": 1.0}
    with pytest.raises(vsgraph.InputError, match="no anchor can be chosen"):
        crawl.correct(np.full(len(crawl.web_labels), NONE))


def test_the_papers_forms_take_answers_as_anchors(crawl):
    rows = np.array([3, 100])
    corrected = crawl.correct(crawl.answers(rows, [NONE, 2]), text_evidence=False)
    assert 3 not in corrected.anchors.rows
    assert corrected.anchors.classes[corrected.anchors.rows == 100].tolist() == [2]
    np.testing.assert_array_equal(corrected.final_probs.argmax()[rows[1:]], [2])


def test_anchors_are_those_that_answers_allow():
    inputs = check_inputs(
        np.eye(4), np.eye(4), np.eye(2, 4), np.array([0, 0, 1, 1]),
        answers=np.array([1, 0, NONE, UNANSWERED]),
    )  # fmt: skip
    match = csr_array((np.ones(4), inputs.labels.indices, inputs.labels.indptr), (4, 2))
    allowed = exclude_from_anchors(match, inputs)
    np.testing.assert_array_equal(np.isnan(allowed.data), [True, False, True, False])
    pinned = pin_anchors(Anchors(np.array([1, 3]), np.array([0, 1]), np.ones(2)), inputs.answers)
    assert list(zip(pinned.rows, pinned.classes, strict=True)) == [(1, 0), (3, 1), (0, 1)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 30), st.integers(1, 6))
def test_a_value_that_is_left_out_does_not_matter(seed, n, width):
    random = np.random.default_rng(seed)
    looks, values = random.normal(size=(n, width)), random.random(n)
    values[0] = values[1:].mean()  # so that the mean of all is that of the others
    told = left_out(looks, np.arange(n), values)
    part, mean = looks - looks.mean(axis=0), values.mean()
    moment = part[1:].T @ part[1:] + 3.0 * np.eye(width)
    expected = mean + part[0] @ np.linalg.solve(moment, part[1:].T @ (values[1:] - mean))
    np.testing.assert_allclose(told[0], expected, atol=1e-8)


def test_a_queue_is_spread_over_classes_and_never_asks_again(plain, crawl):
    answers = crawl.answers(np.arange(5), NONE)
    rows = queue(plain, answers, 30)
    assert len(set(rows)) == 30
    assert not np.isin(rows, np.arange(5)).any()
    assert set(crawl.web_labels[rows]) == {0, 1, 2}
    np.testing.assert_array_equal(queue(plain, answers, 10), rows[:10])
    only = crawl.web_labels == 1
    assert (crawl.web_labels[queue(plain, answers, 100, among=only)] == 1).all()
    assert len(queue(plain, crawl.web_labels, 10)) == 0


def test_a_queue_asks_first_about_the_group_that_is_unsure(plain, crawl):
    rows = queue(plain, None, 9)
    of_first_class = rows[crawl.web_labels[rows] == 0]
    assert (of_first_class[:2] < N_GROUP).all()
    near = set(plain.adjacency[[rows[0]]].indices)
    assert not near & set(rows[:3])  # the next ones look different


def test_a_rejected_group_leaves_the_export(crawl):
    corrected = crawl.correct(crawl.answers(np.arange(12), NONE))
    assert (corrected.decisions[12:N_GROUP] == Decision.REJECT).mean() > 0.8
