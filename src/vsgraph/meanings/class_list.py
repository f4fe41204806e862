"""Which sense of each class the class list speaks for.

A list of classes says more than its names do: its classes lie near each other in WordNet's tree,
and they are things that one can photograph. Every sense gets a score, a sum of logarithms:

- how densely the other classes fill the parts of the tree that it lies in, and its field
  (animals, artifacts, ...). They may be ambiguous too, so all senses are weighed together, in a few
  rounds, beginning with what each name says alone;
- whether other classes are kinds of it: most lists are flat, and name no class twice;
- how many words its definition shares with those of other classes;
- how much the word is used for it: counts in tagged text, nouns of its kind that end with the word
  (claw hammer), its order, and whether it has a better word: one that WordNet has first, a longer
  one (banana tree), the name of another class, or the same word as a proper name;
- what the crawl's text says, one voice among these.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import Floats
from vsgraph.meanings.wordnet import Synset, WordNet
from vsgraph.meanings.words import TfidfEncoder, without_words

HALF = 0.5  # the weight of the counts and of the field, which say less than the tree
SYNONYM = 1.0  # the cost of a sense for which the list would rather have another word
RANK = 0.1  # the cost of each place in WordNet's order
TEXT = 2.0  # what a sense gains if all texts are nearest to it
ROUNDS = 6
FEW_OTHERS = 10  # so many other classes have half of the full weight of the tree and of the topic
TOPIC, NEAREST = 4.0, 10  # times the mean cosine with the nearest definitions of other classes
FLAT = 20  # so many classes of one sense, none of them above another, must be seen before it counts
BLOCK = 1024  # senses compared with all classes at once
# As if so many other classes had the field: photos show animals, artifacts, food and objects; at
# times bodies, persons and plants, which lend their names to food; seldom anything else.
FIELDS = {5: 5.0, 6: 5.0, 13: 5.0, 17: 5.0, 8: 0.5, 18: 0.5, 20: 0.5}
ANOTHER_FIELD = 0.05


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The senses that a class may have, in WordNet's order, and the indexed words for them."""

    words: tuple[str, ...]
    synsets: tuple[Synset, ...]
    is_lower: bool = True  # whether the name is written without capital letters


def weigh_senses(
    classes: Sequence[Candidates], shares: Sequence[Floats | None], wordnet: WordNet
) -> list[Floats]:
    """Return for each class the probability of each of its senses.

    `shares` are the shares of the class's texts that are nearest to each sense, None without text.
    """
    if all(len(candidates.synsets) < 2 for candidates in classes):
        return [np.ones(len(candidates.synsets)) for candidates in classes]
    names = Counter(word for candidates in classes for word in candidates.words)
    alone = [
        _score_alone(candidates, names, wordnet) + (0 if share is None else TEXT * share)
        for candidates, share in zip(classes, shares, strict=True)
    ]
    reasons = (_Crowd(classes, wordnet), _Kinds(classes, wordnet), _Topics(classes, wordnet))
    weights = [_softmax(score) for score in alone]
    for _ in range(ROUNDS):
        near = zip(*(reason.scores(weights) for reason in reasons), strict=True)
        weights = [_softmax(a + sum(b)) for a, b in zip(alone, near, strict=True)]
    return weights


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(initial=-np.inf))
    return powers / powers.sum()


def _score_alone(
    candidates: Candidates, names: Counter[str], wordnet: WordNet
) -> NDArray[np.float64]:
    """Return what the name itself says of each sense; `names` are those of all classes."""
    words, synsets = candidates.words, candidates.synsets
    scores = np.zeros(len(synsets))
    if len(synsets) < 2:
        return scores
    for rank, synset in enumerate(synsets):
        uses = max((wordnet.uses(word, synset.wnid) for word in words), default=0)
        compounds = sum(_ends_with(kind, words) for kind in wordnet.below(synset.wnid))
        counts = math.log1p(uses) + math.log1p(compounds)
        costs = SYNONYM * _better_words(synset, candidates, names) + RANK * rank
        scores[rank] = HALF * counts - costs
    return scores


