"""Find images that belong to none of the classes.

Web text contains the query word whatever it means there, so a text is never simply far from every
class. What counts is how it compares with the texts of the class's anchors: 'drumstick' beside
'chicken recipe' is much further from the meaning of a percussion stick than the anchors' texts are.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vsgraph.common.checks import (
    Floats,
    check_matrix,
    check_meanings,
    check_probs,
    check_vector,
    filled_rows,
    unit_rows,
)
from vsgraph.result.parts import Anchors
from vsgraph.settings import Settings

LIKELY = 0.9  # an image is not rejected by others' texts alone if its label is as likely as this


def typical_match(anchor_text: ArrayLike, label_embeddings: ArrayLike, anchors: Anchors) -> Floats:
    """Return how well the texts of each class's anchors match its meaning.

    Parameters
    ----------
    anchor_text : array of shape (n_anchors, n_dims)
        Text embeddings at ``anchors.rows``, own or smoothed over the graph.
    label_embeddings : array of shape (n_classes, n_dims)
        ``l`` in the paper.
    anchors : Anchors
        Their classes.

    Returns
    -------
    typical : array of shape (n_classes,)
        Median cosine; NaN where no anchor has text, or where it is not positive.

    Examples
    --------
    >>> sure = Anchors(np.array([7]), np.array([0]), np.ones(1))
    >>> typical_match([[3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]], sure)
    array([0.6, nan])
    """
    meaning = unit_rows(check_meanings("label_embeddings", label_embeddings))
    unit = unit_rows(check_matrix("anchor_text", anchor_text, n_columns=meaning.shape[1]))
    match = np.einsum("ij,ij->i", unit, meaning[anchors.classes])
    with_text = filled_rows(unit)
    typical = np.full(len(meaning), np.nan)
    for c in np.unique(anchors.classes[with_text]):
        typical[c] = np.median(match[with_text & (anchors.classes == c)])
    typical[typical <= 0] = np.nan
    return typical


def text_nearness(
    text: ArrayLike, label_embeddings: ArrayLike, classes: ArrayLike, typical: ArrayLike
) -> Floats:
    """Compare each text's match with a class to that of the class's anchors.

    Parameters
    ----------
    text : array of shape (n_images, n_dims)
        Text embeddings, own or smoothed over the graph.
    label_embeddings : array of shape (n_classes, n_dims)
        ``l`` in the paper.
    classes : int array of shape (n_images,)
        The class that each image is compared with.
    typical : array of shape (n_classes,)
        From :func:`typical_match`.

    Returns
    -------
    nearness : array of shape (n_images,)
        One: as near as the median anchor. NaN without text, or where no anchor of the class has
        text.

    Examples
    --------
    >>> text_nearness([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]], [[1.0, 0.0]], np.zeros(3, int), [1.0])
    array([1. , 0.6, nan])
    """
    meaning = unit_rows(check_meanings("label_embeddings", label_embeddings))
    unit = unit_rows(check_matrix("text", text, n_columns=meaning.shape[1]))
    classes = check_vector("classes", classes, length=len(unit), dtype=int)
    usual = check_vector("typical", typical, length=len(meaning), dtype=float)
    match = np.einsum("ij,ij->i", unit, meaning[classes])
    match[~filled_rows(unit)] = np.nan
    return match / usual[classes]


def own_texts_count(nearness: ArrayLike, trust: float, *, settings: Settings) -> bool:
    """Tell whether a text far from its image's label is rather the image's own than another's.

    Parameters
    ----------
    nearness : array of shape (n_images,)
        :func:`text_nearness` of images' own texts to their likeliest labels; NaN without text.
    trust : float
        Share of texts that belong to their image, as :func:`weigh_evidence` estimates it.
    settings : Settings
        `reject_nearness`: below it a text is far.

    Returns
    -------
    count : bool
        More than half of the far texts are left if the texts of other images are taken off.

    Examples
    --------
    >>> own_texts_count([1.0, 0.9, 1.1, 0.1, np.nan], 0.99, settings=Settings())
    True
    >>> own_texts_count([1.0, 0.9, 1.1, 0.1, np.nan], 0.75, settings=Settings())
    False
    """
    near = check_vector("nearness", nearness, length=np.size(nearness), dtype=float)
    n_far = int((near < settings.reject_nearness).sum())
    return 2 * (1 - trust) * int((~np.isnan(near)).sum()) < n_far


def far_from_all(
    gnn_probs: ArrayLike,
    final_probs: ArrayLike,
    own_nearness: ArrayLike,
    near_nearness: ArrayLike,
    *,
    settings: Settings,
    likely: float = LIKELY,
) -> NDArray[np.bool_]:
    """Find images for whose likeliest label nothing speaks: not the graph, no text in sight.

    Parameters
    ----------
    gnn_probs, final_probs : array of shape (n_images, n_classes)
        ``p_g``, and what the decision is made on.
    own_nearness, near_nearness : array of shape (n_images,)
        :func:`text_nearness` to the likeliest label, of the image's own text and of the texts
        within two steps on the graph.
    settings : Settings
        `reject_threshold` for the graph, `reject_nearness` for the text.
    likely : float
        Without text of its own, an image whose label is as likely as this is not far.

    Returns
    -------
    far : bool array of shape (n_images,)
        The graph's score of the likeliest label is below `reject_threshold`, and both the image's
        own text and its neighbors' are below `reject_nearness`. An image without text of its own is
        far only if, besides, its label is not `likely`.

    Examples
    --------
    >>> far_from_all([[0.1], [0.1], [0.9]], [[1.0], [1.0], [1.0]], [0.2, 1.1, 0.2],
    ...              [0.3, 0.3, 0.3], settings=Settings()).tolist()
    [True, False, False]
    """
    graph = check_matrix("gnn_probs", gnn_probs)
    final = check_probs("final_probs", final_probs, shape=graph.shape)
    likeliest = final.argmax(axis=1)[:, None]
    score = np.take_along_axis(graph, likeliest, axis=1)[:, 0]
    believed = np.take_along_axis(final, likeliest, axis=1)[:, 0] >= likely
    own = check_vector("own_nearness", own_nearness, length=len(graph), dtype=float)
    near = check_vector("near_nearness", near_nearness, length=len(graph), dtype=float)
    far_in_text = np.fmax(own, near) < settings.reject_nearness
    return (score < settings.reject_threshold) & far_in_text & ~(np.isnan(own) & believed)
