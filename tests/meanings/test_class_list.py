"""What a list of classes says of the senses of its names."""

import math

import numpy as np
import pytest

from vsgraph.meanings import words
from vsgraph.meanings.class_list import FLAT, Candidates, _Kinds, _Topics, weigh_senses
from vsgraph.meanings.senses import describe_classes
from vsgraph.meanings.wordnet import WordNet

WEAPON, OF_A_VIOLIN = "n02879718", "n02879517"
BREED, SHIRT = "n02406749", "n03595614"
SAUSAGE, IN_A_BUN = "n07676602", "n07697537"
BAKED = "n07628870"


@pytest.fixture(scope="module")
def wordnet():
    return WordNet.open()


def fits(names):
    """Return how probable the senses of the first of some classes are."""
    return {m.wnid: m.fit for m in describe_classes(names) if m.class_name == names[0]}


def candidates(names, wordnet):
    return [Candidates(tuple(wordnet.words(n)), tuple(wordnet.senses(n))) for n in names]


def test_a_sense_is_worth_less_if_its_synonym_is_another_class():
    alone, beside = fits(["hot dog", "zebra"]), fits(["hot dog", "dog"])
    assert beside[SAUSAGE] / beside[IN_A_BUN] < 0.5 * alone[SAUSAGE] / alone[IN_A_BUN]


def test_a_proper_name_is_worth_less_for_a_name_in_lower_case():
    lower, proper = fits(["jersey", "zebra"]), fits(["Jersey", "zebra"])
    ratio = (lower[BREED] / lower[SHIRT]) / (proper[BREED] / proper[SHIRT])
    assert ratio == pytest.approx(math.exp(-1), rel=0.05)


def test_definitions_that_share_words_speak_for_a_sense(wordnet):
    wnids = [sense.wnid for sense in wordnet.senses("bow")]
    for other, near, far in (("quiver", WEAPON, OF_A_VIOLIN), ("fiddlestick", OF_A_VIOLIN, WEAPON)):
        classes = candidates(["bow", other], wordnet)
        weights = [np.full(len(c.synsets), 1 / len(c.synsets)) for c in classes]
        of_bow = dict(zip(wnids, _Topics(classes, wordnet).scores(weights)[0], strict=True))
        assert of_bow[near] > of_bow[far]


def test_a_class_above_another_one_costs_what_the_list_says(wordnet):
    kinds = _Kinds(candidates(["cake", "friedcake"], wordnet), wordnet)
    wnids = [sense.wnid for sense in wordnet.senses("cake")]
    of_cake = dict(zip(wnids, kinds.scores([[1 / 3] * 3, [1.0]])[0].tolist(), strict=True))
    assert of_cake.pop(BAKED) == pytest.approx(-math.log((FLAT + 1) / FLAT))
    assert set(of_cake.values()) == {0.0}


def test_a_list_with_classes_below_classes_is_not_taken_for_flat(wordnet):
    names = ["cake", "friedcake", "dachshund", "canine tooth", "hunting dog"]
    flat = _Kinds(candidates(names[:4], wordnet), wordnet)
    steep = _Kinds(candidates(names, wordnet), wordnet)
    weights = [[1 / n] * n for n in (len(wordnet.senses(name)) for name in names)]
    assert min(flat.scores(weights[:4])[0]) < 0
    assert min(steep.scores(weights)[0]) == 0


def test_a_list_of_single_senses_has_nothing_to_weigh(wordnet):
    (weights,) = weigh_senses(candidates(["dachshund"], wordnet), [None], wordnet)
    assert weights.tolist() == [1.0]
    assert weigh_senses([], [], wordnet) == []


def test_a_named_folder_of_wordnet_is_enough(wordnet, monkeypatch):
    named = WordNet.open(wordnet.folder)
    monkeypatch.setattr("vsgraph.meanings.wordnet._usual_folders", lambda: iter(()))
    words._wordnet.cache_clear()
    words._clean_word.cache_clear()
    assert not WordNet.is_found()
    texts = [["lifting steel"], ["in the wild"]]
    meanings = describe_classes(["crane", "zebra"], texts_by_class=texts, wordnet=named)
    assert len(meanings) > 2
