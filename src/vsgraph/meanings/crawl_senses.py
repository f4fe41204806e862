"""The meanings of a crawl's classes, senses ranked by the crawl's own text."""

import itertools

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.crawls.crawl import Crawl
from vsgraph.meanings.senses import MAX_TEXTS, Meaning, describe_classes
from vsgraph.meanings.wordnet import WordNet

MOST_ROWS = 4 * MAX_TEXTS  # of a class; more than are read, because some have no text


def describe_crawl(crawl: Crawl, *, wordnet: WordNet | None = None) -> list[Meaning]:
    """Return the senses of every class, best first, the one that the crawl's text speaks of chosen.

    If the crawl gives the WordNet id of a class, that is its only sense. WordNet is opened by
    :meth:`WordNet.open` if not given.
    """
    texts = texts_by_class(crawl, MOST_ROWS)
    return describe_classes(crawl.class_names, crawl.wnids, texts, wordnet=wordnet)


def texts_by_class(crawl: Crawl, most: int) -> list[list[str]]:
    """Return the texts of each class, of at most so many images, evenly spread."""
    columns = crawl.labels_matrix().tocsc()
    texts = []
    for start, end in itertools.pairwise(columns.indptr):
        rows = np.sort(columns.indices[start:end])
        of_class = crawl.texts(rows[evenly_spread(len(rows), most)])
        texts.append([text for text in of_class if text])
    return texts
