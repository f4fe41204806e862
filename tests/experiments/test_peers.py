"""The methods of other papers, against cases worked out by hand."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from head_tables import difference
from heads import train_on
from peers import (
    Lesson,
    curriculum,
    density_center,
    fit_logistic,
    mentor,
    of_probs,
    one_hot,
    prototypes,
    self_learning,
    three_subsets,
    verification,
)
from ranked import auroc
from resnet50 import layer
from vsgraph.result.parts import NONE, UNANSWERED
from vsgraph.training import Recipe


def angles(*degrees):
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def test_curriculum_net_learns_from_dense_images_first():
    line = np.array([0.0, 0.1, -0.1, 0.2, 3.0, 3.1, 10.0])[:, None]
    center, distances = density_center(line)
    assert center in {0, 1, 2, 3}
    np.testing.assert_allclose(distances, ((line - line[center]) ** 2)[:, 0], atol=1e-9)
    assert three_subsets(distances).tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert three_subsets(np.zeros(4)).tolist() == [0, 0, 0, 0]
    both = np.concatenate([line, 100 + line])
    lesson = curriculum(both, np.repeat([0, 1], 7), 2)
    first, second, third = (stage[:7].tolist() for stage in lesson.stages)
    assert first == [1, 1, 1, 1, 0, 0, 0]
    assert second == [1, 1, 1, 1, 0.5, 0.5, 0]
    assert third == [1, 1, 1, 1, 0.5, 0.5, 0.5]
    assert lesson.quality[:4].min() > lesson.quality[4:6].max() > lesson.quality[6]


def test_prototypes_are_dense_and_differ():
    # The similarity of rank 6 of 16 is cos 11. Densities: 0 at 0 degrees, 1 at 9, -1 at 20, -2 at
    # 90. The image at 9 is the densest; those at 0 and 20 are too similar to it; 90 is not.
    assert prototypes(angles(0, 9, 20, 90)).tolist() == [1, 3]


def test_self_learning_teaches_both_labels():
    unit = np.concatenate([angles(0, 9, 20, 91), angles(80, 89, 100)])
    lesson = self_learning(unit, np.array([0, 0, 0, 0, 1, 1, 1]), 2)
    # class 0 has prototypes at 9 and 91 degrees, class 1 at 80 alone: dense, far from the others
    scores = np.stack([(unit @ angles(9, 91).T).mean(axis=1), (unit @ angles(80).T)[:, 0]], axis=1)
    assert lesson.labels.tolist() == scores.argmax(axis=1).tolist()
    assert lesson.labels[3] == 1
    np.testing.assert_allclose(lesson.table[3], [0.5, 0.5])
    np.testing.assert_allclose(lesson.table[0], [1, 0])
    assert lesson.quality[3] == pytest.approx(scores[3, 0] - scores[3, 1], abs=1e-6)


def two_senses(seed=0, n=60, n_dims=24):
    """Return unit vectors of two classes; a third of each shows something else."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(4, n_dims))
    web, wrong = np.repeat([0, 1], n), np.tile(np.arange(n) % 3 == 0, 2)
    rows = centers[web + 2 * wrong] + 0.8 * random.normal(size=(2 * n, n_dims))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), web, wrong


def some_answers(web, wrong, n=10):
    answers = np.full(len(web), UNANSWERED)
    for number in (0, 1):
        rows = np.flatnonzero(web == number)[:n]
        answers[rows] = np.where(wrong[rows], NONE, number)
    return answers


def test_verification_weighs_images_like_those_that_people_judged():
    unit, web, wrong = two_senses()
    answers = some_answers(web, wrong)
    lesson = verification(unit, web, 2, answers)
    (shares,) = lesson.stages
    told = answers != UNANSWERED
    np.testing.assert_array_equal(shares[told], ~wrong[told])
    assert auroc(shares[~told], ~wrong[~told]) > 0.95
    assert shares[~told & wrong].mean() < 0.1 < 0.6 < shares[~told & ~wrong].mean()


def test_a_mentor_learns_how_large_a_loss_may_be():
    web = np.repeat([0, 1], 30)
    wrong = np.tile(np.arange(30) % 3 == 0, 2)
    own = np.where(wrong, 0.1, 0.8) + np.linspace(0, 0.05, 60)
    probs = np.where(one_hot(web, 2) > 0, own[:, None], 1 - own[:, None])
    answers = some_answers(web, wrong)
    (shares,) = mentor(probs, web, 2, answers).stages
    told = answers != UNANSWERED
    np.testing.assert_array_equal(shares[told], ~wrong[told])
    assert shares[~told & ~wrong].min() > 0.8 > 0.3 > shares[~told & wrong].max()


def test_the_mentor_is_a_logistic_regression():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(200, 3))
    right = inputs[:, 0] + 0.5 * random.normal(size=200) > 0
    model = LogisticRegression(C=1 / (1e-3 * 200), fit_intercept=False, tol=1e-8)
    expected = model.fit(inputs, right).coef_[0]
    np.testing.assert_allclose(fit_logistic(inputs, right), expected, rtol=1e-2)


def test_stages_go_on_from_each_other():
    unit, web, wrong = two_senses()
    clean = (~wrong).astype(float)
    plain = one_hot(web, 2)
    lesson = Lesson(plain, web, clean, clean, (clean, np.ones(len(web))))
    alone = Lesson(plain, web, clean, clean, (clean,))
    first, both = (
        train_on(given, unit, Recipe(epochs=4, batch_size=16)) for given in (alone, lesson)
    )
    assert not np.allclose(first.weights, both.weights)
    assert (first.probs(unit).argmax(axis=1) == web)[~wrong].all()


def test_the_difference_is_taken_on_the_same_photos():
    def judged(hits):
        return {"net": {"n": 4, "hits": np.packbits(hits).tobytes().hex()}}

    found = [{"a": judged([1, 1, 1, 0]), "b": judged([0, 0, 1, 0])}]
    ahead, reach = difference(found, "a", "b", "net")
    assert ahead == pytest.approx(50)
    assert 25 < reach <= 50
    assert difference(found, "a", "a", "net") == (0, 0)


def test_probabilities_teach_what_they_say():
    lesson = of_probs(np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0, 0]))
    assert lesson.labels.tolist() == [0, 1]
    assert lesson.confidence.tolist() == [0.7, 0.8]
    assert lesson.quality.tolist() == [0.7, 0.2]


def test_a_layer_of_keras_computes_the_same_in_torch():
    random = np.random.default_rng(0)
    arrays = {"c/kernel": random.normal(size=(1, 1, 3, 5)), "c/bias": random.normal(size=5)}
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    arrays |= {f"b/{name}": random.uniform(0.5, 2, size=5) for name in names}
    pixels = random.normal(size=3)
    before = pixels @ arrays["c/kernel"][0, 0] + arrays["c/bias"]
    expected = arrays["b/gamma"] * (before - arrays["b/moving_mean"]) / np.sqrt(
        arrays["b/moving_variance"] + 1e-3
    ) + arrays["b/beta"]  # fmt: skip
    made = {key: torch.from_numpy(np.asarray(v)) for key, v in layer(arrays, "c", "b", "n").items()}
    image = torch.from_numpy(pixels)[None, :, None, None]
    found = torch.nn.functional.batch_norm(
        torch.nn.functional.conv2d(image, made["n.convolution.weight"]),
        made["n.normalization.running_mean"], made["n.normalization.running_var"],
        made["n.normalization.weight"], made["n.normalization.bias"], eps=1e-5,
    )  # fmt: skip
    np.testing.assert_allclose(found.numpy().ravel(), expected, rtol=1e-5)
