"""Bad input works sensibly or gets one clear line."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import vsgraph
from two_senses import QUICK, make_two_senses
from vsgraph import InputError, Settings, VSGraphWarning


@pytest.fixture
def crawl():
    return make_two_senses(n=80)


def test_nan_features_are_refused_by_row(crawl):
    crawl.features[[3, 17]] = np.nan
    with pytest.raises(
        InputError, match=r"features has NaN or infinite values in rows 3, 17; replace"
    ):
        crawl.correct()


def test_infinite_features_are_refused(crawl):
    crawl.features[5, 2] = np.inf
    with pytest.raises(InputError, match=r"features has NaN or infinite values in row 5"):
        crawl.correct()


def test_a_partly_missing_text_is_refused(crawl):
    crawl.text[5, 2] = np.nan
    with pytest.raises(InputError, match=r"text_embeddings has NaN .* in row 5"):
        crawl.correct()


def test_wrong_lengths_are_refused_with_both_numbers(crawl):
    with pytest.raises(InputError, match=r"text_embeddings .* expected 80, got 79"):
        crawl.correct(text_embeddings=crawl.text[:-1])
    with pytest.raises(InputError, match=r"web_labels must have one entry per image.*\(79,\)"):
        crawl.correct(web_labels=crawl.web_labels[:-1])
    with pytest.raises(InputError, match=r"text_embeddings must have 11 columns, got 12"):
        crawl.correct(label_embeddings=crawl.meaning[:, :-1])
    with pytest.raises(InputError, match=r"cnn_probs must have 4 columns, got 3"):
        crawl.correct(cnn_probs=np.ones((80, 3)) / 3)
    with pytest.raises(InputError, match=r"class_names must name 4 classes, got 3"):
        crawl.correct(class_names=["a", "b", "c"])
    with pytest.raises(InputError, match=r"class_names must be unique; repeated: 'b'"):
        crawl.correct(class_names=["a", "b", "b", "c"])
    with pytest.raises(InputError, match=r"sources must have shape \(80,\), got \(1,\)"):
        crawl.correct(sources=["google"])


def test_answers_that_do_not_fit_are_refused(crawl):
    with pytest.raises(InputError, match=r"answers must be \(80,\) whole numbers.*\(79,\)"):
        crawl.correct(answers=np.zeros(79, int))
    with pytest.raises(InputError, match=r"answers must be \(80,\) whole numbers.*float64"):
        crawl.correct(answers=np.zeros(80))
    wrong = np.full(80, -2)
    wrong[[4, 7]] = 4, -3
    with pytest.raises(InputError, match=r"answers must lie in -2\.\.3, .* in rows 4, 7"):
        crawl.correct(answers=wrong)
    several = np.eye(4, dtype=bool)[crawl.web_labels]
    crawl.correct(web_labels=several, answers=np.full(80, -2))
    with pytest.raises(InputError, match="only if images have one web label each"):
        crawl.correct(web_labels=several, answers=np.zeros(80, int))


def test_labels_out_of_range_are_refused_by_row(crawl):
    crawl.web_labels[7] = 4
    with pytest.raises(InputError, match=r"web_labels must lie in 0\.\.3, got 0\.\.4 \(row 7\)"):
        crawl.correct()
    crawl.web_labels[7] = -1
    with pytest.raises(InputError, match=r"web_labels must lie in 0\.\.3, got -1\.\.3"):
        crawl.correct()


def test_labels_of_the_wrong_kind_are_refused(crawl):
    with pytest.raises(InputError, match="web_labels must be whole numbers"):
        crawl.correct(web_labels=crawl.web_labels.astype(float))
    with pytest.raises(InputError, match="must hold only True and False"):
        crawl.correct(web_labels=np.full((80, 4), 2))
    with pytest.raises(InputError, match="web_labels must have 4 columns"):
        crawl.correct(web_labels=np.ones((80, 5), bool))


def test_ragged_and_textual_arrays_are_refused(crawl):
    with pytest.raises(InputError, match="features must be an array of numbers"):
        crawl.correct(features=[["a"]] * 80)
    with pytest.raises(InputError, match="rows of equal length"):
        crawl.correct(features=[[1.0], [1.0, 2.0]])
    with pytest.raises(InputError, match="non-empty 2-d array"):
        crawl.correct(features=np.zeros((0, 4)))


def test_probabilities_that_are_scores_are_refused(crawl):
    with pytest.raises(InputError, match=r"cnn_probs must be probabilities .* apply a softmax"):
        crawl.correct(cnn_probs=np.full((80, 4), 3.0))


def test_too_few_images_for_k_is_said():
    with pytest.raises(InputError, match="got 5 for 4 images; lower n_neighbors"):
        vsgraph.visual_graph(np.eye(4), n_neighbors=5)


def test_two_images_are_enough_for_one_neighbor():
    graph = vsgraph.visual_graph([[1.0, 0.0], [1.0, 1.0]], n_neighbors=1)
    assert graph.nnz == 2


def test_one_class_works(crawl):
    corrected = crawl.correct(web_labels=np.zeros(80, int), label_embeddings=crawl.meaning[:1])
    assert set(corrected.final_labels) <= {0, -1}


def test_an_empty_class_and_small_classes_are_said_in_one_line(crawl):
    crawl.web_labels[crawl.web_labels == 3] = 2
    rare = np.flatnonzero(crawl.web_labels == 1)[3:]
    crawl.web_labels[rare] = 0
    names = ["ant", "bee", "cat", "dog"]
    with pytest.warns(VSGraphWarning) as said:
        corrected = crawl.correct(class_names=names)
    assert len(said) == 1
    assert str(said[0].message) == (
        "1 of 4 classes have no images, or only ones of a sense that is not meant (dog): check "
        "their names and meanings; 1 of 4 classes have fewer than 8 "
        "anchors (bee): every one of their images with text is an anchor, right or wrong; set "
        "anchors_per_class lower or find more images"
    )
    assert (np.bincount(corrected.anchors.classes, minlength=4) == [8, 3, 8, 0]).all()


def test_a_small_class_has_no_more_anchors_than_its_better_half(crawl):
    every = vsgraph.Settings(anchors_per_class=50)
    match = crawl.correct(settings=every).text_match
    n_texts = np.bincount(match.indices[~np.isnan(match.data)], minlength=4)
    half = crawl.correct(settings=every).anchors  # without a warning
    assert (np.bincount(half.classes) == np.ceil(n_texts / 2)).all()
    least = min(half.match[half.classes == 0])
    own = match[:, [0]].tocoo().data
    assert (own[~np.isnan(own)] > least).sum() < n_texts[0] / 2
    with pytest.warns(VSGraphWarning, match="4 of 4 classes have fewer than 50 anchors"):
        paper = crawl.correct(settings=dataclasses.replace(every, text_evidence=False))
    assert (np.bincount(paper.anchors.classes) == n_texts).all()


def test_nan_text_is_missing_text(crawl):
    as_nan = np.where(crawl.text.any(axis=1, keepdims=True), crawl.text, np.nan)
    plain, marked = crawl.correct(), crawl.correct(text_embeddings=as_nan)
    np.testing.assert_array_equal(plain.final_probs, marked.final_probs)


def test_a_class_without_text_keeps_its_labels_and_is_named():
    crawl = make_two_senses(n=120, noise=0.0, spread=0.05)
    crawl.text[crawl.web_labels == 2] = 0
    with pytest.warns(VSGraphWarning, match=r"1 of 4 classes have no text near any image.* \(2\)"):
        corrected = crawl.correct()
    rows = crawl.web_labels == 2
    assert (corrected.final_labels[rows] == 2).all()
    assert (corrected.rules[rows] == vsgraph.Rule.NOT_JUDGED).all()


def test_an_unreadable_image_is_a_row_of_zeros_and_keeps_its_label(crawl):
    crawl.features[11] = 0
    crawl.text[11] = 0
    corrected = crawl.correct()
    assert corrected.adjacency[[11]].nnz == 0
    assert corrected.final_labels[11] == crawl.web_labels[11]
    assert corrected.explain(11).neighbors == ()


def test_negative_cosines_isolate_nodes_without_harm():
    signs = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    graph = vsgraph.visual_graph(signs, n_neighbors=2)
    assert graph.nnz == 0
    for form in ("released", "printed"):
        operator = vsgraph.propagation_matrix(graph, self_weight=0, form=form)
        assert not operator.toarray().any()


def test_duplicate_images_are_neighbors_of_weight_one_and_ties_go_by_row():
    same = np.tile([[0.3, 0.4, 0.5]], (6, 1))
    found = vsgraph.nearest_neighbors(same, n_neighbors=2)
    neighbors, cosines = found.rows, found.similarities
    assert neighbors.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [0, 1]]
    np.testing.assert_allclose(cosines, 1)


def test_huge_and_tiny_features_do_not_overflow():
    random = np.random.default_rng(0)
    s = random.normal(size=(20, 4))
    for scale in (1e300, 1e-300):
        graph = vsgraph.visual_graph(s * scale, n_neighbors=3)
        assert abs(graph - vsgraph.visual_graph(s, n_neighbors=3)).max() < 1e-9


def test_a_graph_of_the_wrong_kind_is_refused(crawl):
    with pytest.raises(InputError, match=r"graph must be a scipy sparse \(80, 80\), got csr_array"):
        crawl.correct(graph=csr_array((79, 79)))
    with pytest.raises(InputError, match=r"graph must be a scipy sparse .* got ndarray"):
        crawl.correct(graph=np.eye(80))
    with pytest.raises(
        InputError, match=r"cosine similarities, .* unlike those in row 3; give distances"
    ):
        crawl.correct(graph=csr_array(([np.nan], ([3], [4])), shape=(80, 80)))
    with pytest.raises(InputError, match=r"cosine distances, which lie in 0\.\.2, .* in row 0"):
        vsgraph.adopt_graph(csr_array([[0, 7.0], [0, 0]]), n_images=2, kind="distance")
    with pytest.raises(InputError, match="kind must be one of similarity, distance"):
        vsgraph.adopt_graph(csr_array((2, 2)), n_images=2, kind="euclid")


def test_a_distance_below_zero_by_rounding_is_taken():
    graph = csr_array((np.float32([-1.2e-7, 0.5]), ([0, 1], [1, 2])), shape=(3, 3))
    assert vsgraph.adopt_graph(graph, n_images=3, kind="distance").nnz == 4


def test_labels_that_are_lists_or_words_are_refused(crawl):
    with pytest.raises(InputError, match="but not lists of different lengths"):
        crawl.correct(web_labels=[[0], [0, 1]] + [[1]] * 78)
    with pytest.raises(InputError, match="must hold only True and False, got"):
        crawl.correct(web_labels=np.full((80, 4), "a"))


def test_odd_arguments_are_refused_in_one_line(crawl):
    with pytest.raises(InputError, match=r"settings must be a vsgraph\.Settings, got dict"):
        vsgraph.correct(
            crawl.features, crawl.text, crawl.meaning, crawl.web_labels, settings={"k": 3}
        )
    with pytest.raises(InputError, match="class_names must be a sequence of names, got 'abcd'"):
        crawl.correct(class_names="abcd")
    with pytest.raises(InputError, match="class_names must be a sequence of names, got 5"):
        crawl.correct(class_names=5)
    crawl.meaning[2] = 0
    with pytest.raises(InputError, match="label_embeddings is zero in row 2; every class needs"):
        crawl.correct()


def test_sources_may_be_missing(crawl):
    corrected = crawl.correct(sources=["google"] * 40 + [None] * 40)
    assert len(corrected.anchors) == 4 * 2 * 5  # half of ten images each


def test_stages_check_their_arguments_too(crawl):
    with pytest.raises(InputError, match="match must be the sparse matrix"):
        vsgraph.select_anchors(np.eye(3), per_class=1)
    sure = vsgraph.Anchors(np.array([80]), np.array([0]), np.ones(1))
    graph = vsgraph.visual_graph(crawl.features, n_neighbors=3)
    with pytest.raises(InputError, match="anchors must be rows and classes of these images"):
        vsgraph.label_by_graph(
            crawl.features, graph, sure, crawl.web_labels, n_classes=4, settings=QUICK
        )
    none = vsgraph.Anchors(np.array([], int), np.array([], int), np.array([]))
    with pytest.raises(InputError, match="anchors must not be empty"):
        vsgraph.label_by_graph(
            crawl.features, graph, none, crawl.web_labels, n_classes=4, settings=QUICK
        )


def test_a_sparse_label_matrix_is_not_changed(crawl):
    web = csr_array(np.eye(4)[crawl.web_labels])
    web.data[0] = 0
    crawl.correct(web_labels=web)
    assert web.nnz == 80


def test_numbers_of_numpy_are_taken_as_plain_ones():
    chosen = Settings(n_neighbors=np.int64(4), self_weight=np.float32(0.5), epochs=np.uint8(3))
    assert type(chosen.n_neighbors) is int
    assert type(chosen.self_weight) is float


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("n_neighbors", 5.0, "n_neighbors must be a whole number, got 5.0"),
        ("n_neighbors", "5", "n_neighbors must be a whole number, got '5'"),
        ("random_state", None, "random_state must be a whole number, got None"),
        ("self_weight", float("inf"), "self_weight must be at least 0 and finite, got inf"),
        ("learning_rate", float("inf"), "learning_rate must be above 0 and finite"),
        ("solver", "newton", "solver must be one of optimum, adam"),
        ("n_neighbors", 0, "n_neighbors must be at least 1 and finite, got 0"),
        ("anchors_per_class", -1, "anchors_per_class must be at least 1"),
        ("rounds", 0, "rounds must be at least 1"),
        ("self_weight", -0.1, "self_weight must be at least 0"),
        ("confidence_threshold", 1.5, "confidence_threshold must lie between 0 and 1, got 1.5"),
        ("gnn_weight", float("nan"), "gnn_weight must lie between 0 and 1"),
        ("learning_rate", 0.0, "learning_rate must be above 0"),
        ("form", "prnted", "form must be one of released, printed, got 'prnted'"),
    ],
)
def test_impossible_settings_are_refused(name, value, rule):
    with pytest.raises(InputError, match=rule):
        Settings(**{name: value})


def test_unknown_settings_are_refused_by_name():
    with pytest.raises(
        InputError, match="unknown setting 'n_neighbours'; did you mean n_neighbors"
    ):
        Settings.from_dict({"n_neighbours": 3})


@pytest.mark.parametrize(
    ("name", "meant"), [("n_neighbours", "n_neighbors"), ("anchor_per_class", "anchors_per_class")]
)
def test_the_setting_that_is_meant_is_named(name, meant):
    with pytest.raises(InputError, match=rf"did you mean {meant}\?$"):
        Settings.from_dict({name: 3})
    with pytest.raises(InputError, match=r"known: n_neighbors, .*kept_scores$"):
        Settings.from_dict({"xyzxyz": 3})


def test_settings_go_by_the_papers_symbols_too():
    given = {"k": 3, "w": 0.5, "m": 7, "L": 2, "lambda": 0.25, "tau_f": 0.75}
    found = Settings.from_dict(given)

    assert (found.n_neighbors, found.self_weight, found.anchors_per_class) == (3, 0.5, 7)
    assert (found.gnn_layers, found.gnn_weight, found.confidence_threshold) == (2, 0.25, 0.75)
    with pytest.raises(InputError, match="n_neighbors is given twice, by its name"):
        Settings.from_dict({"k": 3, "n_neighbors": 3})


def test_presets_hold_the_papers_numbers():
    google, web, nus = Settings.google_500(), Settings.webvision_1000(), Settings.nus_81_web()
    assert (google.n_neighbors, google.anchors_per_class, google.self_weight) == (5, 10, 0)
    assert (google.learning_rate, google.epochs, google.weight_decay) == (0.1, 5000, 1e-6)
    assert (google.confidence_threshold, google.gnn_weight, google.gnn_layers) == (0.7, 0.5, 1)
    assert (nus.n_neighbors, nus.anchors_per_class) == (10, 50)
    assert web == google
    assert Settings.nus_81_web(n_neighbors=3).n_neighbors == 3


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError, match="n_neighbors"):
        QUICK.n_neighbors = 3
