"""The words that are typical of some images' text, and the sense in WordNet nearest to them."""

import contextlib
import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from vsgraph.errors import InputError
from vsgraph.meanings.senses import candidate_senses
from vsgraph.meanings.wordnet import Synset, WordNet
from vsgraph.meanings.words import clean_text

MOST_WORDS = 6
ACTS, SPORT = 4, "n00523513"  # WordNet's field of acts; surfing is one that pictures show
SHORTEST = 3
SUREST = 1.5
LEAST_COSINE = 0.1
OWN_LEAD = 1.2
WORDS_TRIED = 3
MOST_KINDS = 20


class Nearest(NamedTuple):
    """A sense in WordNet."""

    wnid: str
    words: str
    definition: str
    of_label: bool  # whether it is a sense of the label, not only of a typical word


def words_of(text: str, *, singular: bool = True) -> frozenset[str]:
    """Return the distinct words of a text without common ones, singular by WordNet.

    >>> sorted(words_of("The mice and 3 cranes"))
    ['crane', 'mouse']
    """
    return frozenset(clean_text(text, lemmatize=singular, stem=False).split())


def typical_words(
    inside: Sequence[Collection[str]], others: Sequence[Collection[str]], *, but: Collection[str]
) -> list[str]:
    """Return at most six words typical of images `inside`, compared with `others`.

    Each image is given by its words. Words are ranked by their log odds over its standard error;
    those in `but`, such as the label's, are left out.

    >>> typical_words([{"fruit", "bowl"}] * 8 + [{"bowl"}] * 2, [{"bowl", "cat"}] * 9, but=())
    ['fruit']
    """
    here, there = (Counter(word for words in part for word in words) for part in (inside, others))
    scores = {
        word: _log_odds(count, len(inside), there[word], len(others))
        for word, count in here.items()
        if count > 1 and len(word) >= SHORTEST and word not in but
    }
    best = sorted(scores, key=lambda word: (-scores[word], word))
    return [word for word in best if scores[word] > SUREST][:MOST_WORDS]


def _log_odds(count: int, n: int, other: int, n_others: int) -> float:
    """Return the log odds ratio of a word here and there, over its standard error."""
    a, b, c, d = (x + 0.5 for x in (count, n - count, other, n_others - other))
    return math.log(a * d / (b * c)) / math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)


class SenseFinder:
    """Finds the sense in WordNet nearest to the text of some images of a class.

    `texts` are the words of each image of the class; they tell how rare a word is. If the sense of
    the class itself is known (`wnid`), its score is raised by a fifth.

    >>> fruit, color = {"fruit", "citrus", "tree"}, {"color", "paint"}
    >>> finder = SenseFinder("orange", None, [fruit] * 4 + [color] * 4, WordNet.open())
    >>> finder.nearest([fruit] * 4, []).definition[:28]
    'round yellow to orange fruit'
    """

    def __init__(
        self, label: str, wnid: str | None, texts: Sequence[Collection[str]], wordnet: WordNet
    ) -> None:
        self.wordnet, self.wnid = wordnet, wnid
        ids = [wnid]
        with contextlib.suppress(InputError):  # an empty name or an unknown id
            ids += [sense.wnid for sense in candidate_senses(label, wordnet)]
        self.of_label = [wordnet.synset(i) for i in dict.fromkeys(ids) if i and i in wordnet]
        counts = Counter(word for words in texts for word in words)
        self.rarity = {w: 1 + math.log((1 + len(texts)) / (1 + n)) for w, n in counts.items()}

    def nearest(self, texts: Sequence[Collection[str]], typical: Sequence[str]) -> Nearest | None:
        """Return the sense of the label or of a typical word nearest to texts, or None."""
        of_words = [
            sense
            for word in typical[:WORDS_TRIED]
            for sense in self.wordnet.senses(word)[:1]
            if not self._is_verb(word, sense)
        ]
        counts = Counter(word for words in texts for word in words)
        middle = {word: n * self.rarity.get(word, 1.0) for word, n in counts.items()}
        scores = {s: self._cosine(middle, s) for s in dict.fromkeys([*self.of_label, *of_words])}
        best = max(scores, key=scores.__getitem__, default=None)
        if best is None or scores[best] < LEAST_COSINE:
            return None
        return Nearest(
            best.wnid, ", ".join(best.lemmas), best.definition, of_label=best in self.of_label
        )

    def _is_verb(self, word: str, sense: Synset) -> bool:
        """Return whether a word is a form of a verb ('holding') whose noun is not meant."""
        is_act = word.endswith("ing") and self.wordnet.field(sense.wnid) == ACTS
        return is_act and SPORT not in self.wordnet.above(sense.wnid)

    def _cosine(self, middle: dict[str, float], sense: Synset) -> float:
        """Return the cosine between the words of a sense and those of texts."""
        near = (*sense.hypernyms, *sense.hyponyms[:MOST_KINDS])
        kinds = (", ".join(self.wordnet.synset(wnid).lemmas) for wnid in near)
        words = words_of(". ".join([str(sense), *kinds]))
        weights = {word: self.rarity.get(word, 1.0) for word in words}
        common = sum(weight * middle.get(word, 0.0) for word, weight in weights.items())
        lengths = math.hypot(*middle.values()) * math.hypot(*weights.values())
        return common / max(lengths, 1e-12) * (OWN_LEAD if sense.wnid == self.wnid else 1)
