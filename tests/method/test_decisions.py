"""Keep, relabel, reject: the rules one by one."""

import numpy as np
import pytest

import vsgraph
from vsgraph import Anchors, Decision, Rule, Settings
from vsgraph.method.decisions import decide
from vsgraph.method.open_set import far_from_all, own_texts_count, text_nearness, typical_match


def decide_row(probs, web, *, far=False, silent=False, anchored=(True, True, True), **numbers):
    return decide(
        np.array([probs]), np.array([web]), far=np.array([far]), silent=np.array([silent]),
        has_anchors=np.array(anchored), settings=Settings(**numbers),
    )  # fmt: skip


def decide_one(probs, web, **options):
    chosen = decide_row(probs, web, **options)
    return Decision(chosen.decisions[0]), Rule(chosen.rules[0]), chosen.final_labels[0]


@pytest.mark.parametrize(
    ("probs", "web", "extra", "expected"),
    [
        ([0.8, 0.1, 0.1], 0, {}, (Decision.KEEP, Rule.AGREES, 0)),
        ([0.8, 0.1, 0.1], 1, {}, (Decision.RELABEL, Rule.CONFIDENT, 0)),
        ([0.5, 0.1, 0.4], 2, {}, (Decision.RELABEL, Rule.CONFIDENT, 0)),
        ([0.45, 0.15, 0.4], 2, {}, (Decision.KEEP, Rule.UNSURE, 2)),
        ([0.8, 0.1, 0.1], 1, {"relabel_threshold": 0.9}, (Decision.KEEP, Rule.UNSURE, 1)),
        ([0.5, 0.5, 0.0], 1, {}, (Decision.KEEP, Rule.AGREES, 1)),
        ([0.8, 0.1, 0.1], 0, {"far": True}, (Decision.REJECT, Rule.OPEN_SET, -1)),
        ([0.8, 0.1, 0.1], 1, {"far": True}, (Decision.REJECT, Rule.OPEN_SET, -1)),
        (
            [0.8, 0.1, 0.1],
            1,
            {"far": True, "anchored": (True, False, True)},
            (Decision.KEEP, Rule.NOT_JUDGED, 1),
        ),
    ],
)
def test_each_rule(probs, web, extra, expected):
    assert decide_one(probs, web, **extra) == expected


def decide_several(probs, web, **numbers):
    chosen = decide_row(probs, web, **numbers)
    return Decision(chosen.decisions[0]), chosen.final_labels[0].tolist()


def test_several_labels_are_added_dropped_or_left():
    web = [True, True, False]
    assert decide_several([0.9, 0.6, 0.2], web) == (Decision.KEEP, web)
    assert decide_several([0.9, 0.01, 0.8], web) == (Decision.RELABEL, [True, False, True])
    assert decide_several([0.9, 0.1, 0.2], web) == (Decision.KEEP, web)
    assert decide_several([0.9, 0.4, 0.6], web, relabel_threshold=0.7) == (Decision.KEEP, web)
    assert decide_several([0.9, 0.4, 0.1], web, drop_threshold=0.5)[1] == [True, False, False]
    assert decide_several([0.01, 0.01, 0.2], web) == (Decision.REJECT, [False] * 3)


def test_a_label_without_anchors_stays_among_several():
    chosen = decide_row([0.9, 0.0, 0.9], [True, True, False], anchored=(True, False, False))
    assert chosen.final_labels.tolist() == [[True, True, False]]


def test_an_image_without_web_labels_is_judged_by_the_rest():
    assert decide_several([0.9, 0.1, 0.1], [False] * 3) == (Decision.RELABEL, [True, False, False])
    assert decide_several([0.1, 0.1, 0.1], [False] * 3) == (Decision.REJECT, [False] * 3)


def test_an_image_of_which_nothing_is_known_keeps_its_labels():
    chosen = decide_row([0.5, 0.5, 0.5], [True, False, False], silent=True)
    assert chosen.final_labels.tolist() == [[True, False, False]]
    assert Rule(chosen.rules[0]) == Rule.NOT_JUDGED


def test_nearness_is_measured_by_the_anchors_of_the_class():
    text = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8], [0.0, 0.0]])
    anchors = Anchors(np.array([0, 1, 4]), np.array([0, 0, 0]), np.ones(3))
    typical = typical_match(text[anchors.rows], np.eye(2), anchors)
    near = text_nearness(text, np.eye(2), np.array([0, 0, 0, 1, 0]), typical)
    np.testing.assert_allclose(near[:3], np.array([1, 0.8, 0]) / 0.9)
    assert np.isnan(near[3:]).all()


