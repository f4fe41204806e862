"""The senses of each label in WordNet, and the one that the crawl's own text speaks of.

Every sense stays in the table, the chosen one marked, so that the user can change the choice
(:mod:`vsgraph.meanings.table`).
"""

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats, check_at_least, check_fraction, check_matrix, unit_rows
from vsgraph.errors import InputError
from vsgraph.meanings.wordnet import Synset, WordNet
from vsgraph.meanings.words import TfidfEncoder

FIRST_SENSE_LEAD = 0.3
MAX_TEXTS = 200
NEARLY = 0.1  # a sense whose share of the texts is ahead by less does not stand out
HALF = 0.5
MOST_WORDS = 12  # no noun of WordNet has more
IN_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
WNID = re.compile(r"\bn[0-9]{8}\b")
WORD = re.compile(r"[^\W\d_]+")

Encoder = Callable[[list[str]], Any]


@dataclasses.dataclass(frozen=True)
class Meaning:
    """One sense that a class may have."""

    class_name: str
    wnid: str | None  # WordNet's id; None for a description in other words
    description: str  # the vector of the class is made from it
    match: float | None = None  # share of the class's texts nearest to it; None if not compared
    chosen: bool = False  # whether it is the sense to use
    unwanted: bool = False  # whether its images are to be found and left out


def candidate_senses(label: str, wordnet: WordNet) -> list[Meaning]:
    """Return the senses that a label may have, the commonest first.

    A label is an id, also beside a name ('n02084071-dog'); a noun in any spelling that
    :meth:`WordNet.senses` knows; several names of one thing ('hound, hound dog'); or a phrase, of
    which the longest end that is a noun counts ('golden retriever puppy dog' is a dog). Names in
    brackets are ignored. If WordNet knows none, the label's own words are the only description.

    >>> wordnet = WordNet.open()
    >>> [sense.description[:18] for sense in candidate_senses("Baseball_Bats", wordnet)]
    ['baseball bat, lumb']
    >>> [sense.wnid for sense in candidate_senses("blorf", wordnet)]
    [None]
    """
    own_words = _own_words(label)
    if not own_words:
        raise InputError("a class has an empty name; give it one, or a description")
    synsets = _find_synsets(own_words, wordnet)
    if not synsets:
        return [Meaning(label, None, own_words)]
    return [Meaning(label, synset.wnid, wordnet.describe(synset.wnid)) for synset in synsets]


def _own_words(label: str) -> str:
    return " ".join(label.replace("_", " ").split())


def _find_synsets(label: str, wordnet: WordNet) -> list[Synset]:
    """Look a label up as an id, then as a list of names, then as ever shorter ends of a phrase."""
    wnid = WNID.search(label)
    if wnid:
        return [wordnet.synset(wnid.group())]
    plain = IN_BRACKETS.sub(" ", label)
    names = [_bare(name) for name in plain.split(",")[:MOST_WORDS]]
    of_names = Counter(synset for name in names for synset in wordnet.senses(name))
    if of_names:
        most = max(of_names.values())
        return [synset for synset, count in of_names.items() if count == most]
    words = _bare(plain).split()
    ends = (wordnet.senses(" ".join(words[i:])) for i in range(-min(MOST_WORDS, len(words)), 0))
    return next(filter(None, ends), [])


def _bare(name: str) -> str:
    """Return a name without punctuation around its words."""
    return " ".join(core.group() for word in name.split() if (core := CORE.search(word)))


def describe_classes(
    class_names: Sequence[str],
    wnids: Sequence[str | None] = (),
    texts_by_class: Sequence[Sequence[str]] = (),
    encode: Encoder | None = None,
    wordnet: WordNet | None = None,
    *,
    max_texts: int = MAX_TEXTS,
    first_sense_lead: float = FIRST_SENSE_LEAD,
) -> list[Meaning]:
    """Return the senses of every class, best first, the best one marked as chosen.

    Each text of a class (at most `max_texts`, evenly spread) counts for the sense that it is
    nearest to by cosine. The sense with the most texts is chosen; WordNet's first, which is the
    commonest, is ahead by `first_sense_lead`, a share of the texts. Without texts the first sense
    is chosen. The label's own words are removed from texts and senses, because all senses share
    them. `wnids` are the senses that are known already. `encode`, called once, turns n texts into
    an (n, d) array, dense or sparse; word counts (:class:`~vsgraph.meanings.words.TfidfEncoder`)
    by default.

    >>> texts = ["a crane lifting steel at a construction site", "crane hoisting heavy loads"]
    >>> meanings = describe_classes(["crane"], texts_by_class=[texts])
    >>> print(meanings[0].match, meanings[0].description[:40])
    1.0 crane: lifts and moves heavy objects; li
    """
    _check(class_names, wnids, texts_by_class)
    check_at_least("max_texts", max_texts, 1)
    check_fraction("first_sense_lead", first_sense_lead)
    wordnet = wordnet or WordNet.open()
    senses = [
        [Meaning(name, wnid, wordnet.describe(wnid))] if wnid else candidate_senses(name, wordnet)
        for name, wnid in itertools.zip_longest(class_names, wnids)
    ]
    texts = [
        [of_class[i] for i in evenly_spread(len(of_class), max_texts)]
        for of_class in texts_by_class or [()] * len(senses)
    ]
    shares = _shares(class_names, senses, texts, encode or _count_words, wordnet)
    return [
        meaning
        for of_class, share in zip(senses, shares, strict=True)
        for meaning in _rank(of_class, share, first_sense_lead)
    ]


