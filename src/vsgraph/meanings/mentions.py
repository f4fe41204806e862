"""Which texts mention a class by name, or by another word for the meant sense.

Texts and names are compared as phrases of singular nouns, so that 'Mice' is 'mouse' and 'wine
glasses' is 'wineglass'.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.meanings.senses import Meaning, spoken_names
from vsgraph.meanings.wordnet import WordNet

WORD = re.compile(r"[^\W_]+")
LONGEST = 5  # words of a phrase

Phrase = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """Phrases of texts and names, in the singular."""

    wordnet: WordNet

    @functools.cached_property
    def _singular(self) -> dict[str, str]:
        return {}

    def words(self, text: str) -> list[str]:
        """Return the words of a text in lower case, nouns in the singular."""
        known = self._singular
        words = WORD.findall(text.lower())
        for word in words:
            if word not in known:
                known[word] = next(iter(self.wordnet.base_forms(word)), word)
        return [known[word] for word in words]

    def phrases(self, name: str) -> set[Phrase]:
        """Return a name as a phrase, spelled apart and together."""
        words = tuple(self.words(name))[:LONGEST]
        return {words, ("".join(words),)} if words else set()

    def kinds(self, wnid: str) -> set[str]:
        """Return a sense and everything that is a kind of it."""
        return {wnid, *(kind.wnid for kind in self.wordnet.below(wnid))}

    def spoken(self, meaning: Meaning) -> list[str]:
        """Return what people call a class; a class named by its id has the words for that."""
        lemmas = self.wordnet.synset(meaning.wnid).lemmas if meaning.wnid else ()
        return spoken_names(meaning.class_name) or [*lemmas] or [meaning.class_name]

    def names_of(self, meaning: Meaning) -> set[Phrase]:
        """Return the phrases that name a class."""
        return set().union(*map(self.phrases, self.spoken(meaning)))

    def words_for(self, meaning: Meaning) -> set[Phrase]:
        """Return the phrases that name a class, or the sense that is meant."""
        lemmas = self.wordnet.synset(meaning.wnid).lemmas if meaning.wnid else ()
        return self.names_of(meaning).union(*map(self.phrases, lemmas))


def find_mentions(
    texts: Iterable[str], phrases: Sequence[set[Phrase]], lexicon: Lexicon
) -> csr_array:
    """Return which texts have one of the phrases of each class, bool (n_texts, n_classes)."""
    classes: dict[Phrase, list[int]] = {}
    for number, of_class in enumerate(phrases):
        for phrase in of_class:
            classes.setdefault(phrase, []).append(number)
    starts = {phrase[0] for phrase in classes}
    columns: list[NDArray[np.intp]] = []
    for text in texts:
        found: set[int] = set()
        words = lexicon.words(text) if text else []
        for i, word in enumerate(words):
            if word in starts:
                for end in range(i + 1, min(i + LONGEST, len(words)) + 1):
                    found.update(classes.get(tuple(words[i:end]), ()))
        columns.append(np.array(sorted(found), np.intp))
    starts_of_rows = np.cumsum([0, *map(len, columns)])
    indices = np.concatenate([np.empty(0, np.intp), *columns])
    shape = (len(columns), len(phrases))
    return csr_array((np.ones(len(indices), np.bool_), indices, starts_of_rows), shape)
