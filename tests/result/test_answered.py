"""Answers of people in the place of a correction's own decisions."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsgraph.result.answered import with_answers
from vsgraph.result.parts import NONE, UNANSWERED, Decision, Rule


def test_an_answer_is_certain_and_takes_the_place_of_the_decision(corrected, two_senses):
    web = two_senses.web_labels
    labels = np.full(len(web), UNANSWERED)
    labels[:3] = web[0], (web[1] + 1) % 4, NONE
    found = with_answers(corrected, labels)

    assert found.decisions[:3].tolist() == [Decision.KEEP, Decision.RELABEL, Decision.REJECT]
    assert found.final_labels[:3].tolist() == labels[:3].tolist()
    assert (found.rules[:3] == Rule.ANSWERED).all()
    assert found.confidence[:3].tolist() == [1, 1, 0]  # of a rejected image: of any class
    assert found.label_quality[:3].tolist() == [1, 0, 0]
    for soft in (found.soft_labels(), found.soft_labels(with_rejected=True)):
        np.testing.assert_allclose(soft[:3], [*np.eye(4)[labels[:2]], [0] * 4], rtol=1e-6)
    assert found.reason(0) == "a person decided"
    assert found.explain(1).decision == "relabel"
    assert found.to_columns()["rule"][:3] == ["answered"] * 3
    for name in ("final_labels", "decisions", "rules", "confidence", "label_quality"):
        before, after = getattr(corrected, name), getattr(found, name)
        np.testing.assert_array_equal(before[3:], after[3:], name)
    assert (corrected.rules != Rule.ANSWERED).all()  # what was given is left as it was


def test_a_sense_that_is_not_meant_is_not_said_of_an_image_that_shows_its_class(corrected):
    doubted = dataclasses.replace(
        corrected, unwanted=np.zeros(len(corrected), np.int16), unwanted_names=("chicken leg",)
    )
    labels = np.full(len(corrected), UNANSWERED)
    labels[:2] = 1, NONE
    found = with_answers(doubted, labels)
    assert [found.sense(row) for row in range(3)] == ["", "chicken leg", "chicken leg"]


def test_answers_where_images_have_several_labels(two_senses):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    found = two_senses.correct(web_labels=web)
    rows = np.array([0, 1, 2])
    labels = np.stack([web[0], web[1] | np.array([True, True, False, False]), web[2] & False])
    answered = with_answers(found, labels, rows)
    added = Decision.KEEP if (labels[1] == web[1]).all() else Decision.RELABEL
    assert answered.decisions[:3].tolist() == [Decision.KEEP, added, Decision.REJECT]
    np.testing.assert_array_equal(answered.final_labels[rows], labels)
    assert answered.confidence[:3].tolist() == [1, 1, 0]
    assert answered.label_quality[:3].tolist() == [1, 1, 0]
    np.testing.assert_array_equal(answered.soft_labels()[rows][:2], labels[:2])


def test_without_answers_nothing_is_copied(corrected):
    assert with_answers(corrected, np.full(len(corrected), UNANSWERED)) is corrected


@given(st.data())
def test_counts_follow_the_answers_and_answering_twice_is_answering_once(corrected, data):
    labels = np.array(
        data.draw(st.lists(st.integers(-2, 3), min_size=len(corrected), max_size=len(corrected)))
    )
    found = with_answers(corrected, labels)
    assert sum(found.counts.values()) == len(corrected)
    said = labels != UNANSWERED
    assert ((found.decisions == Decision.REJECT) == (found.final_labels < 0))[said].all()
    assert (found.final_labels == labels)[said].all()
    again = with_answers(found, labels)
    np.testing.assert_array_equal(again.decisions, found.decisions)
    np.testing.assert_array_equal(again.confidence, found.confidence)
    assert found.confidence == pytest.approx(again.confidence)
