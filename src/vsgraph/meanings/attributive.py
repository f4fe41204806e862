"""Names that stand before another noun: the orange of 'an orange cat' is no fruit.

Such a name says how something else looks, what it is made of or who made it: an orange cat, an
apple laptop. It goes with many nouns, unlike the name in a compound (clock tower). Texts that speak
so must also be farther from the meant sense than the other texts of the class.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.meanings.mentions import Lexicon
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.words import STOP_WORDS

LEAST_SHARE, LEAST_TEXTS = 0.02, 5  # of a class's texts
MOST_TEXTS = 100  # of each kind that are compared with the meant sense
ONE_NOUN = 0.5  # of the texts may have the same noun after the name
MOST_NOUNS = 40  # named in the table
MOSTLY = 0.7  # of the times that a word was met in tagged text
FARTHER = 0.9  # standard deviations of the other texts' cosine with the meant sense
TOKEN = re.compile(r"[^\W\d_]+|[^\w\s]")
BEFORE_NOUN = "before another noun"


def find_attributive(
    meaning: Meaning,
    texts: Sequence[str],
    lexicon: Lexicon,
    encode: Callable[[list[str]], Floats],
) -> Meaning | None:
    """Return an unwanted sense of a class whose name often stands before another noun, or None.

    Its description names the phrases, the most frequent first.
    """
    name = attributive_name(meaning, lexicon)
    if not name:
        return None
    own = own_kinds(meaning, lexicon)
    nouns = [_nouns_after(text, name, own, lexicon) for text in texts]
    before = [text for text, found in zip(texts, nouns, strict=True) if found]
    others = [text for text, found in zip(texts, nouns, strict=True) if not found]
    counts = Counter(noun for found in nouns for noun in dict.fromkeys(found or ()))
    is_often = len(before) >= max(LEAST_TEXTS, LEAST_SHARE * len(texts))
    is_property = max(counts.values(), default=0) <= ONE_NOUN * len(before)
    if not (is_often and is_property and len(others) >= LEAST_TEXTS):
        return None
    if not _is_farther(meaning, before, others, lexicon, encode):
        return None
    phrases = [f"{name} {noun}" for noun, _ in counts.most_common(MOST_NOUNS)]
    words = f"{', '.join(phrases)}: {name} {BEFORE_NOUN}"
    return Meaning(meaning.class_name, None, words, unwanted=True)


def attributive_name(meaning: Meaning, lexicon: Lexicon) -> str:
    """Return the name of a class as one word in the singular, '' if it has several."""
    names = lexicon.spoken(meaning)
    words = lexicon.words(names[0]) if len(names) == 1 else []
    return words[0] if len(words) == 1 else ""


def is_attributive(unwanted: Meaning) -> bool:
    """Return whether an unwanted sense is a name before other nouns."""
    return unwanted.description.endswith(BEFORE_NOUN)


def own_kinds(meaning: Meaning, lexicon: Lexicon) -> set[str]:
    """Return the ids of the meant sense and of its kinds."""
    return lexicon.kinds(meaning.wnid) if meaning.wnid else set()


def stands_only_before(text: str, name: str, own: set[str], lexicon: Lexicon) -> bool:
    """Return whether a name stands before another noun, and nowhere else in a text."""
    return bool(_nouns_after(text, name, own, lexicon))


def _nouns_after(text: str, name: str, own: set[str], lexicon: Lexicon) -> list[str] | None:
    """Return the nouns that a name stands before, [] if it is not there, None if it stands alone.

    `own` are the ids of the meant sense and its kinds: a bear cub is a bear.
    """
    tokens = [*TOKEN.findall(text.lower()), ""]
    nouns = []
    for word, after in dict.fromkeys(itertools.pairwise(tokens)):
        if lexicon.words(word) != [name]:
            continue
        noun = "".join(lexicon.words(after))
        if word != name or not _is_noun(after, noun, lexicon):
            return None
        if any(sense.wnid in own for sense in lexicon.wordnet.senses(f"{name} {noun}")):
            return None
        nouns.append(noun)
    return nouns


def _is_noun(word: str, singular: str, lexicon: Lexicon) -> bool:
    """Return whether a word is most often a noun, by tagged text if it was met there."""
    if not singular or word in STOP_WORDS or word.endswith("ing"):
        return False
    wordnet = lexicon.wordnet
    return wordnet.tagged.noun_share(singular) >= MOSTLY and bool(wordnet.senses(singular))


def _is_farther(
    meaning: Meaning,
    before: Sequence[str],
    others: Sequence[str],
    lexicon: Lexicon,
    encode: Callable[[list[str]], Floats],
) -> bool:
    """Return whether texts are clearly farther from the meant sense than others."""
    wordnet = lexicon.wordnet
    own = wordnet.synset(meaning.wnid).definition if meaning.wnid else meaning.description
    few = [[part[row] for row in evenly_spread(len(part), MOST_TEXTS)] for part in (before, others)]
    vectors = unit_rows(encode([own, *few[0], *few[1]]))
    cosines = vectors[1:] @ vectors[0]
    near, usual = np.split(cosines, [len(few[0])])
    return bool(near.mean() < usual.mean() - FARTHER * usual.std())
