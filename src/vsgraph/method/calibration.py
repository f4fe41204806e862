"""The share of right labels of a whole crawl, and what it says of every label.

The terms of the doubt are judged with weights that are the same for every crawl, learned from
crawls in which most often four labels of five are right. In a crawl with fewer right ones, every
label is less probable from the start. So the log odds by which the estimated share is lower than
usual are taken off the log odds of all labels, one and a half times, since the estimate is drawn to
the usual. This hardly changes their order. Labels that are surely wrong are left out: they say
nothing of the others, and a crawl in which right and wrong labels lie far apart is not believed
less. Nothing is added for a crawl that seems clean: a class that is wrong as a whole would be
believed with the others.
"""

import dataclasses

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats
from vsgraph.method.doubt import Doubt
from vsgraph.method.evidence import Weigher
from vsgraph.method.network import Network
from vsgraph.result.scores import log_odds

# By experiments/doubt_weights.py, COCO-Web A has log odds of 1.41 with captions and 1.42 with
# web-like text, forms of it of which half is wrong 0.84 and 0.75. These are calibrated best if 0.70
# and 0.85 are taken off.
USUAL, STEEPER = 1.3, 1.5
MOST = -1.2  # nothing is known of crawls that are worse than half wrong
SURELY_WRONG = 0.02  # a label that is no more probable than this
N_PARTS, PART = 64, 64  # rows that the share is estimated from


def calibrate(doubt: Doubt, network: Network, weigher: Weigher) -> Doubt:
    """Return a doubt whose probabilities fit the share of right labels of the whole crawl."""
    belief = _sampled_beliefs(doubt, network, weigher)
    return dataclasses.replace(doubt, shift=find_shift(belief))


def find_shift(belief: Floats) -> float:
    """Return what to add to all log odds: by how much the share of right labels is below the usual.

    >>> round(find_shift(np.full(9, 0.75)), 2), find_shift(np.repeat([0.9, 0.01], 5))
    (-0.3, 0.0)
    """
    unsure = belief[belief > SURELY_WRONG]
    if not len(unsure):
        return MOST
    less = STEEPER * (float(log_odds(unsure.mean(keepdims=True))[0]) - USUAL)
    return float(np.clip(less, MOST, 0))


def _sampled_beliefs(doubt: Doubt, network: Network, weigher: Weigher) -> Floats:
    """Return the probabilities of the web labels of rows that are spread over the crawl.

    Images whose text names a sense that is not meant are left out: they are known to be wrong, and
    say nothing of the others.
    """
    inputs, parts = doubt.inputs, []
    n_images = len(inputs.web_labels)
    for part in evenly_spread(-(-n_images // PART), N_PARTS):
        rows = slice(PART * int(part), min(PART * (int(part) + 1), n_images))
        graph = network[rows]
        weighed = weigher.weigh(rows, [graph, *inputs.heard(rows).values()])
        belief = doubt.believe(rows, graph, weighed)
        web = inputs.web_labels[rows]
        named = inputs.labels[rows].toarray().argmax(axis=1) != web
        parts.append(belief[np.arange(len(belief)), web][~named])
    return np.concatenate(parts)
