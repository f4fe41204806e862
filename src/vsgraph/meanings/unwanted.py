"""Senses that are not meant: 'teddy bear' among the images of 'bear'.

They take part in a correction as classes of their own, and are thrown away at the end. They are
nouns of WordNet that end with a class's name, stand in its texts, and are neither the meant sense
nor a kind of it; and names that stand before other nouns (:mod:`vsgraph.meanings.attributive`).
"""

from collections.abc import Callable, Sequence

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.meanings.attributive import find_attributive
from vsgraph.meanings.mentions import LONGEST, Lexicon, Phrase
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.wordnet import Synset

LEAST_SHARE = 0.02  # of a class's texts
LEAST_TEXTS, MOST_TEXTS = 5, 40
MOST_NAMES = 4  # of a sense, where it is shown
LEAST_HEAD, LEAST_FIRST = 4, 3  # letters of the parts of a noun in one word, such as skateboard


def find_unwanted(
    meanings: Sequence[Meaning],
    texts: Sequence[Sequence[str]],
    lexicon: Lexicon,
    encode: Callable[[list[str]], Floats],
) -> list[Meaning]:
    """Return the unwanted senses of every class, by its texts, marked `unwanted`.

    `meanings` and `texts` have one entry per class; `encode` gives vectors of texts. The texts with
    the noun must be nearer to its definition than to that of the class, so that a 'black cat' stays
    a cat. A sense that is a class of its own, or a kind of one, is not unwanted: its images are
    relabeled.
    """
    wanted = set().union(*(lexicon.kinds(m.wnid) for m in meanings if m.wnid))
    names = set().union(*map(lexicon.names_of, meanings))
    unwanted = []
    for meaning, of_class in zip(meanings, texts, strict=True):
        for phrase, with_it in _compounds(meaning, of_class, lexicon, names).items():
            sense = _nearest_sense(phrase, meaning, with_it, lexicon, encode)
            if sense is not None and sense.wnid not in wanted:
                words = f"{phrase}: {sense.definition}"
                unwanted.append(Meaning(meaning.class_name, sense.wnid, words, unwanted=True))
                wanted.add(sense.wnid)
        before = find_attributive(meaning, of_class, lexicon, encode)
        unwanted += [] if before is None else [before]
    return unwanted


def _nearest_sense(
    phrase: str,
    meaning: Meaning,
    texts: Sequence[str],
    lexicon: Lexicon,
    encode: Callable[[list[str]], Floats],
) -> Synset | None:
    """Return the sense of a noun that texts speak of; None if they speak of the class's own."""
    wordnet = lexicon.wordnet
    own = wordnet.synset(meaning.wnid).definition if meaning.wnid else meaning.description
    senses = wordnet.senses(phrase)
    few = [texts[row] for row in evenly_spread(len(texts), MOST_TEXTS)]
    vectors = unit_rows(encode([own, *(sense.definition for sense in senses), *few]))
    definitions, spoken = np.split(vectors, [1 + len(senses)])
    nearest = int((definitions @ spoken.T).mean(axis=1).argmax())
    return senses[nearest - 1] if nearest else None


def unwanted_names(meaning: Meaning) -> list[str]:
    """Return the names of an unwanted sense: what its description says before a colon."""
    return [name.strip() for name in meaning.description.partition(":")[0].split(",")]


def unwanted_title(meaning: Meaning) -> str:
    """Return what to call an unwanted sense: its first names."""
    names = unwanted_names(meaning)
    return ", ".join([*names[:MOST_NAMES], *["..."] * (len(names) > MOST_NAMES)])


def unwanted_words(meaning: Meaning, lexicon: Lexicon) -> set[Phrase]:
    """Return the phrases that name an unwanted sense."""
    return set().union(*map(lexicon.phrases, unwanted_names(meaning)))


def _compounds(
    meaning: Meaning, texts: Sequence[str], lexicon: Lexicon, names: set[Phrase]
) -> dict[str, list[str]]:
    """Return the nouns that end with a class's name, and the texts of the class that have them."""
    heads = {tuple(lexicon.words(name)) for name in lexicon.spoken(meaning)} - {()}
    with_noun: dict[Phrase, list[str]] = {}
    for text in texts:
        words = lexicon.words(text)
        for phrase in set().union(*(_ending_with(words, head, lexicon) for head in heads)):
            with_noun.setdefault(phrase, []).append(text)
    least = max(LEAST_TEXTS, LEAST_SHARE * len(texts))
    return {
        " ".join(phrase): found
        for phrase, found in sorted(with_noun.items())
        if len(found) >= least
        and not {phrase, ("".join(phrase),)} & names
        and lexicon.wordnet.senses(" ".join(phrase))
    }


def _ending_with(words: Sequence[str], head: Phrase, lexicon: Lexicon) -> set[Phrase]:
    """Return the longer phrases of a text that end with a name, also in one word (skateboard)."""
    phrases: set[Phrase] = set()
    for end in range(len(head), len(words) + 1):
        if tuple(words[end - len(head) : end]) == head:
            starts = range(max(end - LONGEST, 0), end - len(head))
            phrases |= {tuple(words[start:end]) for start in starts}
    if len(head) == 1 and len(head[0]) >= LEAST_HEAD:
        phrases |= {(word,) for word in set(words) if _is_joined(word, head[0], lexicon)}
    return phrases


def _is_joined(word: str, head: str, lexicon: Lexicon) -> bool:
    """Return whether a word is a noun joined with a name."""
    first = word.removesuffix(head)
    return first != word and len(first) >= LEAST_FIRST and bool(lexicon.wordnet.senses(first))