def doubt(senses: Sequence[Meaning]) -> str:
    """Return why the choice among the senses of one class is doubtful, '' if it is not.

    WordNet does not know the label; no text speaks for the chosen sense; another sense has nearly
    as many of the texts, or more; or the others together have most of them.

    >>> bird = Meaning("crane", None, "a wading bird", match=0.4, chosen=True)
    >>> doubt([bird, Meaning("crane", None, "a machine", match=0.6)])
    'another sense fits as well'
    """
    chosen = next((sense for sense in senses if sense.chosen), None)
    others = [sense.match or 0.0 for sense in senses if not sense.chosen]
    if chosen is None:
        return ""
    if not others:
        unknown = chosen.wnid is None and chosen.description == _own_words(chosen.class_name)
        return "not in WordNet" if unknown else ""
    if not chosen.match:
        return "no text speaks for it"
    if max(others) > chosen.match - NEARLY:
        return "another sense fits as well"
    return "most texts speak for others" if chosen.match < HALF else ""


def _check(
    class_names: Sequence[str],
    wnids: Sequence[str | None],
    texts_by_class: Sequence[Sequence[str]],
) -> None:
    """Refuse equal names, and lists of the wrong length."""
    if isinstance(class_names, str):
        raise InputError("class_names must be a list of names, got one string")
    refuse_alike(class_names)
    for name, values in (("wnids", wnids), ("texts_by_class", texts_by_class)):
        if len(values) not in {0, len(class_names)}:
            raise InputError(f"{name} must have {len(class_names)} entries, got {len(values)}")


def refuse_alike(class_names: Sequence[str]) -> None:
    """Refuse equal class names: a table could not tell the classes apart."""
    twice = [name for name, count in Counter(class_names).items() if count > 1]
    if twice:
        raise InputError(
            f"two classes are called {twice[0]!r:.60}; give them different names, for example by "
            "adding the WordNet id"
        )


def _count_words(texts: list[str]) -> csr_array:
    return TfidfEncoder.fit(texts).encode(texts)


def _shares(
    names: Sequence[str],
    senses: Sequence[Sequence[Meaning]],
    texts: Sequence[Sequence[str]],
    encode: Encoder,
    wordnet: WordNet,
) -> Iterator[Floats | None]:
    """Yield for each class the share of its texts nearest to each sense, None if none speaks."""
    lemma = functools.cache(wordnet.lemmatize)
    parts: list[tuple[list[str], list[str]]] = []  # texts and descriptions of each class
    for name, of_class, class_texts in zip(names, senses, texts, strict=True):
        own = {lemma(word) for word in WORD.findall(name.lower())}
        struck = [_strike(text, own, lemma) for text in class_texts if len(of_class) > 1]
        speaking = [text for text in struck if WORD.search(text)]
        descriptions = [_strike(sense.description, own, lemma) for sense in of_class if speaking]
        parts.append((speaking, descriptions))
    lines = [line for part in parts for line in (*part[0], *part[1])]
    vectors: Any = _unit_vectors(encode(lines), len(lines)) if lines else None
    start = 0
    for speaking, descriptions in parts:
        middle, end = start + len(speaking), start + len(speaking) + len(descriptions)
        yield _nearest_share(vectors[start:middle] @ vectors[middle:end].T) if speaking else None
        start = end


def _strike(text: str, own: set[str], lemma: Callable[[str], str]) -> str:
    """Return text without the words whose singular is one of the label's own words."""
    return WORD.sub(lambda m: "" if lemma(m.group().lower()) in own else m.group(), text)


def _unit_vectors(vectors: Any, n_rows: int) -> Any:  # noqa: ANN401
    """Return the output of an encoder, checked, with rows of length one."""
    if not issparse(vectors):
        return unit_rows(check_matrix("encode(texts)", vectors, n_rows=n_rows))
    if vectors.shape[0] != n_rows:
        raise InputError(f"encode must return {n_rows} rows, one per text, got {vectors.shape[0]}")
    rows = csr_array(vectors)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return csr_array(rows / np.where(lengths > 0, lengths, 1)[:, None])


def _nearest_share(cosines: Any) -> Floats | None:  # noqa: ANN401
    """Return the share of rows in which each column is highest; rows of one value do not count."""
    table: NDArray[Any] = cosines.toarray() if issparse(cosines) else cosines
    speaking = table[table.max(axis=1) > table.min(axis=1)]
    if not len(speaking):
        return None
    return np.bincount(speaking.argmax(axis=1), minlength=table.shape[1]) / len(speaking)


def _rank(senses: list[Meaning], shares: Floats | None, lead: float) -> Iterator[Meaning]:
    """Yield the senses of a class, the chosen one first."""
    scores = np.zeros(len(senses)) if shares is None else shares.copy()
    scores[0] += lead
    for place, i in enumerate(np.argsort(-scores, kind="stable")):
        match = None if shares is None else float(shares[i])
        yield dataclasses.replace(senses[i], match=match, chosen=place == 0)
