"""Labels and their senses, the choice among them, and the table that people edit."""

import csv
import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from vsgraph.crawls.readers.nus_wide import NUS_81
from vsgraph.errors import InputError
from vsgraph.meanings import table as meaning_table
from vsgraph.meanings.senses import Meaning, candidate_senses, describe_classes, doubt
from vsgraph.meanings.table import by_class, read_meanings, write_meanings
from vsgraph.meanings.wordnet import DOG, WordNet

BIRD, MACHINE = "n02012849", "n03126707"
MACHINES = [
    "tower crane lifting steel beams at a construction site",
    "heavy objects hoisted by a crane",
    "cranes that move and lift cargo",
]
BIRDS = ["a crane wading in the marsh", "large bird with long legs and neck", "wading birds"]
OTHER_THAN_FIRST = {
    "castle": "fortified", "clouds": "water or ice", "coral": "marine", "plants": "botany",
    "protest": "public", "railroad": "track", "reflection": "mirror", "running": "on foot",
    "sign": "board", "tattoo": "skin", "tiger": "feline", "whales": "cetacean",
    "food": "solid", "snow": "layer", "sunset": "atmospheric", "water": "earth's surface",
    "swimmers": "travels through the water", "book": "physical objects",
    "elk": "North American deer",
}  # fmt: skip


@pytest.fixture(scope="module")
def wordnet():
    return WordNet.open()


def wnids_of(label, wordnet):
    return [sense.wnid for sense in candidate_senses(label, wordnet)]


@pytest.mark.parametrize("label", ["dog", "Dogs", "DOG", "#dog", " dog ", "dog!", "dog (a pet)"])
def test_a_noun_in_any_spelling_has_its_senses(wordnet, label):
    assert wnids_of(label, wordnet) == [sense.wnid for sense in wordnet.senses("dog")]


def test_an_id_is_its_own_sense(wordnet):
    senses = candidate_senses(DOG, wordnet)
    assert senses == [Meaning(DOG, DOG, wordnet.describe(DOG))]
    with pytest.raises(InputError, match="not the id of a noun"):
        candidate_senses("n99999999", wordnet)


@pytest.mark.parametrize("label", [f"{DOG}-dog", f"{DOG}_cat", f"cat ({DOG})"])
def test_an_id_within_a_name_tells_the_sense(wordnet, label):
    assert wnids_of(label, wordnet) == [DOG]


@pytest.mark.parametrize(
    ("phrase", "noun"),
    [
        ("golden retriever puppy dog", "dog"),
        ("my first fire-engine", "fire engine"),
        ("sports_balls", "ball"),
        ("stop sign", "sign"),
        ("photo of two golden retrievers", "golden retriever"),
    ],
)
def test_a_phrase_keeps_its_own_words_and_adds_those_of_its_end(wordnet, phrase, noun):
    senses = candidate_senses(phrase, wordnet)
    words = phrase.replace("_", " ")
    general = [f"{words}, a kind of {sense}" for sense in wordnet.senses(noun)]
    assert [sense.description for sense in senses] == general
    assert {sense.wnid for sense in senses} == {None}


def test_a_phrase_that_is_a_noun_has_its_id(wordnet):
    assert wnids_of("Tinca tinca", wordnet) == ["n01440764"]


def test_several_names_of_one_thing_tell_its_sense(wordnet):
    assert wnids_of("hotdog, hot dog, red hot", wordnet) == ["n07697537"]
    assert len(wnids_of("hot dog", wordnet)) == 3


@pytest.mark.parametrize(
    "label",
    [
        "blorf",
        "\N{DUCK}",
        "<b>dog</b>",
        "a" * 10_000,
        "!" * 10_000 + "\u00df",
        "(" * 10_000,
        ",,,",
        "\ud800",
    ],
)
def test_a_label_that_wordnet_does_not_know_is_described_by_its_own_words(wordnet, label):
    assert candidate_senses(label, wordnet) == [Meaning(label, None, label)]


def test_a_very_long_label_is_looked_up_by_its_end(wordnet):
    (sense,) = candidate_senses("blorf " * 2_000 + "zebra", wordnet)
    assert sense.description.endswith(f", a kind of {wordnet.synset('n02391049')}")


@pytest.mark.parametrize("label", ["", "  ", "_", "\n"])
def test_an_empty_label_is_an_error(wordnet, label):
    with pytest.raises(InputError, match="empty name"):
        candidate_senses(label, wordnet)


