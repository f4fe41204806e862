"""Find images that belong to none of the classes.

Web text contains the query word whatever it means there, so a text is never simply far from every
class. What counts is how it compares with the texts of the class's anchors: 'drumstick' beside
'chicken recipe' is much further from the meaning of a percussion stick than the anchors' texts are.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats
from vsgraph.common.checks import Floats, filled_rows, unit_rows
from vsgraph.method.graph import gather
from vsgraph.result.parts import Anchors
from vsgraph.settings import Settings

LIKELY = 0.9  # an image is not rejected by others' texts alone if its label is as likely as this


@dataclasses.dataclass(frozen=True)
class TextsAround:
    """The texts within two steps on the graph, read by rows."""

    smoothed: Floats  # (n_images, n_text_dims), Eq. 4
    propagation: csr_array  # (n_images, n_images)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Floats:
        step = csr_array(self.propagation[rows])
        return as_floats(self.smoothed[rows]) + gather(step, self.smoothed)


def typical_match(anchor_text: Floats, meaning: Floats, anchors: Anchors) -> Floats:
    """Return how well the texts of each class's anchors match its meaning.

    Parameters
    ----------
    anchor_text : float array of shape (n_anchors, n_dims)
        Text embeddings at ``anchors.rows``, own or smoothed over the graph.
    meaning : float array of shape (n_classes, n_dims)
        ``l`` in the paper.
    anchors : Anchors
        Their classes.

    Returns
    -------
    typical : float array of shape (n_classes,)
        Median cosine; NaN where no anchor has text, or where it is not positive.

    Examples
    --------
    >>> sure = Anchors(np.array([7]), np.array([0]), np.ones(1))
    >>> typical_match(np.array([[3.0, 4.0]]), np.eye(2), sure)
    array([0.6, nan])
    """
    unit = unit_rows(anchor_text)
    match = np.einsum("ij,ij->i", unit, unit_rows(meaning)[anchors.classes])  # (n_anchors,)
    with_text = filled_rows(unit)
    typical = np.full(len(meaning), np.nan)
    for c in np.unique(anchors.classes[with_text]):
        typical[c] = np.median(match[with_text & (anchors.classes == c)])
    typical[typical <= 0] = np.nan
    return typical


def text_nearness(
    text: Floats, meaning: Floats, classes: NDArray[np.intp], typical: Floats
) -> Floats:
    """Compare each text's match with a class to that of the class's anchors.

    Parameters
    ----------
    text : float array of shape (n_images, n_dims)
        Text embeddings, own or smoothed over the graph.
    meaning : float array of shape (n_classes, n_dims)
        ``l`` in the paper.
    classes : int array of shape (n_images,)
        The class that each image is compared with.
    typical : float array of shape (n_classes,)
        From :func:`typical_match`.

    Returns
    -------
    nearness : float array of shape (n_images,)
        One: as near as the median anchor. NaN without text, or where no anchor of the class has
        text.

    Examples
    --------
    >>> text = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    >>> text_nearness(text, np.array([[1.0, 0.0]]), np.zeros(3, int), np.ones(1))
    array([1. , 0.6, nan])
    """
    unit = unit_rows(text)
    match = np.einsum("ij,ij->i", unit, unit_rows(meaning)[classes])
    match[~filled_rows(unit)] = np.nan
    return match / typical[classes]


def own_texts_count(nearness: Floats, trust: float, *, settings: Settings) -> bool:
    """Tell whether most texts far from their image's label are the images' own.

    `nearness` is that of images' own texts to their likeliest labels, NaN without text; `trust`
    the estimated share of texts that belong to their image. Texts below `reject_nearness` are far;
    more than half of them must remain once the texts of other images are taken off.

    >>> own_texts_count(np.array([1.0, 0.9, 1.1, 0.1, np.nan]), 0.99, settings=Settings())
    True
    >>> own_texts_count(np.array([1.0, 0.9, 1.1, 0.1, np.nan]), 0.75, settings=Settings())
    False
    """
    n_far = int((nearness < settings.reject_nearness).sum())
    return 2 * (1 - trust) * int((~np.isnan(nearness)).sum()) < n_far


def far_from_all(
    graph_score: Floats,
    likelihood: Floats,
    own_nearness: Floats,
    near_nearness: Floats,
    *,
    settings: Settings,
    likely: float = LIKELY,
) -> NDArray[np.bool_]:
    """Find images for whose likeliest label nothing speaks: neither the graph nor any text nearby.

    Parameters
    ----------
    graph_score, likelihood : float array of shape (n_images,)
        ``p_g`` of the likeliest label, and its probability by all evidence.
    own_nearness, near_nearness : float array of shape (n_images,)
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
    >>> far_from_all(np.array([0.1, 0.1, 0.9]), np.ones(3), np.array([0.2, 1.1, 0.2]),
    ...              np.full(3, 0.3), settings=Settings()).tolist()
    [True, False, False]
    """
    far_in_text = np.fmax(own_nearness, near_nearness) < settings.reject_nearness
    believed = np.isnan(own_nearness) & (likelihood >= likely)
    return (graph_score < settings.reject_threshold) & far_in_text & ~believed
