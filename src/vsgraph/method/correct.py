"""Algorithm 1: arrays in, corrected labels out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
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
from vsgraph.method.final_labels import Given
from vsgraph.method.stages import Stages
from vsgraph.neighbors.search import Neighbors
from vsgraph.result.correction import Correction
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings


def correct(
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None = None,
    *,
    graph: csr_array | Neighbors | None = None,
    sources: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    settings: Settings | None = None,
    progress: bool = False,
) -> Correction:
    """Correct the labels of a crawl (the paper's Algorithm 1, lines 5 to 10, and beyond).

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        Visual features, ``s`` in the paper; a row of zeros where an image could not be read. These,
        the texts and `cnn_probs` may be fp16 and mapped from disk: they are read in blocks.
    text_embeddings : array of shape (n_images, n_text_dims)
        Embedded text of each image, ``t``; a row of zeros or NaN where it has none.
    label_embeddings : array of shape (n_classes, n_text_dims)
        Embedded descriptions of the labels, ``l``, from the same encoder.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        Labels as crawled, ``y*``; the shape decides between single-label and multi-label.
    cnn_probs : array or TopScores of shape (n_images, n_classes), optional
        What a classifier trained on the web labels says of each image, ``p_c``; best of one that
        did not train on that image. Without it the graph stands alone in Eq. 8.
    graph : csr_array of shape (n_images, n_images) or Neighbors, optional
        A similarity graph to use in place of one of `features`: :func:`visual_graph` of stronger
        features, your own through :func:`adopt_graph`, or what :func:`nearest_neighbors` found.
    sources : array of shape (n_images,), optional
        Where each image comes from; if given, every source gives its own anchors.
    class_names : sequence of str, optional
        Names for the classes; their numbers otherwise.
    settings : Settings, optional
        The numbers to use; the defaults otherwise.
    progress : bool
        Show progress bars.

    Returns
    -------
    correction : Correction
        Labels, decisions, probabilities, anchors and the graph.

    Examples
    --------
    Two senses of a word: the text tells the first three images from the last three, which were
    all crawled as class 0.

    >>> features = [[1, 0], [0.9, 0.1], [0.9, 0], [0, 1], [0.1, 0.9], [0, 0.9], [0.1, 1], [0, 1]]
    >>> text = [[1, 0], [1, 0], [0, 0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]
    >>> result = correct(features, text, np.eye(2), [0, 0, 0, 0, 0, 0, 1, 1],
    ...                  settings=Settings(n_neighbors=2, anchors_per_class=2))
    >>> result.final_labels.tolist()
    [0, 0, 0, 1, 1, 1, 1, 1]
    >>> result
    Correction(8 images, 2 classes: keep 5, relabel 3, reject 0)
    """
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise InputError(f"settings must be a vsgraph.Settings, got {type(settings).__name__}")
    given = check_inputs(features, text_embeddings, label_embeddings, web_labels, cnn_probs)
    names = check_names(class_names, n_classes=len(given.meaning))
    if sources is not None:
        sources = check_vector("sources", sources, length=len(given.visual), dtype=str)
    stages = Stages(given, names, graph=graph, sources=sources, progress=progress)
    return stages.correct(settings)


def check_inputs(
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None,
) -> Given:
    """Check that the arrays fit together."""
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
    return Given(
        visual=visual,
        text=text,
        meaning=meaning,
        web_labels=labels.indices.astype(np.intp) if single else labels.toarray().astype(bool),
        labels=labels,
        cnn=None if cnn_probs is None else _check_scores("cnn_probs", cnn_probs, shape),
    )


def _check_scores(
    name: str, scores: ArrayLike | TopScores, shape: tuple[int, int]
) -> Floats | TopScores:
    """Return scores that can be read by rows."""
    if not isinstance(scores, TopScores):
        return check_probs(name, scores, shape=shape, keep_half=True)
    if scores.shape != shape:
        raise InputError(f"{name} must have shape {shape}, got {scores.shape}")
    return scores


def check_names(class_names: Sequence[str] | None, *, n_classes: int) -> tuple[str, ...]:
    """Return class names, numbers where there are none; refuse a wrong count and doubles."""
    if isinstance(class_names, str) or not (class_names is None or np.iterable(class_names)):
        raise InputError(f"class_names must be a sequence of names, got {class_names!r}")
    names = tuple(map(str, range(n_classes) if class_names is None else class_names))
    if len(names) != n_classes:
        raise InputError(f"class_names must name {n_classes} classes, got {len(names)}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"class_names must differ, but not so {', '.join(map(repr, twice))}")
    return names
