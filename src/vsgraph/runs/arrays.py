"""A correction from arrays on disk to a record on disk."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_labels
from vsgraph.common.files import open_array
from vsgraph.errors import InputError
from vsgraph.method.correct import correct
from vsgraph.method.estimate import Estimate, estimate
from vsgraph.result.correction import Correction
from vsgraph.settings import Settings


@dataclasses.dataclass(frozen=True)
class ArrayFiles:
    """Where the arrays of a crawl lie, each a ``.npy`` file.

    Attributes
    ----------
    features, text_embeddings, label_embeddings, web_labels : Path
        What :func:`vsgraph.correct` takes.
    cnn_probs : Path, optional
        Probabilities of a CNN.
    class_names : Path, optional
        A text file with a name a line.
    """

    features: Path
    text_embeddings: Path
    label_embeddings: Path
    web_labels: Path
    cnn_probs: Path | None = None
    class_names: Path | None = None

    def expect(self, settings: Settings) -> Estimate:
        """Return what the correction will take; refuse arrays that do not fit together."""
        features, meanings = (_open_matrix(path) for path in (self.features, self.label_embeddings))
        shape = (features.shape[0], meanings.shape[0])
        labels = open_array(self.web_labels)
        check_labels("web_labels", labels, n_rows=shape[0], n_classes=shape[1])
        _refuse_shape(self.text_embeddings, (shape[0], meanings.shape[1]))
        if self.cnn_probs is not None:
            _refuse_shape(self.cnn_probs, shape)
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
            open_array(self.text_embeddings),
            open_array(self.label_embeddings),
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


def _refuse_shape(path: Path, shape: tuple[int, int]) -> None:
    """Refuse an array of another shape."""
    got = open_array(path).shape
    if got != shape:
        raise InputError(f"{path} must hold an array of shape {shape}, got {got}")


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
