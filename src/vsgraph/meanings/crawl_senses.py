"""The meanings of a crawl's classes, senses ranked by the crawl's own text."""

import itertools

import numpy as np
from numpy.typing import NDArray

from vsgraph.crawls.crawl import Crawl
from vsgraph.meanings.senses import MAX_TEXTS, Encoder, Meaning, describe_classes
from vsgraph.meanings.wordnet import WordNet


def describe_crawl(
    crawl: Crawl, *, encode: Encoder | None = None, wordnet: WordNet | None = None
) -> list[Meaning]:
    """Return the senses of every class of a crawl, the one that its text speaks of marked.

    Parameters
    ----------
    crawl : Crawl
        Where it says the WordNet id of a class, that is the sense.
    encode : callable, optional
        Turns n texts into an (n, d) array; counted words if not given.
    wordnet : WordNet, optional
        Found by :meth:`WordNet.open` if not given.

    Returns
    -------
    meanings : list of Meaning
        One a candidate sense, classes in their order, best first.
    """
    texts = [crawl.texts(rows) for rows in rows_by_class(crawl)]
    spoken = [[text for text in of_class if text] for of_class in texts]
    return describe_classes(crawl.class_names, crawl.wnids, spoken, encode, wordnet)


def rows_by_class(crawl: Crawl, *, most: int = 4 * MAX_TEXTS) -> list[NDArray[np.intp]]:
    """Return some rows of each class, evenly spread; more than are read, for some have no text."""
    columns = crawl.labels_matrix().tocsc()
    starts = columns.indptr
    found = [columns.indices[a:b] for a, b in itertools.pairwise(starts)]
    return [rows[:: max(1, len(rows) // most)][:most] for rows in map(np.sort, found)]
