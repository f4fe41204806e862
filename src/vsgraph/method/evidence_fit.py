"""The estimate behind :mod:`vsgraph.method.evidence`: how far to believe each witness.

Everything but the text predicts, through a weighted product, which class an image shows; the text
then is more or less surprising. The weights are those of least surprise. By turns with them, the
images of each class are counted by web label.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax
from tqdm import tqdm

from vsgraph.common.checks import Floats

ROUNDS = 8
PRIOR_TEXTS = 30  # what the usual weights count for, so that a small crawl cannot stray far
SMALLEST = 1e-9

Doubles = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Model:
    """The estimated numbers of the module's formula."""

    weights: Doubles  # of the graph, of the CNN if there is one, of the web label
    sharpness: float
    trust: float
    background: Doubles  # how much texts speak of each class on average
    counts: Doubles  # images of each class (rows) that each web label found
    web_prior: Doubles  # P(web label)

    @property
    def confusion(self) -> Doubles:
        """P(web label | class), one row per class."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    def log_web(self, share: csr_array, own: Floats) -> Doubles:
        """Return the log of how much likelier the web labels of each row are under each class.

        `own` is what each row itself added to the counts. It is taken out again: otherwise, in a
        small crawl, a wrong text would count its own image as proof that such images exist.
        """
        found = share @ self.counts.T
        added = own * (share.power(2) @ self.counts.T) / np.maximum(found, SMALLEST)
        others = np.maximum(found - added, SMALLEST) / (self.counts.sum(axis=1) - own)
        usual = (share @ self.web_prior)[:, None]
        return np.log(np.where(usual > 0, others / np.where(usual > 0, usual, 1), 1))

    def text_factor(self, cosines: Floats) -> Doubles:
        """Return the bracket of the formula; one where there is no text (NaN)."""
        told = softmax(self.sharpness * cosines, axis=1) / self.background
        return np.where(np.isnan(told), 1, self.trust * told + 1 - self.trust)

    def summary(self) -> dict[str, float]:
        """Return the numbers that a user may want to see."""
        graph, *cnn, web = self.weights.tolist()
        return {
            "graph": graph,
            "cnn": cnn[0] if cnn else 0.0,
            "web": web,
            "sharpness": self.sharpness,
            "trust": self.trust,
        }


def estimate(
    witnesses: list[Doubles],
    cosines: Floats,
    share: csr_array,
    given: NDArray[np.intp],
    *,
    progress: bool = False,
) -> tuple[Model, Doubles]:
    """Find the numbers under which the texts are least surprising, by turns with the counts.

    Returns them with the class probabilities that the counts were made of.
    """
    web_prior = np.asarray(share.mean(axis=0)) + SMALLEST
    model = Model(
        weights=np.array([1.0, *[0.0] * (len(witnesses) - 1), 1.0]),
        sharpness=20.0,
        trust=0.9,
        background=np.full(len(given), 1 / len(given)),
        counts=0.7 * np.eye(share.shape[1])[given] + 0.3 * web_prior,
        web_prior=web_prior,
    )
    posterior = np.zeros(cosines.shape)
    for _ in tqdm(range(ROUNDS), "evidence", disable=None if progress else True, leave=False):
        channels = [*witnesses, model.log_web(share, posterior)]
        model = _least_surprise(model, channels, cosines)
        prior = softmax(weighted(model.weights, channels), axis=1)
        posterior = prior * model.text_factor(cosines)
        posterior /= posterior.sum(axis=1, keepdims=True)
        model = dataclasses.replace(model, counts=_count(model, posterior, share))
    return model, posterior


def weighted(weights: Doubles, channels: list[Doubles]) -> Doubles:
    """Return the weighted sum of the channels."""
    return sum(
        (weight * channel for weight, channel in zip(weights, channels, strict=True)),
        np.zeros_like(channels[0]),
    )


def _least_surprise(model: Model, channels: list[Doubles], cosines: Floats) -> Model:
    """Fit weights, sharpness and trust to the texts, the counts held."""
    n_weights = len(channels)
    start = np.array([*model.weights, model.sharpness, logit(model.trust)])
    bounds = [(0, 10)] * n_weights + [(0, 200), (-7, 7)]
    x = minimize(
        surprise,
        start,
        args=(channels, cosines),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
    ).x
    return dataclasses.replace(
        model,
        weights=x[:n_weights],
        sharpness=float(x[-2]),
        trust=float(expit(x[-1])),
        background=_background(softmax(x[-2] * cosines, axis=1)),
    )


def surprise(x: Doubles, channels: list[Doubles], cosines: Floats) -> tuple[float, Doubles]:
    """Return how surprising the texts are given all else, a text on average, and its gradient.

    `x` holds the channels' weights, the sharpness and the log odds of the trust. A prior
    worth some texts draws the weights to 1 (graph, web label) and 0 (CNN) where texts are few.
    """
    weights, sharpness, trust = x[:-2], x[-2], expit(x[-1])
    prior = softmax(weighted(weights, channels), axis=1)
    told = softmax(sharpness * cosines, axis=1)
    background = _background(told)
    joint = prior * told / background
    informed = joint.sum(axis=1)
    total = trust * informed + 1 - trust
    belongs = trust * informed / total  # probability that the text is this image's own
    within = joint / informed[:, None]
    moved = belongs[:, None] * (within - prior)
    sharper = told * (cosines - (told * cosines).sum(axis=1, keepdims=True))
    drift = (belongs @ within) @ (sharper.sum(axis=0) / (background * (len(told) + 1)))
    away = weights - np.array([1.0, *[0.0] * (len(channels) - 2), 1.0])
    slopes = [
        *(
            PRIOR_TEXTS * pull - (moved * channel).sum()
            for pull, channel in zip(away, channels, strict=True)
        ),
        -(belongs * ((within - told) * cosines).sum(axis=1)).sum() + drift,
        -(belongs - trust).sum(),
    ]
    loss = 0.5 * PRIOR_TEXTS * (away**2).sum() - np.log(total).sum()
    return float(loss) / len(total), np.array(slopes) / len(total)


def _background(told: Doubles) -> Doubles:
    """Return how much texts speak of each class on average, as if one more spoke of all."""
    return (told.sum(axis=0) + 1 / told.shape[1]) / (len(told) + 1)


def _count(model: Model, posterior: Doubles, share: csr_array) -> Doubles:
    """Count the images of each class by web label, a little smoothed by how common labels are."""
    likelihood = np.maximum(share @ model.confusion.T, SMALLEST)
    return model.confusion * ((posterior / likelihood).T @ share) + model.web_prior
