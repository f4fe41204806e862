"""The senses of each label in WordNet, and the one that the class list and the crawl's text mean.

Every sense stays in the table, the chosen one marked, so that the user can change the choice
(:mod:`vsgraph.meanings.table`).
"""

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats, check_at_least, check_matrix, unit_rows
from vsgraph.errors import InputError
from vsgraph.meanings.class_list import Candidates, weigh_senses
from vsgraph.meanings.wordnet import WordNet
from vsgraph.meanings.words import WORD, TfidfEncoder, clean_text, without_words

MAX_TEXTS = 200
SURE = 0.6  # a sense that is less probable than that is doubtful
MOST = 0.7  # of the texts; if they speak for one other sense, the chosen one is doubtful
MOST_WORDS = 12  # no noun of WordNet has more
IN_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
KIND_OF = ", a kind of "
WNID = re.compile(r"\bn[0-9]{8}\b")

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
    fit: float | None = None  # how probable it is by the class list and the text; None if not asked


def candidate_senses(label: str, wordnet: WordNet) -> list[Meaning]:
    """Return the senses that a label may have, the commonest first.

    Parameters
    ----------
    label : str
        An id, also beside a name ('n02084071-dog'); a noun in any spelling that
        :meth:`WordNet.senses` knows; several names of one thing ('hound, hound dog'); a phrase with
        other endings ('potted plant' for pot plant); or one with an end that is a noun ('stop sign'
        is a kind of sign, and has no id). Names in brackets are ignored.
    wordnet : WordNet
        Where to look them up.

    >>> wordnet = WordNet.open()
    >>> [sense.description[:18] for sense in candidate_senses("Baseball_Bats", wordnet)]
    ['baseball bat, lumb']
    >>> [sense.description[:9] for sense in candidate_senses("potted plants", wordnet)]
    ['pot plant']
    >>> [sense.wnid for sense in candidate_senses("blorf", wordnet)]
    [None]
    >>> candidate_senses("stop sign", wordnet)[1].description
    'stop sign, a kind of sign: a public display of a message'
    """
    return _describe(label, *_look_up(label, wordnet), wordnet)


def _describe(
    label: str, found: Candidates, is_whole: bool, wordnet: WordNet  # noqa: FBT001
) -> list[Meaning]:  # fmt: skip
    """Return the senses that were found for a label."""
    own_words = _own_words(label)
    if not found.synsets:
        return [Meaning(label, None, own_words)]
    if is_whole:
        return [Meaning(label, s.wnid, wordnet.describe(s.wnid)) for s in found.synsets]
    return [Meaning(label, None, f"{own_words}{KIND_OF}{synset}") for synset in found.synsets]


def _own_words(label: str) -> str:
    return " ".join(label.replace("_", " ").split())


def _look_up(label: str, wordnet: WordNet) -> tuple[Candidates, bool]:
    """Find a label as an id, as a list of names, or by its end; return whether it is all of it."""
    label = _own_words(label)
    if not label:
        raise InputError("a class has an empty name; give it one, or a description")
    wnid = WNID.search(label)
    if wnid:
        return Candidates((), (wordnet.synset(wnid.group()),)), True
    plain = IN_BRACKETS.sub(" ", label)
    names = [_known(name, wordnet) for name in spoken_names(label)]
    of_names = Counter(synset for name in names for synset in wordnet.senses(name))
    if of_names:
        most = max(of_names.values())
        synsets = tuple(synset for synset, count in of_names.items() if count == most)
        indexed = tuple(word for name in names for word in wordnet.words(name))
        return Candidates(indexed, synsets, is_lower=plain == plain.lower()), True
    words = _bare(plain).split()
    ends = (" ".join(words[i:]) for i in range(-min(MOST_WORDS, len(words)), 0))
    end = next(filter(wordnet.words, ends), "")
    found = Candidates(tuple(wordnet.words(end)), tuple(wordnet.senses(end)), end == end.lower())
    return found, False


def spoken_names(label: str) -> list[str]:
    """Return the names in a label as people say them, without ids and what is in brackets.

    >>> spoken_names("n02084071-dog"), spoken_names("crane (bird)"), spoken_names("hound,hound_dog")
    (['dog'], ['crane'], ['hound', 'hound dog'])
    """
    plain = WNID.sub(" ", IN_BRACKETS.sub(" ", _own_words(label)))
    names = [_bare(name) for name in plain.split(",")[:MOST_WORDS]]
    return [name for name in names if name]


