"""What is worth asking next."""

import dataclasses

import numpy as np
from scipy.sparse import csr_array

from vsgraph.method.queue import queue
from vsgraph.result.parts import Rule
from vsgraph.result.scores import TopScores
from vsgraph.review.upcoming import reasons

UNANSWERED = np.full(8, -2)


def make(corrected, right, links, labels=None):
    """Return a correction of eight images with some probabilities and links."""
    n = len(right)
    probs = np.column_stack([right, 1 - np.array(right)]).astype(np.float32)
    graph = np.zeros((n, n))
    for i, j, weight in links:
        graph[i, j] = graph[j, i] = weight
    return dataclasses.replace(
        corrected, web_labels=np.zeros(n, int) if labels is None else np.array(labels),
        final_labels=np.zeros(n, int), decisions=np.zeros(n, np.uint8),
        rules=np.full(n, Rule.AGREES, np.uint8), final_probs=TopScores.of(probs, n_kept=2),
        adjacency=csr_array(graph), unwanted=np.full(n, -1, np.int16),
    )  # fmt: skip


def test_the_least_sure_label_comes_first_among_images_that_stand_alone(corrected):
    made = make(corrected, [0.9, 0.5, 0.99, 0.7, 0.1, 0.97, 0.3, 0.6], [])
    assert queue(made, None, 3).tolist() == [1, 7, 3]
    assert queue(made, UNANSWERED, 99).tolist() == [1, 7, 3, 6, 0, 4, 5, 2]


def test_an_image_that_speaks_for_others_comes_before_one_that_is_less_sure(corrected):
    links = [(0, i, 0.9) for i in (1, 2, 3, 4)]
    made = make(corrected, [0.8, 0.7, 0.7, 0.7, 0.7, 0.5, 0.9, 0.9], links)
    first = queue(made, UNANSWERED, 2).tolist()
    assert first == [0, 5]  # the look-alikes of the first are settled with it
    assert reasons(made, UNANSWERED, np.array(first)) == [
        "label 80% probable, 4 unsure look alike",
        "label 50% probable",
    ]


def test_a_look_alike_of_another_label_does_not_count(corrected):
    links = [(0, i, 0.9) for i in (1, 2, 3, 4)]
    labels = [0, 1, 1, 1, 1, 0, 0, 0]
    probable = [0.8, 0.3, 0.3, 0.3, 0.3, 0.5, 0.9, 0.9]
    assert queue(make(corrected, probable, links, labels), None, 1).tolist() == [5]


def test_what_is_answered_is_not_asked_and_settles_its_look_alikes(corrected):
    made = make(corrected, [0.5, 0.5, 0.5, 0.6, 0.9, 0.9, 0.9, 0.9], [(0, 1, 1.0)])
    answered = UNANSWERED.copy()
    answered[0] = -1
    assert queue(made, answered, 3).tolist() == [2, 3, 4]
    assert queue(made, np.zeros(8, int), 3).tolist() == []


def test_what_cannot_be_judged_is_not_asked(corrected):
    made = make(corrected, [0.5] * 8, [])
    rules = made.rules.copy()
    rules[:6] = Rule.NOT_JUDGED
    assert queue(dataclasses.replace(made, rules=rules), None, 8).tolist() == [6, 7]


def test_several_labels_are_ranked_as_well(corrected):
    made = make(corrected, [0.5] * 8, [(0, 1, 0.9)])
    web = np.zeros((8, 2), bool)
    web[:, 0] = True
    several = dataclasses.replace(
        made, web_labels=web, final_labels=web.copy(), gnn_probs=made.final_probs, unwanted=None
    )
    assert sorted(queue(several, None, 8).tolist()) == list(range(8))
