"""Text vectors without a pretrained model: word counts on their main axes."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from vsgraph.encoders.protocol import Vectors
from vsgraph.errors import InputError
from vsgraph.meanings.words import TfidfEncoder


class Lsa:
    """Latent semantic analysis: text vectors without a pretrained model.

    Words are alike if they occur together in this crawl. Pass the label descriptions too, so that
    their words are known.

    Examples
    --------
    >>> texts = ["a gray crane bird", "crane bird in the marsh", "tower crane", "crane of a tower"]
    >>> lsa = Lsa.fit(texts, n_dims=2)
    >>> bird, tower = lsa.encode(["a bird", "a tower"])
    >>> bool(lsa.encode(["marsh"])[0] @ bird > lsa.encode(["marsh"])[0] @ tower)
    True
    """

    name = "lsa"

    def __init__(self, words: TfidfEncoder, fingerprint: str) -> None:
        self._words = words
        self.fingerprint = fingerprint
        self.n_dims = 0 if words.axes is None else words.axes.shape[1]

    def __str__(self) -> str:
        return f"{self.name} ({self.n_dims}-d, learned from the crawl)"

    @classmethod
    def fit(cls, texts: Iterable[str], *, n_dims: int = 256) -> Self:
        """Learn which words go together, from the texts of the crawl and the label descriptions.

        Vectors have `n_dims` numbers, fewer if there are few texts or words.
        """
        corpus = list(texts)
        size = min(n_dims, len(corpus) - 1, len(TfidfEncoder.fit(corpus).columns) - 1)
        if size < 1:
            raise InputError(f"{len(corpus)} texts are too few to learn from")
        digest = hashlib.sha256(f"lsa {size}".encode())
        for text in corpus:
            digest.update(text.encode() + b"\0")
        return cls(TfidfEncoder.fit(corpus, n_dims=size), digest.hexdigest())

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of unit length, zeros for a text without known words."""
        return np.asarray(self._words.encode(texts), np.float32)