def _known(name: str, wordnet: WordNet) -> str:
    """Return a name, or the phrase of WordNet whose words differ from it by their endings only."""
    *first, last = name.lower().split() or [""]
    if not first or wordnet.words(name):
        return name
    stems = clean_text(name)
    alike = (p for p in wordnet.ending_with(wordnet.lemmatize(last)) if p.count("_") == len(first))
    return next((p for p in alike if clean_text(p.replace("_", " ")) == stems), name)


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
) -> list[Meaning]:
    """Return the senses of every class, best first, the best one marked as chosen.

    The sense is chosen by the class list, by what the word is used for, and by the texts
    (:mod:`vsgraph.meanings.class_list`). Each text of a class counts for the sense that it is
    nearest to by cosine. The label's own words are removed from texts and senses, because all
    senses share them.

    Parameters
    ----------
    class_names : sequence of str
        All different.
    wnids : sequence of (str or None), optional
        The sense of each class, if it is known.
    texts_by_class : sequence of sequences of str, optional
        The texts found with each class.
    encode : callable, optional
        Turns a list of n texts into an array of shape (n, d), dense or sparse; word counts
        (:class:`~vsgraph.meanings.words.TfidfEncoder`) if not given. It is called once.
    wordnet : WordNet, optional
        Opened by :meth:`WordNet.open` if not given.
    max_texts : int
        Number of texts of a class that are read at most, evenly spread.

    Returns
    -------
    meanings : list of Meaning
        One per candidate sense, classes in their order.

    Examples
    --------
    >>> texts = ["a crane lifting steel at a construction site", "crane hoisting heavy loads"]
    >>> meanings = describe_classes(["crane"], texts_by_class=[texts])
    >>> print(meanings[0].match, meanings[0].description[:40])
    1.0 crane: lifts and moves heavy objects; li
    """
    _check(class_names, wnids, texts_by_class)
    check_at_least("max_texts", max_texts, 1)
    wordnet = wordnet or WordNet.open()
    found = [
        (Candidates((), (wordnet.synset(wnid),)), True) if wnid else _look_up(name, wordnet)
        for name, wnid in itertools.zip_longest(class_names, wnids)
    ]
    senses = [
        _describe(name, *of_class, wordnet)
        for name, of_class in zip(class_names, found, strict=True)
    ]
    texts = [
        [of_class[i] for i in evenly_spread(len(of_class), max_texts)]
        for of_class in texts_by_class or [()] * len(senses)
    ]
    shares = list(_shares(class_names, senses, texts, encode or _count_words, wordnet))
    fits = weigh_senses([candidates for candidates, _ in found], shares, wordnet)
    return [
        meaning
        for of_class, share, fit in zip(senses, shares, fits, strict=True)
        for meaning in _rank(of_class, share, fit)
    ]


def doubt(senses: Sequence[Meaning]) -> str:
    """Return why the choice among the senses of one class is doubtful, '' if it is not.

    WordNet does not know the label, or only its end; another sense fits nearly as well; or nearly
    all texts speak for another sense.

    >>> bird = Meaning("crane", None, "a wading bird", match=0.1, chosen=True, fit=0.7)
    >>> doubt([bird, Meaning("crane", None, "a machine", match=0.9, fit=0.3)])
    'most texts speak for another sense'
    """
    chosen = next((sense for sense in senses if sense.chosen), None)
    if chosen is None:
        return ""
    own_words = _own_words(chosen.class_name)
    if chosen.wnid is None and chosen.description == own_words:
        return "not in WordNet"
    if chosen.wnid is None and chosen.description.startswith(own_words + KIND_OF):
        return "only its end is in WordNet"
    if chosen.fit is not None and chosen.fit < SURE:
        return "another sense fits nearly as well"
    others = [sense.match or 0.0 for sense in senses if not sense.chosen]
    return "most texts speak for another sense" if max(others, default=0) > MOST else ""


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
    parts: list[tuple[list[str], list[str]]] = []  # texts and descriptions of each class
    for name, of_class, class_texts in zip(names, senses, texts, strict=True):
        own = {wordnet.lemmatize(word) for word in WORD.findall(name.lower())}
        struck = [without_words(text, own, wordnet) for text in class_texts if len(of_class) > 1]
        speaking = [text for text in struck if WORD.search(text)]
        descriptions = [
            without_words(sense.description, own, wordnet) for sense in of_class if speaking
        ]
        parts.append((speaking, descriptions))
    lines = [line for part in parts for line in (*part[0], *part[1])]
    vectors: Any = _unit_vectors(encode(lines), len(lines)) if lines else None
    start = 0
    for speaking, descriptions in parts:
        middle, end = start + len(speaking), start + len(speaking) + len(descriptions)
        yield _nearest_share(vectors[start:middle] @ vectors[middle:end].T) if speaking else None
        start = end


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


def _rank(senses: list[Meaning], shares: Floats | None, fits: Floats) -> Iterator[Meaning]:
    """Yield the senses of a class, the chosen one first."""
    if len(senses) == 1:
        yield dataclasses.replace(senses[0], chosen=True)
        return
    for place, i in enumerate(np.argsort(-fits, kind="stable")):
        match = None if shares is None else float(shares[i])
        yield dataclasses.replace(senses[i], match=match, fit=float(fits[i]), chosen=place == 0)
