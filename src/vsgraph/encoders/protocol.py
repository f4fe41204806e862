"""What an encoder is: a few attributes, and one method."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vsgraph.pictures.decode import Pixels, Preparation

Vectors = NDArray[np.float32]


class Encoded(NamedTuple):
    """Vectors of pictures, and class probabilities if the encoder has a classifier."""

    vectors: Vectors
    probs: Vectors | None = None


class ImageEncoder(Protocol):
    """Turns prepared pictures into vectors; may be called from several threads at once."""

    name: str  # in messages
    n_dims: int  # length of a vector
    n_classes: int  # number of class probabilities, 0 if it has no classifier
    fingerprint: str  # changes with everything that changes vectors, which are never mixed
    preparation: Preparation  # how a picture becomes pixels

    def encode(self, pixels: Pixels) -> Encoded:
        """Return vectors of shape (n, n_dims) for pixels of shape (n, height, width, 3)."""
        ...


class TextEncoder(Protocol):
    """Turns texts into vectors of unit length; an empty text becomes a row of zeros."""

    name: str
    n_dims: int
    fingerprint: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of shape (n, n_dims)."""
        ...
