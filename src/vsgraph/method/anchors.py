"""Section 3.4: smooth the text over the graph (Eq. 4) and pick the anchors (Eq. 5)."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from vsgraph.common.blocks import Arrays, as_floats, map_rows, row_blocks
from vsgraph.common.checks import (
    Floats,
    check_at_least,
    check_labels,
    check_matrix,
    check_meanings,
    check_vector,
    filled_rows,
    unit_rows,
)
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.method.graph import counting, propagate, propagation_matrix
from vsgraph.result.parts import Anchors
from vsgraph.settings import Form

FEW = 5  # anchors that a small class may have in any case


def smooth_text(
    text_embeddings: ArrayLike,
    adjacency: csr_array,
    *,
    self_weight: float,
    form: Form,
    progress: bool = False,
) -> Floats:
    """Mix every image's text with that of the images that look like it (Eq. 4).

    A single title can be missing or misleading; a neighborhood's rarely is.

    Parameters
    ----------
    text_embeddings : array of shape (n_images, n_dims)
        ``t`` in the paper; a row of zeros or NaN for an image without text.
    adjacency : csr_array of shape (n_images, n_images)
        ``A`` in the paper.
    self_weight : float
        ``w`` in the paper: how much of the image's own text stays.
    form : {'released', 'printed'}
        Which operator, see :func:`propagation_matrix`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    smoothed_text : array of shape (n_images, n_dims)
        ``t-hat`` in the paper, in the type of the text; zero if no neighbor has text.

    Examples
    --------
    >>> pair = csr_array([[0, 1.0], [1.0, 0]])
    >>> smooth_text([[1.0, 0.0], [0.0, 2.0]], pair, self_weight=0, form="printed").tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    text = check_matrix(
        "text_embeddings", text_embeddings, n_rows=adjacency.shape[0],
        nan_rows_are_missing=True, keep_half=True,
    )  # fmt: skip
    return smooth(text, adjacency, self_weight=self_weight, form=form, progress=progress)


def smooth(
    text: Floats,
    adjacency: csr_array,
    *,
    self_weight: float,
    form: Form,
    own: Floats | None = None,
    progress: bool,
) -> Floats:
    """Mix the texts of neighbors, unchecked; texts and result have shape (n_images, n_dims).

    `own` is how far each text counts, (n_images,); all of them in full if it is None.
    """
    operator = propagation_matrix(adjacency, self_weight=self_weight, form=form)
    if own is not None:
        operator = counting(operator, own)
    return propagate(operator, text, progress=progress)


def text_match(
    smoothed_text: ArrayLike, label_embeddings: ArrayLike, web_labels: ArrayLike | csr_array
) -> csr_array:
    """Compare every image's smoothed text with the meaning of its own web labels.

    Parameters
    ----------
    smoothed_text : array of shape (n_images, n_dims)
        From :func:`smooth_text`.
    label_embeddings : array of shape (n_classes, n_dims)
        ``l`` in the paper.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper.

    Returns
    -------
    match : csr_array of shape (n_images, n_classes)
        A cosine at each web label, NaN if there is no text near the image.

    Examples
    --------
    >>> text_match([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [0, 1]).data.tolist()
    [1.0, nan]
    """
    meaning = check_meanings("label_embeddings", label_embeddings)
    text = check_matrix("smoothed_text", smoothed_text, n_columns=meaning.shape[1], keep_half=True)
    labels = check_labels("web_labels", web_labels, n_rows=len(text), n_classes=len(meaning))
    return match_labels(text, meaning, labels)


def match_labels(text: Floats, meaning: Floats, labels: csr_array) -> csr_array:
    """Compare smoothed texts (n_images, n_dims) with the meanings of their labels, unchecked."""
    meaning = unit_rows(meaning)

    def match_of(rows: slice) -> Arrays:
        unit = unit_rows(as_floats(np.asarray(text[rows])))
        starts = labels.indptr[rows.start : rows.stop + 1]
        owner = np.repeat(np.arange(len(unit)), np.diff(starts))
        classes = labels.indices[starts[0] : starts[-1]]
        cosines: Floats = np.einsum("ij,ij->i", unit[owner], meaning[classes])
        cosines[~filled_rows(unit)[owner]] = np.nan
        return (cosines,)

    blocks = row_blocks(len(text), row_bytes=8 * text.shape[1])
    cosines = np.concatenate([part for (part,) in map_rows(match_of, blocks, title="match")])
    return csr_array((cosines, labels.indices, labels.indptr), shape=labels.shape)