@given(st.text(min_size=1, max_size=60).filter(lambda label: label.replace("_", " ").strip()))
def test_every_label_has_a_description(label):
    senses = candidate_senses(label, WordNet.open())
    assert senses
    assert all(sense.description and sense.class_name == label for sense in senses)


# The choice


def chosen(meanings):
    return [meaning.wnid for meaning in meanings if meaning.chosen]


@pytest.mark.parametrize(("texts", "wnid"), [(MACHINES, MACHINE), (BIRDS, BIRD)])
def test_the_texts_choose_the_sense(texts, wnid):
    meanings = describe_classes(["crane"], texts_by_class=[texts])
    assert chosen(meanings) == [wnid]
    assert meanings[0].chosen
    assert meanings[0].match == max(m.match for m in meanings)
    assert sum(m.match for m in meanings) == pytest.approx(1)
    assert len(meanings) == len(WordNet.open().senses("crane"))


def test_texts_that_say_nothing_have_no_voice():
    silent = describe_classes(["crane"])
    for texts in ([], ["", "  ", "crane", "CRANES!"], ["qwerty zxcvb"]):
        assert describe_classes(["crane"], texts_by_class=[texts]) == silent
    assert {meaning.match for meaning in silent} == {None}
    assert sum(meaning.fit for meaning in silent) == pytest.approx(1)


@pytest.mark.parametrize(
    ("others", "wnid"),
    [
        (["heron", "flamingo", "goose"], BIRD),
        (["bulldozer", "forklift", "excavator"], MACHINE),
        (["parrot", "seal", "bat"], BIRD),  # some are ambiguous themselves
    ],
)
def test_the_other_classes_choose_the_sense(others, wnid):
    assert chosen(describe_classes(["crane", *others]))[0] == wnid
    assert chosen(describe_classes([*others, "crane"]))[-1] == wnid


def test_the_other_classes_choose_the_end_of_a_phrase(wordnet):
    names = ["spotted crane", "heron", "flamingo"]
    (meaning,) = (m for m in describe_classes(names)[:9] if m.chosen and m.class_name == names[0])
    assert meaning.description == f"spotted crane, a kind of {wordnet.synset(BIRD)}"


def test_most_texts_alone_do_not_choose_the_sense():
    others = ["heron", "flamingo", "goose", "pelican", "albatross"]
    texts = [MACHINES, *([] for _ in others)]
    meanings = describe_classes(["crane", *others], texts_by_class=texts)
    assert chosen(meanings)[0] == BIRD
    assert doubt(by_class(meanings)["crane"])


@pytest.mark.parametrize(
    "names", [["umbrella", "cat", "banana"], ["umbrella"], ["cat"], ["banana"]]
)
def test_senses_are_things_one_can_photograph(names):
    meant = {"umbrella": "n04507155", "cat": "n02121620", "banana": "n07753592"}
    assert chosen(describe_classes(names)) == [meant[name] for name in names]


def test_classes_that_mean_the_same_do_not_vote_for_each_other(wordnet):
    names = ["hammer", "cock", "hen", "duck", "saw", "screwdriver", "pliers"]
    gunlock = next(s.wnid for s in wordnet.senses("cock") if "gunlock" in s.definition)
    assert gunlock not in chosen(describe_classes(names))


def test_a_thousand_classes_take_seconds(wordnet):
    names = [wordnet.synset(wnid).lemmas[0] for wnid in wordnet.synset(DOG).hyponyms]
    kinds = [kind.lemmas[0] for kind in itertools.islice(wordnet.below("n00021939"), 1000)]
    started = time.process_time()
    describe_classes(list(dict.fromkeys([*names, *kinds])), wordnet=wordnet)
    assert time.process_time() - started < 20


def test_the_labels_own_words_are_struck_out_before_encoding():
    seen = []

    def encode(texts):
        seen.extend(texts)
        return np.ones((len(texts), 2))

    describe_classes(
        ["hot dogs"], texts_by_class=[["A hot Dog, hot!", "mustard on my dogs"]], encode=encode
    )
    assert "mustard on my " in seen
    assert not any("dog" in text.lower().split() for text in seen)


def test_a_known_sense_is_taken_as_it_is(wordnet):
    meanings = describe_classes(["crane", "blorf"], [MACHINE, None], [BIRDS, ["x y"]])
    assert meanings == [
        Meaning("crane", MACHINE, wordnet.describe(MACHINE), None, chosen=True),
        Meaning("blorf", None, "blorf", None, chosen=True),
    ]
    with pytest.raises(InputError, match="'crane' is not the id of a noun"):
        describe_classes(["crane"], ["crane"])


