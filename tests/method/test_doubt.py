"""Labels can be doubted: images of none of the classes, senses that are not meant, purity."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import vsgraph
from vsgraph import Settings
from vsgraph.method.algorithm import Solver
from vsgraph.method.calibration import MOST, find_shift
from vsgraph.method.decisions import least_belief
from vsgraph.method.doubt import MOST_CLASSES, TERMS, WEIGHTS, _rarer
from vsgraph.method.inputs import Words, check_inputs
from vsgraph.method.naming import learn_naming
from vsgraph.result.parts import Anchors, Decision, Rule

N_TEXT = 48


@dataclasses.dataclass
class Crawl:
    """Four classes of 100 images; 60 more under the first label show another sense."""

    features: np.ndarray
    texts: np.ndarray
    meanings: np.ndarray
    web_labels: np.ndarray
    shown: np.ndarray  # 4 is the other sense
    words: Words

    def correct(self, **changes):
        settings = Settings(anchors_per_class=20, **changes)
        return vsgraph.correct(
            self.features, self.texts, self.meanings, self.web_labels, words=self.words,
            settings=settings,
        )  # fmt: skip


def make(seed=0, *, unwanted=False, n_other=60):
    random = np.random.default_rng(seed)
    shown = np.r_[np.repeat(np.arange(4), 100), np.full(n_other, 4)]
    n = len(shown)
    features = np.abs(random.normal(size=(5, 32))[shown] + 0.3 * random.normal(size=(n, 32)))
    senses = random.normal(size=(5, N_TEXT))
    names = senses + 0.5 * random.normal(size=(5, N_TEXT))
    texts = senses[shown] + 0.6 * random.normal(size=(n, N_TEXT))
    said = np.zeros((n, 4 + unwanted), bool)
    said[np.arange(n)[shown < 4], shown[shown < 4]] = True
    said[random.random(n) < 0.3] = False
    if unwanted:
        said[shown == 4, 4] = True
    words = Words(
        names[: 4 + unwanted], csr_array(said), csr_array(said),
        senses[4 : 4 + unwanted], np.zeros(int(unwanted), np.intp), ("toy",) * unwanted,
    )  # fmt: skip
    return Crawl(features, texts, senses[:4], np.where(shown == 4, 0, shown), shown, words)


@pytest.mark.parametrize("seed", range(3))
def test_images_of_no_class_are_doubted(seed):
    crawl = make(seed)
    corrected = crawl.correct()
    none = crawl.shown == 4
    assert (corrected.decisions[none] == Decision.REJECT).mean() > 0.8
    assert (corrected.decisions[~none] == Decision.REJECT).mean() < 0.1
    share, error = corrected.class_shares()
    assert share[0] < share[1:].min()
    assert (error < 0.05).all()


@pytest.mark.parametrize("seed", range(3))
def test_an_unwanted_sense_is_named_and_thrown_away(seed):
    crawl = make(seed, unwanted=True)
    corrected = crawl.correct()
    other = crawl.shown == 4
    assert (corrected.unwanted[other] == 0).mean() > 0.9
    assert (corrected.rules[other] == Rule.UNWANTED).mean() > 0.9
    assert (corrected.unwanted[~other] == -1).all()
    assert len(corrected.class_names) == corrected.final_probs.shape[1] == 4
    assert corrected.anchors.classes.max() < 4


def test_nobody_is_warned_of_anchors_of_unwanted_senses():
    crawl = make(unwanted=True, n_other=12)  # fewer than anchors are asked for; warnings are errors
    assert (crawl.correct().unwanted == 0).sum() >= 12


def test_without_noise_hardly_anything_is_rejected():
    corrected = make(n_other=0).correct()
    assert corrected.counts["reject"] < 0.05 * len(corrected)
    assert corrected.estimate["web"] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_images_without_text_are_not_rejected_for_that_where_other_texts_are_good(seed):
    crawl = make(seed, n_other=0)
    bare = np.random.default_rng(seed).random(len(crawl.shown)) < 0.4
    crawl.texts[bare] = 0
    said = crawl.words.names.toarray() & ~bare[:, None]
    crawl.words = dataclasses.replace(crawl.words, names=csr_array(said), words=csr_array(said))
    corrected = crawl.correct()
    assert (corrected.decisions[bare] == Decision.REJECT).mean() < 0.2
    assert (corrected.final_labels[bare] == crawl.shown[bare]).mean() > 0.8


def test_more_purity_rejects_more_and_keeps_the_surest():
    crawl = make()
    loose, strict = crawl.correct(purity=0.5), crawl.correct(purity=0.985)
    assert strict.counts["reject"] > loose.counts["reject"]
    assert strict.estimate["left"] >= 0.985 - 1e-6
    left = strict.decisions != Decision.REJECT
    assert (loose.decisions[left] != Decision.REJECT).all()


def test_a_purity_out_of_reach_is_said():
    with pytest.warns(vsgraph.VSGraphWarning, match="not even the surest.*can be had at 60"):
        assert least_belief(np.array([0.6, 0.3]), 0.99) == 0.6


def test_a_purity_out_of_reach_keeps_hardly_more_than_one_that_is_in_reach():
    belief = np.linspace(0.3, 0.98, 200)
    reached = (belief >= least_belief(belief, 0.98)).sum()
    with pytest.warns(vsgraph.VSGraphWarning, match="not even the surest"):
        out_of_reach = (belief >= least_belief(belief, 0.985)).sum()
    assert reached == 1
    assert out_of_reach == 20


def test_a_class_of_which_all_images_show_another_sense_is_rejected():
    crawl = make(unwanted=True)
    some = (crawl.shown != 0) & (crawl.shown != 3)
    said = crawl.words.names.toarray()[some]
    crawl = dataclasses.replace(
        crawl,
        features=crawl.features[some], texts=crawl.texts[some],
        web_labels=crawl.web_labels[some], shown=crawl.shown[some],
        words=dataclasses.replace(crawl.words, names=csr_array(said), words=csr_array(said)),
    )  # fmt: skip
    with pytest.warns(vsgraph.VSGraphWarning, match="only ones of a sense that is not meant"):
        corrected = crawl.correct()
    other = crawl.shown == 4
    assert (corrected.rules[other] == Rule.UNWANTED).all()
    assert (corrected.final_labels[other] == -1).all()


def test_a_record_keeps_what_was_doubted(tmp_path):
    corrected = make(unwanted=True).correct()
    corrected.save(tmp_path / "saved")
    loaded = vsgraph.Correction.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.unwanted, corrected.unwanted)
    assert loaded.estimate == corrected.estimate


def test_the_papers_forms_know_no_doubt_and_no_words():
    crawl = make(unwanted=True)
    with_words = crawl.correct(text_evidence=False)
    without = dataclasses.replace(crawl, words=None).correct(text_evidence=False)
    np.testing.assert_array_equal(with_words.final_labels, without.final_labels)
    assert with_words.unwanted is None
    assert with_words.estimate is None


def test_words_that_do_not_fit_are_refused():
    crawl = make()
    crawl.words = dataclasses.replace(crawl.words, names=crawl.words.names[:5])
    with pytest.raises(vsgraph.InputError, match=r"words.names must have shape"):
        crawl.correct()


def solve(crawl):
    """Return a solver, and what it knows of the first 50 images."""
    inputs = check_inputs(
        crawl.features, crawl.texts, crawl.meanings, crawl.web_labels, words=crawl.words
    )
    solver = Solver(inputs, settings=Settings(anchors_per_class=20))
    rows, network = slice(0, 50), solver.result("network").network
    weighed = solver.result("evidence").weigh(rows, [network[rows]])
    return solver, rows, network[rows], weighed


def test_a_text_that_is_not_trusted_says_nothing():
    assert WEIGHTS[True].shape == (2, len(TERMS))
    solver, rows, gnn, weighed = solve(make())
    foreign = weighed._replace(own=np.zeros(50, np.float32))
    before = solver.result("doubt")
    random = np.random.default_rng(1)
    texts = random.normal(size=before.inputs.text_embeddings.shape).astype(np.float32)
    names = csr_array(random.random(before.inputs.words.names.shape) < 0.5)
    after = dataclasses.replace(
        before,
        inputs=dataclasses.replace(before.inputs, text_embeddings=texts),
        naming=dataclasses.replace(
            before.naming, words=dataclasses.replace(before.inputs.words, names=names, words=names)
        ),
    )
    np.testing.assert_array_equal(
        before.believe(rows, gnn, foreign), after.believe(rows, gnn, foreign)
    )
    assert (before.believe(rows, gnn, weighed) != after.believe(rows, gnn, weighed)).any()


def test_half_a_trust_is_half_of_both():
    solver, rows, gnn, weighed = solve(make())
    doubt = solver.result("doubt")
    none, half, full = (
        doubt.believe(rows, gnn, weighed._replace(own=np.full(50, own))) for own in (0, 0.5, 1)
    )
    np.testing.assert_allclose(half, (none + full) / 2, atol=1e-6)


@pytest.mark.parametrize("n_other", [0, 300])
def test_a_crawl_whose_wrong_labels_are_found_is_not_believed_less(n_other):
    crawl = make(n_other=n_other)
    assert solve(crawl)[0].result("doubt").shift == 0
    corrected = crawl.correct()
    assert (corrected.decisions[crawl.shown < 4] == Decision.REJECT).mean() < 0.1
    assert (corrected.decisions[crawl.shown == 4] == Decision.REJECT).all()


def test_a_crawl_with_many_doubtful_labels_is_believed_less():
    solver, rows, gnn, weighed = solve(make())
    doubt = solver.result("doubt")
    before = doubt.believe(rows, gnn, weighed)
    after = dataclasses.replace(doubt, shift=MOST).believe(rows, gnn, weighed)
    assert (after <= before).all()
    assert (before.argmax(axis=1) == after.argmax(axis=1)).mean() > 0.95


def naming_of(named, looks_like):
    """Learn from one class: who is called so, and whether its images look like the first ones."""
    n = len(named)
    random = np.random.default_rng(0)
    features = np.eye(2)[np.where(looks_like, 0, 1)] + 0.1 * random.normal(size=(n, 2))
    features = np.r_[features, [[0.0, 1.0]] * n]  # another class, to tell it apart from
    labels = np.repeat([0, 1], n)
    names = csr_array(np.c_[np.r_[named, np.zeros(n, bool)], np.repeat([False, True], n)])
    words = Words(
        np.eye(2), names, names, np.empty((0, 2)), np.empty(0, np.intp), ()
    )  # fmt: skip
    inputs = check_inputs(features, np.eye(2)[labels], np.eye(2), labels, words=words)
    anchors = Anchors(np.array([0, n]), np.array([0, 1]), np.ones(2))
    own = np.ones(2 * n, np.float32)
    return learn_naming(inputs, words, anchors, inputs.text_embeddings, own, progress=False)


def test_a_name_that_every_text_has_says_nothing():
    often, seldom = (naming_of(np.arange(40) < n_named, np.ones(40, bool)) for n_named in (40, 10))
    assert abs(often.surprise[0]) < 0.02
    assert seldom.surprise[0] > 1


def test_images_that_are_not_named_are_believed_as_they_look():
    named = np.arange(40) < 20
    alike, unlike = (naming_of(named, looks) for looks in (named | True, named))
    assert alike.unnamed[0] > 0 > unlike.unnamed[0]
    assert naming_of(np.ones(40, bool), named).unnamed[0] == pytest.approx(0, abs=0.05)


def test_labels_that_are_surely_wrong_say_nothing_of_the_others():
    assert find_shift(np.repeat([0.95, 0.01], [10, 90])) == 0
    assert find_shift(np.full(10, 0.5)) == MOST
    assert find_shift(np.empty(0)) == MOST  # all of them show senses that are not meant


@pytest.mark.slow
def test_labels_of_many_classes_are_believed_as_those_of_few():
    """Of 200 classes a graph gives each little; that speaks against none of them."""
    random, n, n_classes = np.random.default_rng(0), 6000, 200
    spread = (1 + np.arange(64)) ** -0.5
    shown = random.integers(n_classes, size=n)
    web = np.where(random.random(n) < 0.3, random.integers(n_classes, size=n), shown)
    centers = random.normal(size=(n_classes, 64)) * spread
    meanings = random.normal(size=(n_classes, 96))
    features = centers[shown] + 0.9 * random.normal(size=(n, 64)) * spread + 0.1
    texts = meanings[shown] + random.normal(size=(n, 96))
    texts[random.random(n) < 1 / 3] = 0
    corrected = vsgraph.correct(np.maximum(features, 0), texts, meanings, web)
    left = corrected.final_labels >= 0
    assert left.mean() > 0.95
    assert (corrected.final_labels == shown)[left].mean() > 0.98


def test_the_graph_is_heard_as_in_crawls_of_fewer_classes_only_beyond_these():
    assert _rarer(2) == _rarer(MOST_CLASSES) == 0
    assert _rarer(400) == pytest.approx(np.log(399 / (MOST_CLASSES - 1)))
