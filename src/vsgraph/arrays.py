"""A correction from arrays on disk to a record on disk."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.correct import correct
from vsgraph.correction import Correction
from vsgraph.errors import InputError
from vsgraph.estimate import Estimate, estimate
from vsgraph.settings import Settings
from vsgraph.storage import open_array


@dataclasses.dataclass(frozen=True)
class ArrayFiles:
    """Where the arrays of a crawl lie, each a ``.npy`` file.

    Attributes
    ----------
    features, texts, meanings, web_labels : Path
        What :func:`vsgraph.correct` takes.
    cnn_probs : Path, optional
        Probabilities of a CNN.
    class_names : Path, optional
        A text file with a name a line.
    """

    features: Path
    texts: Path
    meanings: Path
    web_labels: Path
    cnn_probs: Path | None = None
    class_names: Path | None = None

    def expect(self, settings: Settings) -> Estimate:
        """Return what the correction will take."""
        features, meanings = _open_matrix(self.features), _open_matrix(self.meanings)
        return estimate(
            settings,
            n_images=features.shape[0],
            n_dims=features.shape[1],
            n_classes=meanings.shape[0],
            n_text_dims=meanings.shape[1],
            with_cnn=self.cnn_probs is not None,
        )

    def correct(self, settings: Settings, *, progress: bool = False) -> Correction:
        """Map the arrays from disk and correct the labels."""
        return correct(
            open_array(self.features),
            open_array(self.texts),
            open_array(self.meanings),
            open_array(self.web_labels),
            None if self.cnn_probs is None else open_array(self.cnn_probs),
            class_names=None if self.class_names is None else _read_names(self.class_names),
            settings=settings,
            progress=progress,
        )


def _open_matrix(path: Path) -> NDArray[Any]:
    """Map a 2-d array from a file."""
    array = open_array(path)
    if array.ndim != 2:
        raise InputError(f"{path} must hold a 2-d array, got shape {array.shape}")
    return array


def _read_names(path: Path) -> list[str]:
    """Read a name a line."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 text: {error}") from error


def peak_memory() -> float:
    """Return the bytes that this process has held at most, mapped files included.

    >>> peak_memory() > 1e6
    True
    """
    try:
        import resource
    except ImportError:  # not on every system
        return np.nan
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