def test_encoders_may_be_dense_or_sparse_and_need_not_give_unit_rows():
    def dense(texts):
        return np.array([[10.0 * ("bird" in t or "wading" in t), "lift" in t, 1] for t in texts])

    for encode in (dense, lambda texts: csr_array(dense(texts))):
        meanings = describe_classes(["crane"], (), [BIRDS[1:]], encode)
        assert chosen(meanings) == [BIRD]


@pytest.mark.parametrize("wrong", [np.ones((1, 3)), csr_array(np.ones((1, 3)))])
def test_an_encoder_that_gives_other_rows_is_an_error(wrong):
    with pytest.raises(InputError, match="row"):
        describe_classes(["crane"], texts_by_class=[BIRDS], encode=lambda texts: wrong)


def test_at_most_so_many_texts_are_read_evenly():
    texts = [f"bird {'x' * i}" for i in range(1000)]
    seen = []

    def encode(lines):
        seen.extend(line for line in lines if line.startswith("bird"))
        return np.ones((len(lines), 2))

    describe_classes(["crane"], texts_by_class=[texts], encode=encode, max_texts=10)
    assert [len(line) for line in seen] == [len(texts[999 * i // 9]) for i in range(10)]
    with pytest.raises(InputError, match="max_texts must be at least 1"):
        describe_classes(["crane"], max_texts=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["crane", "crane"],), "two classes are called 'crane'"),
        ((["crane"], [None, None]), "wnids must have 1 entries, got 2"),
        ((["crane"], (), [[], []]), "texts_by_class must have 1 entries, got 2"),
        (("crane",), "got one string"),
        ((["crane", " "],), "empty name"),
    ],
)
def test_what_does_not_fit_together_is_an_error(arguments, message):
    with pytest.raises(InputError, match=message):
        describe_classes(*arguments)


def test_no_classes_have_no_meanings():
    assert describe_classes([]) == []


# The table


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "meanings.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_what_is_written_is_read_back(tmp_path, wordnet):
    names = ["crane", '\u732b, "quoted"\nname', "=1+1"]
    meanings = describe_classes(names, texts_by_class=[MACHINES, [], []])
    path = tmp_path / "new folder" / "meanings.csv"
    write_meanings(path, meanings)
    read = read_meanings(path, names)
    assert [(m.class_name, m.wnid, m.description) for m in read] == [
        (m.class_name, m.wnid, m.description) for m in meanings if m.chosen
    ]
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["class", "chosen", "doubt", "wnid", "match", "description"]
    assert len(rows) == len(meanings)
    assert rows[0]["chosen"] == "yes"
    assert rows[0]["match"] == "1.000"
    assert [path.name for path in path.parent.iterdir()] == ["meanings.csv"]


