"""Text vectors without a model: counted words on their main axes."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from vsgraph.encoders.protocol import Vectors
from vsgraph.errors import InputError
from vsgraph.meanings.words import TfidfEncoder


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

    def __init__(self, words: TfidfEncoder, fingerprint: str) -> None:
        self._words = words
        self.fingerprint = fingerprint
        self.n_dims = 0 if words.axes is None else words.axes.shape[1]

    def __str__(self) -> str:
        return f"{self.name} ({self.n_dims}-d, learned from the crawl)"

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
        listed = list(texts)
        size = min(n_dims, len(listed) - 1, len(TfidfEncoder.fit(listed).columns) - 1)
        if size < 1:
            raise InputError(f"{len(listed)} texts are too few to learn from")
        digest = hashlib.sha256(f"lsa {size}".encode())
        for text in listed:
            digest.update(text.encode() + b"\0")
        return cls(TfidfEncoder.fit(listed, n_dims=size), digest.hexdigest())

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors; zeros where no word is known."""
        return np.asarray(self._words.encode(texts), np.float32)
