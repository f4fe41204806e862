"""Text as words: cleaning as in the paper (section 3.3), and vectors of word counts."""

import array
import dataclasses
import functools
import inspect
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Set
from typing import Any

import numpy as np
import snowballstemmer
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from vsgraph.common.checks import Floats, unit_rows
from vsgraph.errors import InputError
from vsgraph.meanings.wordnet import WordNet

COMMON = """
a about above across after again against all almost along already also although always am among an
and another any anyone anything are aren't around as at be became because become been before
behind being below beside between beyond both but by can can't cannot could couldn't did didn't do
does doesn't doing don't done down during each either else enough etc even ever every everyone
everything few for from further get gets got had hadn't has hasn't have haven't having he he's her
here hers herself him himself his how however i i'm i've if in instead into is isn't it its itself
just least less let let's many may maybe me might mine more most much must my myself neither never
no nobody none nor not nothing now of off often on once one only onto or other others our ours
ourselves out over own per perhaps quite rather really same she she's should shouldn't since so
some someone something soon still such than that that's the their theirs them themselves then
there there's these they they're this those though through thus to together too toward towards
under until up upon us very via was wasn't we we've well were weren't what whatever when where
whether which while who whom whose why will with within without won't would wouldn't yes yet you
you're you've your yours yourself
"""
NO_SPREAD = 1e-6  # a direction with less than this share of the largest spread is dropped
STOP_WORDS = frozenset([*COMMON.split(), *COMMON.replace("'", "").split()])
WORD = re.compile(r"[^\W\d_]+")
APOSTROPHES = "'\u2019\u02bc"
POSSESSIVE = re.compile(rf"[{APOSTROPHES}]s\b", re.IGNORECASE)
VARIATION_SELECTORS = range(0xFE00, 0xFE10)
CACHED_WORDS = 2**17


def clean_text(
    text: str,
    *,
    punctuation: bool = True,
    digits: bool = True,
    stop_words: bool = True,
    lemmatize: bool = True,
    stem: bool = True,
) -> str:
    """Return text as the paper cleans it: lower-case words separated by spaces.

    Punctuation, symbols, emoji and digits become spaces; apostrophes are removed ("don't" becomes
    'dont'), and so is the s of "dog's". Common English words (`STOP_WORDS`) are removed. Plurals of
    nouns are replaced by WordNet, and then endings are cut by Porter's rules. The paper names the
    last two without an order; the other way round little could be lemmatized, because a stem is
    often not a word ('berri'). Words of other languages are left as they are.

    >>> clean_text("The Mice's 3 berries!"), clean_text("Crème brûlée, 25 € \N{COOKING}")
    ('mous berri', 'crème brûlée')
    >>> clean_text("The Mice's 3 berries!", stem=False, digits=False)
    'mouse 3 berry'
    """
    words = _split(text, punctuation=punctuation, digits=digits)
    steps = {"stop_words": stop_words, "lemmatize": lemmatize, "stem": stem}
    return " ".join(filter(None, (_clean_word(word, **steps) for word in words)))


def without_words(text: str, words: Set[str], wordnet: WordNet) -> str:
    """Return text without words whose singular is one of some.

    >>> without_words("Mice and men", {"mouse"}, WordNet.open())
    ' and men'
    """
    return WORD.sub(
        lambda found: "" if wordnet.lemmatize(found.group().lower()) in words else found.group(),
        text,
    )


def _split(text: str, *, punctuation: bool = True, digits: bool = True) -> list[str]:
    """Return the lower-case words of a text."""
    if punctuation:
        text = POSSESSIVE.sub("", text)
    kept = text.translate(_characters(punctuation=punctuation, digits=digits))
    return (kept if kept.isascii() else unicodedata.normalize("NFKC", kept)).lower().split()


@functools.cache
def _characters(*, punctuation: bool, digits: bool) -> "_Characters":
    return _Characters("ZC" + "PS" * punctuation + "N" * digits)


class _Characters(dict[int, int | str | None]):
    """The replacement of each character: itself, a space or nothing; computed when first met."""

    def __init__(self, separating: str) -> None:
        super().__init__()
        self.separating = separating  # first letters of Unicode categories

    def __missing__(self, code: int) -> int | str | None:
        kind = unicodedata.category(chr(code))
        new: int | str | None = " " if kind[0] in self.separating else code
        joining = "P" in self.separating and chr(code) in APOSTROPHES
        if joining or kind in {"Cf", "Me"} or code in VARIATION_SELECTORS:
            new = None
        self[code] = new
        return new


@functools.lru_cache(CACHED_WORDS)
def _clean_word(word: str, *, stop_words: bool, lemmatize: bool, stem: bool) -> str:
    """Return a lower-case word cleaned, empty if it is removed."""
    if stop_words and word in STOP_WORDS:
        return ""
    if lemmatize:
        word = _wordnet().lemmatize(word)
    return snowballstemmer.stemmer("porter").stemWord(word) if stem else word


