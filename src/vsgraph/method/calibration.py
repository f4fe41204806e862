"""The share of right labels of a whole crawl, and what it says of every label.

The terms of the doubt are judged with weights that are the same for every crawl, learned from
crawls in which four labels of five are right. In a crawl with fewer right ones, every label is less
probable from the start. So the log odds by which the estimated share is lower than usual are taken
off the log odds of all labels, which leaves their order as it is. Nothing is added for a crawl that
seems clean: a class that is wrong as a whole would be believed with the others.
"""

import dataclasses

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.checks import Floats
from vsgraph.method.doubt import Doubt, between
from vsgraph.method.evidence import Weigher
from vsgraph.method.network import Network
from vsgraph.result.scores import log_odds

# Log odds of the share, own texts and web-like texts, by experiments/doubt_weights.py
USUAL = np.array([1.25]), np.array([0.98])
N_PARTS, PART = 64, 64  # rows that the share is estimated from


def calibrate(doubt: Doubt, network: Network, weigher: Weigher) -> Doubt:
    """Return a doubt whose probabilities fit the share of right labels of the whole crawl."""
    belief = _sampled_beliefs(doubt, network, weigher)
    usual = float(between(*USUAL, weigher.model.trust)[0])
    return dataclasses.replace(doubt, shift=find_shift(belief, usual))


def find_shift(belief: Floats, usual: float) -> float:
    """Return what to add to all log odds: by how much the share of right labels is below the usual.

    >>> round(find_shift(np.full(9, 0.6), 1.2), 2), find_shift(np.full(9, 0.8), 1.2)
    (-0.79, 0.0)
    """
    return min(float(log_odds(belief.mean(keepdims=True))[0]) - usual, 0.0)


def _sampled_beliefs(doubt: Doubt, network: Network, weigher: Weigher) -> Floats:
    """Return the probabilities of the web labels of rows that are spread over the crawl."""
    inputs, parts = doubt.inputs, []
    n_images = len(inputs.web_labels)
    for part in evenly_spread(-(-n_images // PART), N_PARTS):
        rows = slice(PART * int(part), min(PART * (int(part) + 1), n_images))
        graph = network[rows]
        final, _ = weigher.weigh(rows, [graph, *inputs.heard(rows).values()])
        belief = doubt.believe(rows, graph, final)
        parts.append(belief[np.arange(len(belief)), inputs.web_labels[rows]])
    return np.concatenate(parts)
