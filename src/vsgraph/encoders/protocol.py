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
    """Turns prepared pictures into vectors; may be called from several threads at once.

    Attributes
    ----------
    name : str
        Its name in messages.
    n_dims : int
        Length of a vector.
    n_classes : int
        Number of class probabilities, 0 if it has no classifier.
    fingerprint : str
        Changes with everything that changes vectors: weights, size, preparation, runtime and
        precision. Vectors of different fingerprints are never mixed.
    preparation : Preparation
        How a picture becomes pixels.
    """

    name: str
    n_dims: int
    n_classes: int
    fingerprint: str
    preparation: Preparation

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
