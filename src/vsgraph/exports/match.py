"""Whether a correction was made from a crawl: the same images, in the same order."""

import numpy as np

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import name_rows
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction

ADVICE = "pass the crawl that the correction was made from"


def refuse_other_crawl(crawl: Crawl, correction: Correction) -> None:
    """Refuse a correction of another crawl: its size, classes and web labels must be the same."""
    if len(crawl) != len(correction):
        raise InputError(
            f"the crawl has {len(crawl)} images and the correction {len(correction)}; {ADVICE}"
        )
    numbers = tuple(map(str, range(len(crawl.class_names))))  # of a correction without names
    if correction.class_names not in {crawl.class_names, numbers}:
        raise InputError(f"the classes of the crawl and of the correction differ; {ADVICE}")
    several = correction.web_labels.ndim == 2
    if crawl.has_several_labels != several:
        raise InputError(f"only one of crawl and correction has several labels per image; {ADVICE}")
    differs = np.zeros(len(crawl), bool)
    for rows in row_blocks(len(crawl), row_bytes=len(crawl.class_names)):
        labels = crawl.web_labels[rows].toarray() if several else crawl.web_labels[rows]
        unequal = np.asarray(labels != correction.web_labels[rows])
        differs[rows] = unequal.any(axis=1) if several else unequal
    if differs.any():
        raise InputError(
            f"the web labels of crawl and correction differ in {name_rows(differs)}; {ADVICE}"
        )