def far(gnn, final, own, near, *, likely=0.9, **numbers):
    arrays = (np.array([value]) for value in (gnn, final, own, near))
    return far_from_all(*arrays, settings=Settings(**numbers), likely=likely)[0]


def test_an_image_is_far_only_if_graph_and_all_text_say_so():
    assert far(0.1, 1.0, 0.2, 0.3)
    assert not far(0.9, 1.0, 0.2, 0.3)
    assert not far(0.1, 1.0, 0.9, 0.3)
    assert not far(0.1, 1.0, 0.2, 0.9)
    assert not far(0.1, 1.0, np.nan, np.nan)


def test_an_image_without_text_is_far_only_if_its_label_is_unlikely_too():
    assert not far(0.1, 0.95, np.nan, 0.3)
    assert far(0.1, 0.6, np.nan, 0.3)
    assert not far(0.1, 0.6, np.nan, 0.3, likely=0.5)


@pytest.mark.parametrize(
    ("trust", "count"), [(1.0, True), (0.91, True), (0.89, False), (0.5, False)]
)
def test_far_texts_count_if_most_of_them_are_their_images_own(trust, count):
    nearness = np.array([0.1, 0.4] + [1.0] * 8 + [np.nan] * 30)
    assert own_texts_count(nearness, trust, settings=Settings()) is count


def test_without_far_texts_there_is_nothing_to_count():
    assert not own_texts_count(np.ones(5), 1.0, settings=Settings())


def test_rejecting_can_be_switched_off():
    assert not far(0.0, 1.0, 0.0, 0.0, reject_threshold=0.0)


def test_an_off_target_sense_is_rejected_and_the_right_one_kept():
    """'drumstick': half of it chicken legs, a cluster of their own with text of their own."""
    random = np.random.default_rng(1)
    shown = np.repeat(np.arange(9), 100)  # eight classes, and an off-target sense of the first
    web = np.where(shown == 8, 0, shown)
    n = len(shown)
    features = np.abs(random.normal(size=(9, 32))[shown] + 0.2 * random.normal(size=(n, 32)))
    senses = random.normal(size=(9, 48))
    text = senses[shown] + 0.5 * random.normal(size=(n, 48))
    text[random.uniform(size=n) < 0.3] = 0
    corrected = vsgraph.correct(
        features, text, senses[:8], web, settings=Settings(anchors_per_class=10)
    )
    rejected = corrected.final_labels < 0
    assert rejected[shown == 8].mean() > 0.8
    assert rejected[shown < 8].mean() < 0.05


def spoiled_crawl(seed):
    """Eight classes, all of them known; a third of the texts is another image's."""
    random = np.random.default_rng(seed)
    shown = np.repeat(np.arange(8), 100)
    n = len(shown)
    features = np.abs(random.normal(size=(8, 32))[shown] + 0.9 * random.normal(size=(n, 32)))
    senses = random.normal(size=(8, 48))
    text = senses[shown] + 0.5 * random.normal(size=(n, 48))
    others = random.permutation(n)[: n // 3]
    text[others] = text[np.roll(others, 1)]
    web = np.where(random.uniform(size=n) < 0.2, random.integers(8, size=n), shown)
    return features, text, senses, web, shown


def test_where_texts_are_exchanged_few_images_are_taken_for_none_of_the_classes():
    *given, shown = spoiled_crawl(0)
    corrected = vsgraph.correct(*given, settings=Settings(anchors_per_class=10))
    assert corrected.evidence_weights["trust"] < 0.9
    assert (corrected.rules == Rule.OPEN_SET).mean() < 0.1
    assert (corrected.final_probs.argmax() == shown).mean() > 0.9
    left = corrected.final_labels >= 0
    assert (corrected.final_labels == shown)[left].mean() > 0.95


def test_with_several_labels_a_text_that_may_be_anothers_takes_no_label_away():
    features, text, senses, web, _ = spoiled_crawl(0)
    several = np.eye(8, dtype=bool)[web]
    made = vsgraph.correct(features, text, senses, several, settings=Settings(anchors_per_class=10))
    dropped = several & ~made.final_labels
    rows, classes = np.nonzero(dropped)
    assert (made.final_probs[rows][np.arange(len(rows)), classes] < 0.05).all()