def test_a_table_is_never_overwritten_unasked(table):
    path = table("class,description\ndog,a pet\n")
    with pytest.raises(InputError, match="may have been edited"):
        write_meanings(path, [])
    write_meanings(path, [Meaning("cat", None, "another pet", chosen=True)], overwrite=True)
    assert read_meanings(path)[0].class_name == "cat"


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(meaning_table.csv, "writer", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_meanings(tmp_path / "meanings.csv", [])
    assert list(tmp_path.iterdir()) == []


def test_the_mark_can_be_moved_and_the_description_rewritten(table):
    path = table(
        f"class,chosen,wnid,match,description\ncrane,,{MACHINE},0.9,\n"
        f"crane,X,{BIRD},0.1,my own words\n\n,,,,\n"
    )
    assert read_meanings(path, ["crane"]) == [Meaning("crane", BIRD, "my own words", chosen=True)]


def test_own_descriptions_need_only_two_columns(table):
    path = table('\ufeffDescription, CLASS \n"a, b", dog \n cats ,cat\n')
    assert [m.description for m in read_meanings(path, ["cat", "dog"])] == ["cats", "a, b"]


def test_spaces_around_a_class_name_do_not_matter(tmp_path):
    names = [" dog", "cat\t"]
    write_meanings(tmp_path / "meanings.csv", describe_classes(names))
    assert [m.class_name for m in read_meanings(tmp_path / "meanings.csv", names)] == names


def test_an_id_without_a_description_has_wordnets(table, wordnet):
    path = table(f"class,wnid\ncrane,{BIRD}\n")
    assert read_meanings(path)[0].description == wordnet.describe(BIRD)


def test_rows_chosen_together_are_joined(table, wordnet):
    path = table("class,wnid,description\nelk,n02432983,\nelk,n02431785,\nelk,,a deer\n")
    (meaning,) = read_meanings(path, ["elk"])
    assert meaning.wnid is None
    assert meaning.description == ". ".join(
        [wordnet.describe("n02432983"), wordnet.describe("n02431785"), "a deer"]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,description\ndog,a pet\ncatt,x\n", "line 3: .* no class 'catt'; is 'cat' meant"),
        ("class,description\ndog,a pet\n", r"no row for the class 'cat'"),
        ("class,chosen,description\ncat,,x\ndog,yes,a pet\n", "line 2: no meaning is chosen"),
        ("class,chosen,description\ncat,perhaps,x\n", "line 2: chosen must be 'yes', 'unw"),
        ("class,wnid\ndog,n99999999\n", r"line 2: 'n99999999' is not the id"),
        ("class,wnid,description\ndog,,\n", r"line 2: 'dog' has neither"),
        ("description\nx\n", r"line 1: the columns must be class, .*found description"),
        ("class;description\ndog;x\n", r"line 1: the columns must be class"),
        ("class,chosen\ndog,yes\n", r"line 1: the columns must be class"),
        ("", r"line 1: .*found nothing"),
        ("class,description\ndog,a pet, and more\n", r"line 2: more fields than columns"),
        ('class,description\ndog,"open\n', r"not a complete CSV table"),
        ("class,description\n,a pet\n", r"line 2: there is no class ''"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_file_and_line(table, text, message):
    path = table(text)
    with pytest.raises(InputError, match=message) as error:
        read_meanings(path, ["dog", "cat"])
    assert str(path) in str(error.value)


def test_an_id_changed_beside_the_old_description_is_an_error(table, wordnet):
    old = wordnet.describe(MACHINE)
    path = table(f'class,wnid,description\ncrane,{BIRD},"{old}"\n')
    with pytest.raises(
        InputError, match=f"line 2: the description is that of {MACHINE}, not of {BIRD}"
    ):
        read_meanings(path)


def test_files_that_are_no_tables_are_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv cannot be read"):
        read_meanings(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("class,description\ncaf\u00e9,x\n".encode("latin-1"))
    with pytest.raises(InputError, match="not in UTF-8"):
        read_meanings(tmp_path / "latin.csv")


# NUS-WIDE


def test_all_81_concepts_have_a_sense_of_their_own_name(wordnet):
    meanings = read_meanings(NUS_81)
    assert len(meanings) == 81
    for meaning in meanings:
        assert meaning.wnid in [sense.wnid for sense in wordnet.senses(meaning.class_name)]
        assert meaning.description == wordnet.describe(meaning.wnid)


def test_where_the_first_sense_is_not_what_photos_show_it_is_not_chosen(wordnet):
    for meaning in read_meanings(NUS_81):
        first = wordnet.senses(meaning.class_name)[0]
        if meaning.class_name not in OTHER_THAN_FIRST:
            assert meaning.wnid == first.wnid
            continue
        assert meaning.wnid != first.wnid, meaning.class_name
        definition = wordnet.synset(meaning.wnid)
        assert OTHER_THAN_FIRST[meaning.class_name] in str(definition), meaning.class_name


@pytest.mark.parametrize(
    ("fits", "matches", "why"),
    [
        ([0.9, 0.1], [0.8, 0.2], ""),
        ([0.9, 0.1], [0.3, 0.7], ""),
        ([0.9, 0.1], [0.1, 0.9], "most texts speak for another sense"),
        ([0.5, 0.4], [0.9, 0.1], "another sense fits nearly as well"),
        ([0.9, 0.1], [None, None], ""),
        ([None], [None], ""),
    ],
)
def test_a_choice_is_doubtful_where_others_are_nearly_as_good(fits, matches, why):
    senses = [
        Meaning("crane", f"n{i}", "", match, chosen=i == 0, fit=fit)
        for i, (fit, match) in enumerate(zip(fits, matches, strict=True))
    ]
    assert doubt(senses) == why


def test_a_name_that_wordnet_lacks_is_doubtful():
    assert doubt([Meaning("blorf", None, "blorf", chosen=True)]) == "not in WordNet"
    assert doubt([Meaning("blorf", None, "a thing of mine", chosen=True)]) == ""
    assert doubt([Meaning("blorf", None, "blorf")]) == ""
    assert doubt(describe_classes(["stop sign"])) == "only its end is in WordNet"
