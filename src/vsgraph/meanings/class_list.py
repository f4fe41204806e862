"""Which sense of each class the class list speaks for.

A list of classes says more than its names do: its classes lie near each other in WordNet's tree,
and they are things that one can photograph. Every sense gets a score, a sum of logarithms:

- how densely the other classes fill the parts of the tree that it lies in, and its field
  (animals, artifacts, ...). They may be ambiguous too, so all senses are weighed together, in a few
  rounds, beginning with what each name says alone;
- how much the word is used for it: counts in tagged text, nouns of its kind that end with the word
  (claw hammer), whether WordNet has another word first, or a longer one (banana tree), its order;
- what the crawl's text says, one voice among these.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats
from vsgraph.meanings.wordnet import Synset, WordNet

HALF = 0.5  # the weight of the counts and of the field, which say less than the tree
SYNONYM = 1.0  # the cost of a sense for which WordNet has a better word, or a longer one
RANK = 0.1  # the cost of each place in WordNet's order
TEXT = 2.0  # what a sense gains if all texts are nearest to it
ROUNDS = 6
FEW_OTHERS = 10  # so many other classes have half of the tree's full weight
# As if so many other classes had the field: photos show animals, artifacts, food and objects; at
# times bodies, persons and plants, which lend their names to food; seldom anything else.
FIELDS = {5: 5.0, 6: 5.0, 13: 5.0, 17: 5.0, 8: 0.5, 18: 0.5, 20: 0.5}
ANOTHER_FIELD = 0.05


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The senses that a class may have, in WordNet's order, and the indexed words for them."""

    words: tuple[str, ...]
    synsets: tuple[Synset, ...]


def weigh_senses(
    classes: Sequence[Candidates], shares: Sequence[Floats | None], wordnet: WordNet
) -> list[Floats]:
    """Return for each class the probability of each of its senses.

    `shares` are the shares of the class's texts that are nearest to each sense, None without text.
    """
    alone = [
        _score_alone(candidates, wordnet) + (0 if share is None else TEXT * share)
        for candidates, share in zip(classes, shares, strict=True)
    ]
    crowd = _Crowd(classes, wordnet)
    weights = [_softmax(score) for score in alone]
    for _ in range(ROUNDS):
        near = crowd.scores(weights)
        weights = [_softmax(a + b) for a, b in zip(alone, near, strict=True)]
    return weights


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(initial=-np.inf))
    return powers / powers.sum()


def _score_alone(candidates: Candidates, wordnet: WordNet) -> NDArray[np.float64]:
    """Return what the name itself says of each sense."""
    words, synsets = candidates.words, candidates.synsets
    scores = np.zeros(len(synsets))
    if len(synsets) < 2:
        return scores
    for rank, synset in enumerate(synsets):
        uses = max((wordnet.uses(word, synset.wnid) for word in words), default=0)
        compounds = sum(_ends_with(kind, words) for kind in wordnet.below(synset.wnid))
        counts = math.log1p(uses) + math.log1p(compounds)
        lemmas = [_indexed(lemma) for lemma in synset.lemmas]
        is_longer = any(lemma.startswith(f"{word}_") for lemma in lemmas for word in words)
        costs = SYNONYM * ((lemmas[0] not in words) + is_longer) + RANK * rank
        scores[rank] = HALF * counts - costs
    return scores


def _indexed(lemma: str) -> str:
    return lemma.lower().replace(" ", "_")


def _ends_with(synset: Synset, words: Sequence[str]) -> bool:
    """Return whether a word for a meaning ends with one of the words and is longer."""
    lemmas = map(_indexed, synset.lemmas)
    return any(lemma.endswith(word) and lemma != word for lemma in lemmas for word in words)


class _Crowd:
    """Where the senses of all classes lie in WordNet's tree and fields."""

    def __init__(self, classes: Sequence[Candidates], wordnet: WordNet) -> None:
        self.places = [
            [(wordnet.field(s.wnid), wordnet.above(s.wnid)) for s in candidates.synsets]
            for candidates in classes
        ]
        above = {wnid for places in self.places for _, parents in places for wnid in parents}
        self.sizes = {wnid: wordnet.size(wnid) for wnid in above}
        self.least = 1 / max(self.sizes.values(), default=1)

    def scores(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return how well the senses of each class fit the other classes, of weighted senses."""
        own = [self._fill(*pair) for pair in zip(self.places, weights, strict=True)]
        every: Counter[int | str] = Counter()
        for fill in own:
            every.update(fill)
        return [
            np.array([self._score(*place, every, fill) for place in places])
            for places, fill in zip(self.places, own, strict=True)
        ]

    def _fill(
        self, places: Sequence[tuple[int, frozenset[str]]], weights: Floats
    ) -> Counter[int | str]:
        """Return the weight of a class in each field and each part of the tree."""
        fill: Counter[int | str] = Counter()
        for (field, above), weight in zip(places, weights.tolist(), strict=True):
            for place in {field} | above:
                fill[place] += weight
        return fill

    def _score(
        self, field: int, above: frozenset[str], every: Counter[int | str], own: Counter[int | str]
    ) -> float:
        in_field = every[field] - own[field] + FIELDS.get(field, ANOTHER_FIELD)
        density = sum((every[wnid] - own[wnid]) / self.sizes[wnid] for wnid in above)
        n_others = len(self.places) - 1
        tree = math.log(max(0, density) / max(1, n_others) + self.least)
        return n_others / (n_others + FEW_OTHERS) * tree + HALF * math.log(in_field)