def select_anchors(
    match: csr_array, *, per_class: int, sources: ArrayLike | None = None
) -> Anchors:
    """Pick, in every class, the images whose text is closest to the label's meaning (Eq. 5).

    Similarity is never compared across classes: each class gets the same number of anchors, so
    a class with poor text is not starved by one with rich text.

    Parameters
    ----------
    match : csr_array of shape (n_images, n_classes)
        From :func:`text_match`.
    per_class : int
        ``m`` in the paper. Ties go by row; a class with fewer images that have text near them
        gives all it has.
    sources : array of shape (n_images,), optional
        Where each image comes from (Google, Flickr). If given, `per_class` from each source.

    Returns
    -------
    anchors : Anchors
        Classes in order, best match first.

    Examples
    --------
    >>> text, meaning = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [1.0, 0.1]], np.eye(2)
    >>> match = text_match(text, meaning, [0, 0, 1, 1])
    >>> select_anchors(match, per_class=1).rows.tolist()
    [0, 2]
    """
    check_at_least("per_class", per_class, 1)
    if not issparse(match):
        raise InputError("match must be the sparse matrix that text_match returns")
    if sources is not None:
        sources = check_vector("sources", sources, length=match.shape[0], dtype=str)
    return pick_anchors(match, per_class=per_class, sources=sources)


def pick_anchors(
    match: csr_array,
    *,
    per_class: int,
    sources: NDArray[Any] | None = None,
    most_share: float = 1.0,
) -> Anchors:
    """Pick the best matches of every class, and of every source within it, unchecked.

    Of a small class at most `most_share` of its images are picked, or a few if that is less.
    """
    pairs = match.tocoo()
    usable = ~np.isnan(pairs.data)
    rows, classes, cosines = pairs.row[usable], pairs.col[usable], pairs.data[usable]
    origin = np.zeros(len(rows), np.intp)
    if sources is not None:
        origin = np.unique(sources, return_inverse=True)[1][rows]
    group = classes * (origin.max(initial=0) + 1) + origin
    best_first = np.lexsort((rows, -cosines, group))
    in_order = group[best_first]
    first, end = (np.searchsorted(in_order, in_order, side) for side in ("left", "right"))
    most = np.maximum(np.ceil(most_share * (end - first)), FEW)
    chosen = best_first[np.arange(len(rows)) - first < np.minimum(per_class, most)]
    return Anchors(rows[chosen].astype(np.intp), classes[chosen].astype(np.intp), cosines[chosen])


def warn_of_thin_classes(
    names: Sequence[str], anchors: Anchors, match: csr_array, per_class: int
) -> None:
    """Warn in one line of classes without anchors, or with fewer than asked for.

    `names` are those of the wanted classes, which come first.
    """
    n_anchors, n_images, n_texts = (
        np.bincount(classes, minlength=len(names))[: len(names)]
        for classes in (anchors.classes, match.indices, match.indices[~np.isnan(match.data)])
    )
    troubles = (
        ("have no images, or only ones of a sense that is not meant",
         "check their names and meanings", n_images == 0),
        ("have no text near any image, so no anchors", "they stay as they are until they have text",
         (n_images > 0) & (n_anchors == 0)),
        (f"have fewer than {per_class} anchors",
         "every one of their images with text is an anchor, right or wrong; set anchors_per_class "
         "lower or find more images",
         (n_anchors > 0) & (n_anchors < per_class) & (n_anchors == n_texts)),
    )  # fmt: skip
    lines = [
        f"{rows.sum()} of {len(names)} classes {what} ({_first_names(names, rows)}): {advice}"
        for what, advice, rows in troubles
        if rows.any()
    ]
    if lines:
        warnings.warn("; ".join(lines), VSGraphWarning, stacklevel=3)


def _first_names(names: Sequence[str], rows: NDArray[np.bool_]) -> str:
    """Name the first few classes."""
    few = [names[c] for c in np.flatnonzero(rows)[:3]]
    return ", ".join(few) + (", ..." if rows.sum() > len(few) else "")
