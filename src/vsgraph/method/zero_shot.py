"""Beyond the paper: what a picture says of the labels' descriptions, where one model knows both.

CLIP, SigLIP and the like put pictures and texts into one space, so that a picture can be compared
with the description of every class without any training. What all pictures share, and what all
descriptions share, is taken out first. The remaining cosines are divided by their usual size, so
that the scale does not depend on the model. How far they are believed is learned from the crawl
(:mod:`vsgraph.method.evidence`): a model that knows nothing of these classes gets no weight.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import softmax

from vsgraph.common.blocks import as_floats, evenly_spread
from vsgraph.common.checks import Floats, filled_rows, unit_rows

SAMPLE = 4096
SMALLEST = 1e-6


@dataclasses.dataclass(frozen=True)
class ZeroShot:
    """The share of each class by the picture alone; zeros for a picture that cannot be read."""

    features: Floats  # (n_images, n_dims)
    prompts: Floats  # (n_classes, n_dims), without what they share, of length one
    middle: Floats  # (n_dims,) what the pictures share
    spread: float  # usual size of a cosine

    @classmethod
    def of(cls, features: Floats, prompts: Floats) -> "ZeroShot":
        """Find what pictures share, and the usual size of a cosine, from rows spread evenly."""
        given = unit_rows(prompts)
        given = unit_rows(given - given.mean(axis=0)) if len(given) > 1 else given
        sample = as_floats(np.asarray(features[evenly_spread(len(features), SAMPLE)]))
        sample = unit_rows(sample[filled_rows(sample)])
        middle = sample.mean(axis=0) if len(sample) else np.zeros(features.shape[1], np.float32)
        spread = float((unit_rows(sample - middle) @ given.T).std()) if len(sample) else 0.0
        return cls(features, given, middle, max(spread, SMALLEST))

    def __getitem__(self, rows: Any) -> Floats:  # noqa: ANN401
        """Return the shares of some rows, (n_rows, n_classes)."""
        pictures = unit_rows(as_floats(np.asarray(self.features[rows])))
        cosines = unit_rows(pictures - self.middle) @ self.prompts.T / self.spread
        return np.where(filled_rows(pictures)[:, None], softmax(cosines, axis=1), 0)
