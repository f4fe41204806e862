"""The arrays of a crawl, checked once, as every stage reads them."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.checks import (
    Floats,
    check_labels,
    check_matrix,
    check_meanings,
    check_probs,
    check_vector,
    filled_rows,
)
from vsgraph.errors import InputError
from vsgraph.method.graph import adopt_graph
from vsgraph.neighbors.search import Neighbors
from vsgraph.result.scores import TopScores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """The arrays of a crawl; large ones are read in blocks."""

    features: Floats  # (n_images, n_dims), ``s`` in the paper
    text_embeddings: Floats  # (n_images, n_text_dims), ``t``; rows of zeros without text
    label_embeddings: Floats  # (n_classes, n_text_dims), ``l``
    web_labels: NDArray[Any]  # (n_images,) or (n_images, n_classes), ``y*``
    labels: csr_array  # (n_images, n_classes), the same as a matrix of ones
    cnn_probs: Floats | TopScores | None  # (n_images, n_classes), ``p_c``
    graph: csr_array | Neighbors | None  # (n_images, n_images), the user's own
    sources: NDArray[Any] | None  # (n_images,), where each image comes from
    class_names: tuple[str, ...]

    @property
    def single(self) -> bool:
        """Whether an image has one web label only."""
        return self.web_labels.ndim == 1


def check_inputs(
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None = None,
    *,
    graph: csr_array | Neighbors | None = None,
    sources: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
) -> Inputs:
    """Check that the arrays fit together; the parameters are those of :func:`vsgraph.correct`."""
    visual = check_matrix("features", features, keep_half=True)
    meaning = check_meanings("label_embeddings", label_embeddings)
    text = check_matrix(
        "text_embeddings", text_embeddings, n_rows=len(visual), n_columns=meaning.shape[1],
        nan_rows_are_missing=True, keep_half=True,
    )  # fmt: skip
    if not filled_rows(text).any():
        raise InputError("text_embeddings has no text for any image; anchors are chosen by text")
    shape = (len(visual), len(meaning))
    labels = check_labels("web_labels", web_labels, n_rows=shape[0], n_classes=shape[1])
    single = np.ndim(web_labels) == 1
    if sources is not None:
        sources = check_vector("sources", sources, length=len(visual), dtype=str)
    return Inputs(
        features=visual,
        text_embeddings=text,
        label_embeddings=meaning,
        web_labels=labels.indices.astype(np.intp) if single else labels.toarray().astype(bool),
        labels=labels,
        cnn_probs=None if cnn_probs is None else _check_scores(cnn_probs, shape),
        graph=None if graph is None else _check_graph(graph, n_images=len(visual)),
        sources=sources,
        class_names=check_names(class_names, n_classes=len(meaning)),
    )


def check_names(class_names: Sequence[str] | None, *, n_classes: int) -> tuple[str, ...]:
    """Return class names, numbers by default; raise an error if they do not fit or repeat."""
    if isinstance(class_names, str) or not (class_names is None or np.iterable(class_names)):
        raise InputError(f"class_names must be a sequence of names, got {class_names!r}")
    names = tuple(map(str, range(n_classes) if class_names is None else class_names))
    if len(names) != n_classes:
        raise InputError(f"class_names must name {n_classes} classes, got {len(names)}")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        listed = ", ".join(map(repr, repeated[:3]))
        raise InputError(f"class_names must be unique; repeated: {listed}")
    return names


def _check_scores(scores: ArrayLike | TopScores, shape: tuple[int, int]) -> Floats | TopScores:
    """Return scores of a shape, (n_images, n_classes), that can be read by rows."""
    if not isinstance(scores, TopScores):
        return check_probs("cnn_probs", scores, shape=shape, keep_half=True)
    if scores.shape != shape:
        raise InputError(f"cnn_probs must have shape {shape}, got {scores.shape}")
    return scores


def _check_graph(graph: csr_array | Neighbors, *, n_images: int) -> csr_array | Neighbors:
    """Return a graph of the user's own, checked."""
    if not isinstance(graph, Neighbors):
        return adopt_graph(graph, n_images=n_images)
    if len(graph.rows) != n_images:
        raise InputError(f"graph must have {n_images} rows, one per image, got {len(graph.rows)}")
    return graph