@functools.cache
def _wordnet() -> WordNet:
    return WordNet.open()


@dataclasses.dataclass(frozen=True, eq=False)
class TfidfEncoder:
    """Vectors of word counts, weighted by the rarity of words; no model is needed.

    >>> encoder = TfidfEncoder.fit(["red apples", "a red crane", "cranes lifting steel"])
    >>> vectors = encoder.encode(["crane", "an apple", "unknown words"])
    >>> vectors.shape, vectors.toarray().any(axis=1).tolist()
    ((3, 5), [True, True, False])
    """

    columns: dict[str, int]  # the cleaned words that are counted, and the column of each
    rarity: Floats  # (n_words,): log((1 + texts) / (1 + texts with the word)) + 1
    axes: Floats | None = None  # (n_words, n_dims): directions in which the texts vary most

    @classmethod
    def fit(cls, texts: Iterable[str], *, n_dims: int | None = None) -> "TfidfEncoder":
        """Learn words and their weights, and `n_dims` directions (latent semantic analysis)."""
        raw, places, ends = _count(texts)
        columns = {word: i for i, word in enumerate(dict.fromkeys(filter(None, _cleaned(raw))))}
        if not columns:
            raise InputError("there are no words in the texts")
        counts = _table(raw, places, ends, columns)
        n_texts = np.bincount(counts.indices, minlength=len(columns))  # with each word
        rarity = (np.log((1 + counts.shape[0]) / (1 + n_texts)) + 1).astype(np.float32)
        encoder = cls(columns, rarity)
        if n_dims is None:
            return encoder
        return dataclasses.replace(encoder, axes=_main_axes(encoder._weigh(counts), n_dims))

    def encode(self, texts: Iterable[str]) -> Any:  # noqa: ANN401
        """Return unit vectors of texts, zeros for a text without known words; float32.

        They are a csr_array of shape (n_texts, n_words), or dense (n_texts, n_dims) with `axes`.
        """
        weighted = self._weigh(_table(*_count(texts), self.columns))
        return weighted if self.axes is None else unit_rows(weighted @ self.axes)

    def _weigh(self, counts: csr_array) -> csr_array:
        """Weigh words by their rarity and scale rows to length one."""
        weights = counts.data * self.rarity[counts.indices]
        starts = counts.indptr[:-1]
        filled = starts < counts.indptr[1:]
        lengths = np.zeros(counts.shape[0], np.float32)
        if filled.any():
            lengths[filled] = np.sqrt(np.add.reduceat(weights**2, starts[filled]))
        weights /= np.repeat(lengths, np.diff(counts.indptr))
        return csr_array((weights, counts.indices, counts.indptr), counts.shape)


def _count(texts: Iterable[str]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct words of texts, the number of the word at each place, and text ends."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    places, ends = array.array("q"), array.array("q", [0])
    for text in texts:
        places.extend(map(numbers.__getitem__, _split(text)))
        ends.append(len(places))
    return list(numbers), np.array(places), np.array(ends)


def _cleaned(raw: list[str]) -> list[str]:
    """Return words cleaned; where WordNet lies in a folder of the caller's alone, only stemmed."""
    lemmatize = WordNet.is_found()
    return [_clean_word(word, stop_words=True, lemmatize=lemmatize, stem=True) for word in raw]


def _table(
    raw: list[str], places: NDArray[np.int64], ends: NDArray[np.int64], columns: dict[str, int]
) -> csr_array:
    """Return how often each text has each cleaned word, (n_texts, n_words)."""
    column = np.fromiter((columns.get(word, -1) for word in _cleaned(raw)), np.int64, len(raw))
    known = column[places]
    kept = known >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[ends]
    ones = np.ones(ends[-1], np.float32)
    table = csr_array((ones, known[kept], ends), (len(ends) - 1, len(columns)))
    table.sum_duplicates()
    return table


def _main_axes(weighted: csr_array, n_dims: int) -> Floats:
    """Return the directions in which texts vary most, (n_words, at most n_dims); reproducible."""
    most = min(weighted.shape) - 1
    if not 1 <= n_dims <= most:
        raise InputError(
            f"n_dims must lie between 1 and {most} here, less than the number of texts and of "
            f"words {weighted.shape}; got {n_dims}"
        )
    start = np.random.default_rng(0).normal(size=most + 1)
    seed = {"rng" if "rng" in inspect.signature(svds).parameters else "random_state": 0}
    table = weighted.astype(np.float64)
    _, values, axes = svds(table, n_dims, v0=start, return_singular_vectors="vh", **seed)
    order = np.argsort(-values)
    axes = axes[order[values[order] > NO_SPREAD * values.max()]]
    largest = np.abs(axes).argmax(axis=1)
    signed = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
    return signed.T.astype(np.float32)
