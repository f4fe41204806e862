"""Which texts mention a class, and which senses of its name are not meant."""

import numpy as np
import pytest

from vsgraph.meanings.mentions import Lexicon, find_mentions
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.table import read_meanings, read_unwanted, write_meanings
from vsgraph.meanings.unwanted import find_unwanted, unwanted_words
from vsgraph.meanings.wordnet import WordNet


@pytest.fixture(scope="module")
def lexicon():
    return Lexicon(WordNet.open())


@pytest.mark.parametrize(
    ("text", "name", "mentioned"),
    [
        ("Two Wine-Glasses on a table", "wine glass", True),
        ("a wineglass", "wine glass", True),
        ("a glass of wine", "wine glass", False),
        ("three blind mice", "mouse", True),
        ("", "mouse", False),
        ("a dogma", "dog", False),
        ("<script>dogs</script>", "dog", True),
    ],
)
def test_names_are_found_in_any_spelling_and_never_within_words(lexicon, text, name, mentioned):
    found = find_mentions([text], [lexicon.phrases(name)], lexicon)
    assert found.toarray().tolist() == [[mentioned]]


@pytest.mark.parametrize(
    ("class_name", "text"),
    [
        ("crane (bird)", "a crane in the reeds"),
        ("n02084071-dog", "two dogs"),
        ("n02084071", "a domestic dog"),
        ("hound, hound dog", "the hounds are out"),
        ("737-200", "a 737-200 at the gate"),
        ("boeing 737", "a boeing 737"),
    ],
)
def test_classes_are_found_by_what_people_call_them(lexicon, class_name, text):
    meaning = Meaning(class_name, "n02084071" if class_name == "n02084071" else None, "")
    others = ["a boeing 747", "a bird (thing)", "flight 200"]
    found = find_mentions([text, *others], [lexicon.names_of(meaning)], lexicon)
    assert found.toarray().ravel().tolist() == [True, False, False, False]


@pytest.mark.parametrize("class_name", ["737-200", "()", "..."])
def test_a_name_without_letters_makes_no_noun_unwanted(lexicon, class_name):
    meaning = Meaning(class_name, None, "an airliner of that type")
    texts = ["red jet of that type at the airport, a plane"] * 40
    assert find_unwanted([meaning], [texts], lexicon, by_words) == []


def test_words_for_the_meant_sense_count_beside_the_name(lexicon):
    sofa = Meaning("couch", "n04256520", "")
    assert ("sofa",) in lexicon.words_for(sofa)
    assert ("sofa",) not in lexicon.names_of(sofa)


def by_words(texts):
    """Vectors that count words: enough to tell a toy from an animal."""
    words = sorted({word for text in texts for word in text.lower().split()})
    return np.array([[text.lower().split().count(word) for word in words] for text in texts], float)


TOYS = ["a teddy bear is a child's toy, a plush toy stuffed with soft materials"] * 30
ANIMALS = ["a bear in the woods, massive with strong claws and a long shaggy coat"] * 60


def test_a_noun_that_ends_with_the_name_and_is_no_kind_of_it_is_unwanted(lexicon):
    bear = Meaning("bear", "n02131653", "", chosen=True)
    (found,) = find_unwanted([bear], [TOYS + ANIMALS], lexicon, by_words)
    assert (found.class_name, found.wnid, found.unwanted) == ("bear", "n04399382", True)
    assert ("teddy", "bear") in unwanted_words(found, lexicon)


def test_a_sense_that_is_a_class_of_its_own_is_not_unwanted(lexicon):
    bears = [Meaning("bear", "n02131653", ""), Meaning("teddy", "n04399382", "")]
    assert find_unwanted(bears, [TOYS + ANIMALS, TOYS], lexicon, by_words) == []


def test_a_kind_of_the_meant_sense_is_not_unwanted(lexicon):
    texts = ["a brown bear with strong claws", "a polar bear, a bear of the arctic"] * 20
    assert find_unwanted([Meaning("bear", "n02131653", "")], [texts], lexicon, by_words) == []


def test_few_texts_make_no_sense(lexicon):
    bear = Meaning("bear", "n02131653", "")
    assert find_unwanted([bear], [TOYS[:3] + ANIMALS * 5], lexicon, by_words) == []


def test_unwanted_rows_of_a_table_are_read_apart(tmp_path):
    table = tmp_path / "meanings.csv"
    toy = Meaning("bear", "n04399382", "teddy bear: a toy", unwanted=True)
    write_meanings(table, [Meaning("bear", "n02131653", "an animal", chosen=True), toy])
    assert [m.wnid for m in read_meanings(table)] == ["n02131653"]
    assert read_unwanted(table) == [toy]
