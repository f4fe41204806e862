"""Corrections judged by the truth, and compared with each other."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import metrics as sk

import vsgraph
from two_senses import QUICK
from vsgraph import Decision, InputError, TopScores
from vsgraph.judge.metrics import count_classes

KEEP, RELABEL, REJECT = Decision.KEEP, Decision.RELABEL, Decision.REJECT


@pytest.fixture
def by_hand(corrected):
    """Six images, three classes: every number can be checked on paper."""
    probs = [[0.9, 0.1, 0], [0.2, 0.8, 0], [0.3, 0.7, 0], [0, 0.6, 0.4], [0.4, 0.3, 0.3], [0, 0, 1]]
    return dataclasses.replace(
        corrected,
        class_names=("ant", "bee", "c|t"),
        web_labels=np.array([0, 0, 0, 1, 1, 2]),
        final_labels=np.array([0, 1, 1, 1, -1, 2]),
        decisions=np.array([KEEP, RELABEL, RELABEL, KEEP, REJECT, KEEP], np.uint8),
        rules=np.array([2, 3, 3, 2, 1, 2], np.uint8),
        final_probs=TopScores.of(probs, n_kept=3),
        gnn_probs=TopScores.of(np.full((6, 3), 0.5), n_kept=3),
    )


TRUTH = [0, 1, 0, 2, -1, 2]


def test_accuracy_before_and_after_by_hand(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    assert (judged.n_images, judged.n_judged, judged.n_in_set) == (6, 6, 5)
    assert judged.counts == {"keep": 3, "relabel": 2, "reject": 1}
    assert judged.accuracy["all"] == pytest.approx(
        {"before": 3 / 6, "after": 4 / 6, "likeliest": 3 / 6}
    )
    assert judged.accuracy["not rejected"] == pytest.approx(
        {"before": 3 / 5, "after": 3 / 5, "likeliest": 3 / 5}
    )
    assert judged.accuracy["in set"]["after"] == pytest.approx(3 / 5)


def test_what_cannot_be_said_is_a_dash_in_text_and_null_in_json(by_hand):
    one = [True, *[False] * 5]
    several = dataclasses.replace(
        by_hand, web_labels=np.eye(3, dtype=bool)[by_hand.web_labels],
        final_labels=np.eye(4, dtype=bool)[by_hand.final_labels, :3],
    )  # fmt: skip
    for made, truth in ((by_hand, TRUTH), (several, np.zeros((6, 3), bool))):
        judged = vsgraph.evaluate(made, truth, known=one)
        assert "nan" not in str(judged) + judged.to_markdown()
        assert "NaN" not in json.dumps(judged.to_dict())
    assert "AUROC of confidence -, of the web label's score -; calibration" in str(judged)
    assert judged.to_dict()["auroc"]["confidence"] is None


def test_noise_found_and_missed_by_hand(by_hand):
    noise = vsgraph.evaluate(by_hand, TRUTH).noise
    assert (noise["wrong"], noise["flagged"], noise["found"], noise["missed"]) == (3, 3, 2, 1)
    assert noise["precision"] == noise["recall"] == pytest.approx(2 / 3)


def test_rejections_and_new_labels_by_hand(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    assert judged.rejected == {"images": 1, "right": 1, "share": 1.0}
    assert judged.relabeled == {"images": 2, "right": 1, "share": 0.5}


def test_confidence_is_judged_among_images_not_rejected(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    right, confidence = [1, 1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6, 1.0]
    assert judged.auroc["confidence"] == sk.roc_auc_score(right, confidence) == 1
    assert judged.precision_at == pytest.approx({0.5: 1, 0.7: 3 / 4, 0.9: 3 / 5})
    assert judged.calibration.counts.sum() == 5
    web, clean = [0.9, 0.2, 0.3, 0.6, 0.3, 1.0], [1, 0, 1, 0, 0, 1]
    assert judged.auroc["web label"] == pytest.approx(sk.roc_auc_score(clean, web))


def test_a_label_that_was_doubted_has_its_probability_as_quality(by_hand):
    probs = np.asarray(by_hand.final_probs)
    assert by_hand.label_quality == pytest.approx(probs[np.arange(6), by_hand.web_labels])


def test_the_quality_of_a_web_label_is_else_the_mean_of_two_log_odds(by_hand):
    by_hand = dataclasses.replace(by_hand, unwanted=None)
    quality = by_hand.label_quality
    assert quality[:3] == pytest.approx([0.75, 1 / 3, (3 / 7) ** 0.5 / (1 + (3 / 7) ** 0.5)])
    graph = np.full((6, 3), 0.5)
    graph[0, 0] = 0.9
    sure = dataclasses.replace(by_hand, gnn_probs=TopScores.of(graph, n_kept=3))
    assert sure.label_quality[0] == pytest.approx(0.9)
    unjudged = dataclasses.replace(by_hand, rules=np.zeros(6, np.uint8))
    assert (unjudged.label_quality == 0.5).all()


def test_the_quality_of_several_labels_is_that_of_the_worst(by_hand):
    web = np.zeros((6, 3), bool)
    web[0] = [True, True, False]
    several = dataclasses.replace(by_hand, web_labels=web, unwanted=None)
    assert several.label_quality[0] == pytest.approx(0.25)
    assert (several.label_quality[1:] == 1).all()


def test_confusion_has_a_row_for_none_and_a_column_for_rejected(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    assert judged.confusion.toarray().tolist() == [
        [1, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
    ]
    assert judged.confusions() == [("ant", "bee", 1.0), ("c|t", "bee", 1.0)]


def test_an_image_of_several_classes_is_confused_in_parts(by_hand):
    shown = np.zeros((6, 3), bool)
    shown[1] = [True, False, True]
    shown[0] = [True, True, False]
    judged = vsgraph.evaluate(by_hand, csr_array(shown))
    assert judged.confusion[[0], [1]] == pytest.approx(0.5)
    assert judged.confusion[[2], [1]] == pytest.approx(0.5)
    assert judged.confusion[[0], [0]] == 1


def test_classes_agree_with_a_count_of_labels(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    final = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]])
    assert judged.after.to_dict() == count_classes(final, TRUTH).to_dict()
    bee = judged.per_class()[1]
    assert (bee["class"], bee["shown"], bee["web"], bee["final"]) == ("bee", 1, 2, 3)
    assert bee["precision_after"] == pytest.approx(1 / 3)


def test_images_of_unknown_truth_are_left_out(by_hand):
    known = np.array([True, True, False, True, False, True])
    judged = vsgraph.evaluate(by_hand, TRUTH, known=known)
    assert (judged.n_images, judged.n_judged) == (6, 4)
    assert judged.accuracy["all"]["after"] == pytest.approx(3 / 4)
    assert judged.counts["reject"] == 0


def test_a_matrix_of_truth_says_the_same_as_class_numbers(by_hand):
    matrix = np.array(TRUTH)[:, None] == np.arange(3)
    plain, dense, sparse = (
        vsgraph.evaluate(by_hand, truth).to_dict() for truth in (TRUTH, matrix, csr_array(matrix))
    )
    assert plain == dense == sparse


def test_an_evaluation_becomes_json_text_and_a_page(by_hand):
    judged = vsgraph.evaluate(by_hand, TRUTH)
    values = json.loads(json.dumps(judged.to_dict(), allow_nan=False))
    assert values["noise"]["found"] == 2
    assert values["precision_at"]["0.7"] == 0.75
    assert "50.0% before, 66.7% after" in str(judged)
    page = judged.to_markdown()
    for part in ("## Right", "## By class", "c\\|t", "## Largest confusions", "## Reliability"):
        assert part in page


def test_nothing_wrong_nothing_rejected_has_no_shares(by_hand):
    good = dataclasses.replace(by_hand, final_labels=by_hand.web_labels, decisions=np.zeros(6, int))
    judged = vsgraph.evaluate(good, by_hand.web_labels)
    assert np.isnan(judged.noise["precision"])
    assert judged.to_dict()["noise"]["recall"] is None
    assert "rejected rightly: -" in str(judged)


def test_a_real_correction_finds_most_of_the_noise(two_senses, corrected):
    judged = vsgraph.evaluate(corrected, two_senses.truth)
    assert judged.accuracy["all"]["after"] > judged.accuracy["all"]["before"] + 0.2
    assert judged.noise["recall"] > 0.9
    assert judged.auroc["web label"] > 0.95


def test_several_labels_an_image_are_judged_by_f1_and_map(two_senses):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    truth = np.eye(4, dtype=bool)[two_senses.truth]
    made = two_senses.correct(web_labels=web)
    judged = vsgraph.evaluate(made, truth)
    assert judged.several["before"]["O-F1"] == pytest.approx(
        sk.f1_score(truth, web, average="micro")
    )
    final = np.asarray(made.final_labels)
    assert judged.several["after"]["O-F1"] == pytest.approx(
        sk.f1_score(truth, final, average="micro")
    )
    assert judged.several["after"]["mAP"] == pytest.approx(
        sk.average_precision_score(truth, np.asarray(made.final_probs), average="macro")
    )
    assert judged.several["after"]["whole sets"] == (final == truth).all(axis=1).mean()
    wrong, kept = web & ~truth, web & final
    assert judged.noise["wrong"] == wrong.sum()
    assert judged.noise["found"] == (wrong & ~kept).sum()
    assert "mAP" in str(judged)


def test_two_corrections_are_compared_by_hand(by_hand):
    other = dataclasses.replace(
        by_hand,
        final_labels=np.array([0, 0, 0, 1, 1, -1]),
        decisions=np.array([KEEP, KEEP, KEEP, KEEP, KEEP, REJECT], np.uint8),
    )
    found = vsgraph.compare(by_hand, other, TRUTH)
    assert (found.n_images, found.n_differ) == (6, 4)
    assert found.flows.tolist() == [[2, 0, 1], [2, 0, 0], [1, 0, 0]]
    bee = next(row for row in found.per_class if row["class"] == "bee")
    assert bee == {"class": "bee", "first": 3, "second": 2, "lost": 2, "gained": 1}
    assert found.right == {"both": 1, "first": 3, "second": 1, "neither": 1, "chance": 0.625}
    assert "4 of 6 images have other labels (66.7%)" in str(found)
    assert "relabel -> keep 2" in str(found)
    assert "only the first 3" in str(found)
    assert "| bee | 3 | 2 | 2 | 1 |" in found.to_markdown()
    assert json.loads(json.dumps(found.to_dict()))["flows"]["relabel"]["keep"] == 2


def test_a_comparison_counts_only_images_of_known_truth(by_hand):
    found = vsgraph.compare(by_hand, by_hand, TRUTH, known=[True] * 3 + [False] * 3)
    assert found.right["both"] + found.right["neither"] == 3


def test_a_comparison_without_truth_says_nothing_of_right(by_hand):
    found = vsgraph.compare(by_hand, by_hand)
    assert found.right == {}
    assert str(found).splitlines()[1] == "decisions that changed: none"


def test_what_two_corrections_have_in_common_is_compared(by_hand):
    names, final = by_hand.class_names, by_hand.final_labels
    grown = dataclasses.replace(
        by_hand,
        class_names=("wasp", *reversed(names)),
        web_labels=np.append(3 - by_hand.web_labels[::-1], 0),
        final_labels=np.append(np.where(final < 0, -1, 3 - final)[::-1], 0),
        decisions=np.append(by_hand.decisions[::-1], 0),
    )
    found = vsgraph.compare(by_hand, grown, TRUTH, rows=([0, 1, 2], [5, 4, 3]))
    same = vsgraph.compare(by_hand, by_hand, TRUTH, known=[True] * 3 + [False] * 3)
    assert (found.n_images, found.n_differ) == (3, 0)
    assert found.right == same.right
    assert {row["class"] for row in found.per_class} == {"wasp", *names}
    assert str(found).startswith("3 images are in both; 4 only in the second, 3 only in the first")


def test_settings_that_reject_none_differ_in_rejections_alone(two_senses):
    strict = two_senses.correct(dataclasses.replace(QUICK, reject_nearness=1.0))
    mild = two_senses.correct(dataclasses.replace(QUICK, reject_threshold=0))
    found = vsgraph.compare(strict, mild)
    assert found.flows[:, REJECT].sum() == 0
    assert found.n_differ == strict.counts["reject"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda made: vsgraph.evaluate(made, [0]), "truth must be .6,. whole numbers"),
        (lambda made: vsgraph.evaluate(made, TRUTH, known=[False] * 6), "known must be True for"),
        (lambda made: vsgraph.evaluate(made, TRUTH, known=[True]), r"known must have shape \(6,\)"),
        (
            lambda made: vsgraph.compare(made, dataclasses.replace(made, class_names=("a",) * 3)),
            "must have the same classes",
        ),
        (
            lambda made: vsgraph.compare(
                made, dataclasses.replace(made, web_labels=made.web_labels[::-1])
            ),
            "must have the same images",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(by_hand, call, said):
    with pytest.raises(InputError, match=said):
        call(by_hand)
