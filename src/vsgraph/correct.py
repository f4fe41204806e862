"""Algorithm 1: arrays in, corrected labels out."""

import functools
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.anchors import Anchors, select_anchors, smooth_text, text_match
from vsgraph.checks import (
    Floats,
    check_labels,
    check_matrix,
    check_meanings,
    check_probs,
    check_vector,
    filled_rows,
)
from vsgraph.correction import Correction
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.evidence import Weigher, learn_weights
from vsgraph.graph import adopt_graph, connect
from vsgraph.judging import Given, Judge
from vsgraph.neighbors import nearest_neighbors
from vsgraph.progressive import label_in_rounds
from vsgraph.settings import Settings
from vsgraph.sgc import Network
from vsgraph.topscores import TopScores


def correct(
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None = None,
    *,
    graph: csr_array | None = None,
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
    graph : csr_array of shape (n_images, n_images), optional
        A similarity graph to use in place of one of `features`: :func:`visual_graph` of stronger
        features, or your own through :func:`adopt_graph`.
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
    given = _check_inputs(features, text_embeddings, label_embeddings, web_labels, cnn_probs)
    names = _check_names(class_names, n_classes=len(given.meaning))
    if sources is not None:
        sources = check_vector("sources", sources, length=len(given.visual), dtype=str)
    adjacency, recall = _graph(given.visual, graph, settings, progress=progress)
    smooth = functools.partial(
        smooth_text, adjacency=adjacency, self_weight=settings.self_weight, form=settings.form,
        progress=progress,
    )  # fmt: skip
    smoothed = smooth(given.text)
    match = text_match(smoothed, given.meaning, given.web_labels)
    anchors = select_anchors(match, per_class=settings.anchors_per_class, sources=sources)
    _warn_of_thin_classes(names, anchors, match, settings.anchors_per_class)
    network, anchors = label_in_rounds(
        given.visual, adjacency, anchors, given.web_labels,
        n_classes=len(names), settings=settings, progress=progress,
    )  # fmt: skip
    weigher = _weigher(given, network, settings, progress=progress)
    judged = Judge(given, network, weigher, smoothed, anchors, settings).judge(progress=progress)
    return Correction(
        class_names=names,
        web_labels=given.web_labels,
        final_labels=judged.decisions.final_labels,
        decisions=judged.decisions.decisions,
        rules=judged.decisions.rules,
        final_probs=judged.scores["final"],
        gnn_probs=judged.scores["gnn"],
        cnn_probs=judged.scores.get("cnn"),
        text_factor=judged.scores.get("text"),
        confusion=weigher.confusion if weigher else None,
        evidence_weights=weigher.model.summary() if weigher else {},
        text_match=match,
        anchors=anchors,
        adjacency=adjacency,
        graph_recall=recall,
        settings=settings,
    )


def _check_inputs(
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


def _graph(
    visual: Floats, graph: csr_array | None, settings: Settings, *, progress: bool
) -> tuple[csr_array, float]:
    """Return the graph, the user's or our own, and the share of true neighbors in it."""
    if graph is not None:
        return adopt_graph(graph, n_images=len(visual)), np.nan
    neighbors = nearest_neighbors(
        visual, n_neighbors=settings.n_neighbors, search=settings.neighbor_search,
        recall=settings.neighbor_recall, progress=progress,
    )  # fmt: skip
    return connect(neighbors), neighbors.recall


def _weigher(
    given: Given, network: Network, settings: Settings, *, progress: bool
) -> Weigher | None:
    """Learn how to weigh the evidence; None where that is switched off or there is too little."""
    if not settings.text_evidence:
        return None
    witnesses = [network] if given.cnn is None else [network, given.cnn]
    weigher = learn_weights(
        witnesses, given.text, given.meaning, given.labels,
        given=network.anchored, single=given.web_labels.ndim == 1, progress=progress,
    )  # fmt: skip
    if weigher is None:
        warnings.warn(
            "fewer than two texts a class: too few to weigh the evidence by, so Eq. 8 decides",
            VSGraphWarning,
            stacklevel=3,
        )
    return weigher


def _check_names(class_names: Sequence[str] | None, *, n_classes: int) -> tuple[str, ...]:
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


def _warn_of_thin_classes(
    names: tuple[str, ...], anchors: Anchors, match: csr_array, per_class: int
) -> None:
    """Say in one line which classes have no anchors, or fewer than asked for."""
    n_anchors = np.bincount(anchors.classes, minlength=len(names))
    n_images = np.bincount(match.indices, minlength=len(names))
    troubles = {
        "have no images": n_images == 0,
        "have no text near any image, so no anchors": (n_images > 0) & (n_anchors == 0),
        f"have fewer than {per_class} anchors": (n_anchors > 0) & (n_anchors < per_class),
    }
    said = [
        f"{rows.sum()} of {len(names)} classes {what} ({_some(names, rows)})"
        for what, rows in troubles.items()
        if rows.any()
    ]
    if said:
        warnings.warn("; ".join(said), VSGraphWarning, stacklevel=3)


def _some(names: tuple[str, ...], rows: NDArray[np.bool_]) -> str:
    """Name the first few classes."""
    few = [names[c] for c in np.flatnonzero(rows)[:3]]
    return ", ".join(few) + (", ..." if rows.sum() > len(few) else "")
