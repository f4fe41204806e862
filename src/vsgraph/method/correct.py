"""The one call: arrays in, corrected labels out."""

from collections.abc import Sequence

from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vsgraph.errors import InputError
from vsgraph.method.algorithm import Solver
from vsgraph.method.inputs import Words, check_inputs
from vsgraph.neighbors.search import Neighbors
from vsgraph.result.correction import Correction
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings


def correct(  # noqa: PLR0913
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None = None,
    *,
    graph: csr_array | Neighbors | None = None,
    sources: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    words: Words | None = None,
    answers: ArrayLike | None = None,
    copies: ArrayLike | None = None,
    prompt_embeddings: ArrayLike | None = None,
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
    words : Words, optional
        Names of the classes, which texts have them, and senses that are not meant.
    answers : int array of shape (n_images,), optional
        What people say that images show: a class, -1 for none of the classes, -2 for an image that
        nobody has looked at. Only if images have one web label each.
    prompt_embeddings : array of shape (n_classes, n_dims), optional
        Descriptions of the labels in the space of the features, from the text part of the model
        that encoded the pictures (CLIP, SigLIP). What they say of each picture is weighed too.
    copies : int array of shape (n_images,), optional
        A number that all copies of one picture share: they show the same, so that what is known of
        one is known of all.
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
    >>> result = correct(features, text, [[1, 0], [0, 1]], [0, 0, 0, 0, 0, 0, 1, 1],
    ...                  settings=Settings(n_neighbors=2, anchors_per_class=2))
    >>> result.final_labels.tolist()
    [0, 0, 0, 1, 1, 1, 1, 1]
    >>> result
    Correction(8 images, 2 classes: keep 5, relabel 3, reject 0)
    """
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise InputError(f"settings must be a vsgraph.Settings, got {type(settings).__name__}")
    inputs = check_inputs(
        features, text_embeddings, label_embeddings, web_labels, cnn_probs,
        graph=graph, sources=sources, class_names=class_names, words=words, answers=answers,
        copies=copies,
        prompt_embeddings=prompt_embeddings,
    )  # fmt: skip
    return Solver(inputs, progress=progress).correct(settings)
