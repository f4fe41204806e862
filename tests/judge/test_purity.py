"""Coverage against purity: estimated, and true where the truth is known."""

import numpy as np
import pytest

import vsgraph
from vsgraph.judge.purity import draw_purity, purity_curve


def test_the_surest_images_come_first_and_the_truth_is_counted(corrected, two_senses):
    assert corrected.estimate is not None
    curve = purity_curve(corrected, two_senses.truth)
    belief = np.sort(np.where(corrected.unwanted < 0, corrected.final_probs.max(), 0))[::-1]
    shares = [coverage for coverage, _ in curve["estimated"]]
    assert shares == pytest.approx(np.arange(1, 11) / 10)
    half = round(len(belief) / 2)
    assert curve["estimated"][4][1] == pytest.approx(belief[:half].mean())
    assert [y for _, y in curve["estimated"]] == sorted((y for _, y in curve["estimated"]))[::-1]
    right = corrected.final_probs.argmax() == two_senses.truth
    assert curve["true"][-1][1] == pytest.approx((right & (corrected.unwanted < 0)).mean())


def test_only_images_of_known_truth_are_counted(corrected, two_senses):
    known = np.zeros(len(corrected), bool)
    assert "true" not in purity_curve(corrected, two_senses.truth, known)
    known[corrected.final_probs.argmax() == two_senses.truth] = True
    wanted = (corrected.unwanted < 0)[known]
    assert purity_curve(corrected, two_senses.truth, known)["true"][-1][1] == wanted.mean()


def test_no_curve_without_doubt():
    texts = np.tile(np.eye(2), (4, 1))
    paper = vsgraph.Settings(text_evidence=False, n_neighbors=2, anchors_per_class=2)
    corrected = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, settings=paper)
    assert purity_curve(corrected) == {}
    assert not draw_purity({})


def test_a_sweep_over_purity_draws_what_is_left_and_right(two_senses):
    table = vsgraph.sweep(
        two_senses.features, two_senses.text, two_senses.meaning, two_senses.web_labels,
        grid={"purity": [0.5, 0.7, 0.85]}, truth=two_senses.truth,
    )  # fmt: skip
    left = [row["left"] for row in table.rows]
    assert left == sorted(left, reverse=True)
    assert "right of those, estimated" in table.to_svg()
    assert "right of those, true" in table.to_svg()
    assert table.to_svg("left") != table.to_svg()
