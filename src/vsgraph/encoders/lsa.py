"""Text vectors without a model: counts of words, weighted by rarity, on their main axes."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from vsgraph.encoders.protocol import Vectors
from vsgraph.errors import InputError

WORD = re.compile(r"\w\w+")
MOST_WORDS = 50_000


class Lsa:
    """Latent semantic analysis: the fallback where no text model is installed.

    Knows no language: words mean what they occur with in this very crawl. Give it the label
    descriptions too, so that their words are known.

    Examples
    --------
    >>> texts = ["a gray crane bird", "crane bird in the marsh", "tower crane", "crane of a tower"]
    >>> lsa = Lsa.fit(texts, n_dims=2)
    >>> bird, tower = lsa.encode(["a bird", "a tower"])
    >>> bool(lsa.encode(["marsh"])[0] @ bird > lsa.encode(["marsh"])[0] @ tower)
    True
    """

    name = "lsa"

    def __init__(self, words: dict[str, int], rarity: Vectors, axes: Vectors) -> None:
        self._words = words
        self._rarity = rarity
        self._axes = axes
        self.n_dims = axes.shape[1]
        digest = hashlib.sha256("\0".join(words).encode())
        digest.update(rarity.tobytes() + axes.tobytes())
        self.fingerprint = digest.hexdigest()

    @classmethod
    def fit(cls, texts: Iterable[str], *, n_dims: int = 256) -> Self:
        """Learn which words go together.

        Parameters
        ----------
        texts : iterable of str
            The texts of the crawl, and the label descriptions.
        n_dims : int
            Length of a vector, at most; fewer where texts or words are few.
        """
        rows = [Counter(_words(text)) for text in texts]
        occurs = Counter(word for row in rows for word in row)
        kept = [w for w, n in occurs.most_common(MOST_WORDS) if n > 1 or len(occurs) < 1000]
        words = {word: i for i, word in enumerate(sorted(kept))}
        size = min(n_dims, len(rows) - 1, len(words) - 1)
        if size < 1:
            raise InputError(f"{len(rows)} texts with {len(words)} words are too few to learn from")
        counts = np.array([occurs[word] for word in words], np.float32)
        rarity = np.log((1 + len(rows)) / (1 + counts)) + 1
        table = _weighted(rows, words, rarity)
        start = np.random.default_rng(0).normal(size=min(table.shape))
        _, _, axes = svds(table.astype(np.float64), k=size, v0=start)
        return cls(words, rarity, np.ascontiguousarray(axes[::-1].T, np.float32))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors; zeros where no word is known."""
        rows = [Counter(_words(text)) for text in texts]
        vectors = np.asarray(_weighted(rows, self._words, self._rarity) @ self._axes)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _weighted(
    rows: Sequence[Counter[str]], words: dict[str, int], rarity: NDArray[np.float32]
) -> csr_array:
    """Return the table of words, damped by logarithm, weighted by rarity, rows of unit length."""
    columns, values, ends = [], [], [0]
    for row in rows:
        known = [(words[word], count) for word, count in row.items() if word in words]
        weights = np.array([(1 + np.log(n)) * rarity[c] for c, n in known], np.float32)
        columns += [column for column, _ in known]
        values.append(weights / max(float(np.linalg.norm(weights)), 1e-9))
        ends.append(len(columns))
    data = np.concatenate(values) if values else np.zeros(0, np.float32)
    return csr_array((data, columns, ends), (len(rows), len(words)), dtype=np.float32)
