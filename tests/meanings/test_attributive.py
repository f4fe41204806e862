"""Names of classes that stand before other nouns."""

import numpy as np
import pytest

from vsgraph.crawls import read_crawl
from vsgraph.meanings.attributive import (
    find_attributive,
    is_attributive,
    own_kinds,
    stands_only_before,
)
from vsgraph.meanings.crawl_words import mentions_in
from vsgraph.meanings.mentions import Lexicon
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.unwanted import find_unwanted, unwanted_title, unwanted_words
from vsgraph.meanings.wordnet import WordNet

ORANGE = Meaning("orange", "n07747607", "", chosen=True)  # the fruit
BEAR = Meaning("bear", "n02131653", "", chosen=True)
FRUITS = ["round yellow oranges of citrus trees", "an orange is a round citrus fruit"] * 30
CATS = ["an orange cat on a sofa", "a man with an orange shirt", "orange plates, orange cups"] * 5


@pytest.fixture(scope="module")
def lexicon():
    return Lexicon(WordNet.open())


def by_words(texts):
    words = sorted({word for text in texts for word in text.lower().split()})
    return np.array([[text.lower().split().count(word) for word in words] for text in texts], float)


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        ("An orange cat sleeps.", True),
        ("An ORANGE cat and an orange plate", True),
        ("An orange cat beside an orange.", False),
        ("Oranges cats like", False),  # a plural stands before no noun
        ("An orange, cat food and more", False),
        ("An orange running over", False),
        ("An orange is cut", False),
        ("A cat", False),
        ("", False),
    ],
)
def test_a_name_stands_only_before_nouns(lexicon, text, is_only):
    assert stands_only_before(text, "orange", set(), lexicon) is is_only


def test_a_kind_of_the_meant_sense_is_no_other_noun(lexicon):
    own = own_kinds(BEAR, lexicon)
    assert not stands_only_before("a bear cub on a bear rug", "bear", own, lexicon)
    assert stands_only_before("a bear rug", "bear", own, lexicon)


def test_a_name_that_often_stands_before_far_nouns_has_an_unwanted_sense(lexicon):
    (found,) = find_unwanted([ORANGE], [FRUITS + CATS], lexicon, by_words)
    assert (found.class_name, found.wnid, found.unwanted) == ("orange", None, True)
    assert is_attributive(found)
    assert unwanted_words(found, lexicon) >= {("orange", "cat"), ("orange", "plate")}
    assert ("orange",) not in unwanted_words(found, lexicon)
    assert unwanted_title(found) == "orange cat, orange shirt, orange plate, orange cup"


def test_a_sense_of_many_names_is_called_by_the_first():
    named = Meaning("orange", None, "a, b,c, d, e: letters", unwanted=True)
    assert unwanted_title(named) == "a, b, c, d, ..."


def test_nouns_after_a_name_may_speak_of_the_meant_sense(lexicon):
    near = ["the orange fruit is a round yellow fruit of citrus trees"] * 10
    assert find_attributive(ORANGE, FRUITS + near, lexicon, by_words) is None


def test_a_compound_with_one_noun_is_no_property(lexicon):
    juice = ["a glass of orange juice on a table"] * 15
    assert find_attributive(ORANGE, FRUITS + juice, lexicon, by_words) is None


def test_few_texts_with_nouns_after_the_name_are_no_sense(lexicon):
    assert find_attributive(ORANGE, FRUITS + CATS[:4], lexicon, by_words) is None


def test_without_other_texts_there_is_nothing_to_compare_with(lexicon):
    assert find_attributive(ORANGE, CATS, lexicon, by_words) is None


def test_a_kind_of_the_meant_sense_is_not_another_sense(lexicon):
    cubs = ["a bear cub far off on a rock"] * 10
    wild = ["massive bears with long shaggy coats and strong claws"] * 30
    assert find_attributive(BEAR, cubs + wild, lexicon, by_words) is None


def test_a_name_of_several_words_is_left_alone(lexicon):
    hot_dog = Meaning("hot dog", "n07697537", "")
    assert find_attributive(hot_dog, ["a hot dog stand"] * 30, lexicon, by_words) is None


def test_texts_that_have_the_name_elsewhere_do_not_speak_of_that_sense(tmp_path):
    texts = ["an orange cat", "an orange and an orange cat", "an orange", "an orange plate"]
    rows = [f"{i}.jpg,orange,{text}" for i, text in enumerate(texts)]
    (tmp_path / "crawl.csv").write_text("\n".join(["path,label,text", *rows]))
    named = "orange cat, orange plate: orange before another noun"
    unwanted = [Meaning("orange", None, named, unwanted=True)]
    crawl = read_crawl(tmp_path / "crawl.csv")
    for found in mentions_in(crawl, [ORANGE], unwanted):
        assert found.toarray().tolist() == [[1, 1], [1, 0], [1, 0], [1, 1]]