def _better_words(synset: Synset, candidates: Candidates, names: Counter[str]) -> int:
    """Return how many reasons there are to call a meaning by another word than the class's name."""
    words, lemmas = candidates.words, [_indexed(lemma) for lemma in synset.lemmas]
    own = [lemma for lemma in synset.lemmas if _indexed(lemma) in words]
    return sum((
        lemmas[0] not in words,
        any(lemma.startswith(f"{word}_") for lemma in lemmas for word in words),
        any(lemma in names for lemma in lemmas if lemma not in words),
        candidates.is_lower and bool(own) and not any(map(str.islower, own)),
    ))  # fmt: skip


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


def _ends(classes: Sequence[Candidates]) -> NDArray[np.intp]:
    """Return where the senses of each class begin among all senses, and where the last ones end."""
    return np.cumsum([0, *(len(candidates.synsets) for candidates in classes)], dtype=np.intp)


class _Kinds:
    """Which senses have kinds among the senses of other classes."""

    def __init__(self, classes: Sequence[Candidates], wordnet: WordNet) -> None:
        self.ends = _ends(classes)
        wnids = [synset.wnid for candidates in classes for synset in candidates.synsets]
        class_of = np.repeat(np.arange(len(classes)), np.diff(self.ends))
        numbers: dict[str, list[int]] = {}
        for number, wnid in enumerate(wnids):
            numbers.setdefault(wnid, []).append(number)
        pairs = [
            (upper, lower)
            for lower, wnid in enumerate(wnids)
            for parent in wordnet.above(wnid)
            for upper in numbers.get(parent, ())
            if class_of[upper] != class_of[lower]
        ]
        uppers, lowers = np.array(pairs, np.intp).reshape(-1, 2).T
        self.below = csr_array((np.ones(len(pairs)), (uppers, lowers)), (len(wnids),) * 2)
        self.single = np.diff(self.ends)[class_of] == 1

    def scores(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return less than 0 for senses with other classes below them, if the list looks flat."""
        has_kinds = np.minimum(self.below @ np.concatenate(weights), 1)
        n_above = has_kinds[self.single].sum()
        cost = math.log((FLAT + self.single.sum()) / (FLAT * (1 + n_above)))
        return np.split(-max(cost, 0) * has_kinds, self.ends[1:-1])


class _Topics:
    """Which words the definitions of all senses have."""

    def __init__(self, classes: Sequence[Candidates], wordnet: WordNet) -> None:
        self.ends = _ends(classes)
        self.class_of = np.repeat(np.arange(len(classes)), np.diff(self.ends))
        self.asked = np.flatnonzero(np.diff(self.ends)[self.class_of] > 1)
        lines = [
            without_words(str(synset), _parts(candidates.words), wordnet)
            for candidates in classes
            for synset in candidates.synsets
        ]
        self.vectors = TfidfEncoder.fit(lines).encode(lines)

    def scores(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return how near each definition comes to those of other classes, of weighted senses."""
        near = np.zeros(self.ends[-1])
        shape = (len(weights), len(near))
        shares = csr_array((np.concatenate(weights), np.arange(len(near)), self.ends), shape)
        spoken = (shares @ self.vectors).T
        n_others, n_nearest = len(weights) - 1, min(NEAREST, len(weights))
        for start in range(0, len(self.asked), BLOCK):
            rows = self.asked[start : start + BLOCK]
            cosines = (self.vectors[rows] @ spoken).toarray()
            cosines[np.arange(len(rows)), self.class_of[rows]] = 0
            nearest = np.partition(cosines, -n_nearest, axis=1)[:, -n_nearest:]
            near[rows] = nearest.sum(axis=1) / NEAREST
        return np.split(TOPIC * n_others / (n_others + FEW_OTHERS) * near, self.ends[1:-1])


def _parts(words: Sequence[str]) -> set[str]:
    return {part for word in words for part in word.split("_")}
