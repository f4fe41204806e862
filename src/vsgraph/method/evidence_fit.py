"""The estimate behind :mod:`vsgraph.method.evidence`: how far to believe each witness.

Everything but the text predicts, through a weighted product, which class an image shows; the text
then is more or less surprising. The weights are those of least surprise. By turns with them, the
images of each class are counted by web label.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax

from vsgraph.common.blocks import Mapped, open_threads, row_blocks
from vsgraph.common.checks import Floats
from vsgraph.common.progress import bar

ROUNDS = 8
PRIOR_TEXTS = 30  # what the usual weights count for, so that a small crawl cannot stray far
SMALLEST = 1e-9

Doubles = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Spoken:
    """What texts say, one row per text."""

    cosines: Floats  # (n_texts, n_classes), to the meanings of the classes
    own: Floats  # (n_texts,), probability that it is the image's own, as far as pictures tell

    def __getitem__(self, rows: slice) -> "Spoken":
        return Spoken(self.cosines[rows], self.own[rows])


@dataclasses.dataclass(frozen=True)
class Model:
    """The estimated numbers of the module's formula."""

    weights: Doubles  # of the graph, of further witnesses, of the web label
    sharpness: float
    trust: float
    background: Doubles  # how much texts speak of each class on average
    counts: Doubles  # images that each web label (rows) found of each class
    web_prior: Doubles  # P(web label)

    @functools.cached_property
    def totals(self) -> Doubles:
        """Images of each class."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def confusion(self) -> Doubles:
        """P(web label | class), one row per class."""
        return np.asarray((self.counts / self.totals).T)

    def log_web(self, share: csr_array, own: Floats) -> Doubles:
        """Return the log of how much likelier the web labels of each row are under each class.

        `own` is what each row itself added to the counts. It is taken out again: otherwise, in a
        small crawl, a wrong text would count its own image as proof that such images exist.
        """
        found = share @ self.counts
        added = own * (share.power(2) @ self.counts) / np.maximum(found, SMALLEST)
        others = np.maximum(found - added, SMALLEST) / (self.totals - own)
        usual = (share @ self.web_prior)[:, None]
        return np.log(np.where(usual > 0, others / np.where(usual > 0, usual, 1), 1))

    def text_factor(self, texts: Spoken) -> Doubles:
        """Return the bracket of the formula; one where there is no text (NaN)."""
        told = softmax(self.sharpness * texts.cosines, axis=1) / self.background
        trust = self.trust * texts.own[:, None]
        return np.where(np.isnan(told), 1, trust * told + 1 - trust)


def estimate(
    witnesses: list[Doubles],
    texts: Spoken,
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
        counts=0.7 * np.eye(share.shape[1])[:, given] + 0.3 * web_prior[:, None],
        web_prior=web_prior,
    )
    posterior = np.zeros(texts.cosines.shape)
    with bar(ROUNDS, "evidence", progress=progress) as steps:
        for _ in range(ROUNDS):
            channels = [*witnesses, model.log_web(share, posterior)]
            model = _least_surprise(model, channels, texts)
            prior = softmax(weighted(model.weights, channels), axis=1)
            posterior = prior * model.text_factor(texts)
            posterior /= posterior.sum(axis=1, keepdims=True)
            model = dataclasses.replace(model, counts=_count(model, posterior, share))
            steps.update()
    return model, posterior


def weighted(weights: Floats, channels: Sequence[Floats]) -> Doubles:
    """Return the weighted sum of the channels."""
    return sum(
        (weight * channel for weight, channel in zip(weights, channels, strict=True)),
        np.zeros((1, 1)),
    )


def _least_surprise(model: Model, channels: list[Doubles], texts: Spoken) -> Model:
    """Fit weights, sharpness and trust to the texts, the counts held."""
    n_weights = len(channels)
    start = np.array([*model.weights, model.sharpness, logit(model.trust)])
    bounds = [(0, 10)] * n_weights + [(0, 200), (-7, 7)]
    with open_threads() as mapped:
        x = minimize(
            surprise,
            start,
            args=(channels, texts, mapped),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
        ).x
        background = _background(x[-2], texts.cosines, mapped)
    return dataclasses.replace(
        model,
        weights=x[:n_weights],
        sharpness=float(x[-2]),
        trust=float(expit(x[-1])),
        background=background,
    )


def surprise(
    x: Doubles, channels: list[Doubles], texts: Spoken, mapped: Mapped = map
) -> tuple[float, Doubles]:
    """Return how surprising the texts are given all else, a text on average, and its gradient.

    `x` holds the channels' weights, the sharpness and the log odds of the trust. A prior
    worth some texts draws the weights to 1 (graph, web label) and 0 (others) where texts are few.
    """
    weights, sharpness, trust = x[:-2], x[-2], expit(x[-1])
    background = _background(sharpness, texts.cosines, mapped)
    n_texts = len(texts.cosines)

    def part(rows: slice) -> tuple[Doubles, Doubles, Doubles]:
        cosine, heard = texts.cosines[rows], [channel[rows] for channel in channels]
        trusted = trust * texts.own[rows]
        prior = softmax(weighted(weights, heard), axis=1)
        told = softmax(sharpness * cosine, axis=1)
        within = prior * told / background
        informed = within.sum(axis=1)
        within /= informed[:, None]
        total = trusted * informed + 1 - trusted
        belongs = trusted * informed / total  # probability that the text is this image's own
        moved = within - prior
        slopes = [_row_dot(moved, channel) @ belongs for channel in heard]
        slopes += [
            _row_dot(within - told, cosine) @ belongs,
            ((1 - trust) * trusted * (informed - 1) / total).sum(),
        ]
        sharper = told * (cosine - _row_dot(told, cosine)[:, None])
        sums = np.array([np.log(total).sum(), *slopes])
        return sums, belongs @ within, sharper.sum(axis=0)

    found = mapped(part, _blocks(texts.cosines))
    sums, spoken, sharper = functools.reduce(lambda a, b: [*map(np.add, a, b)], found)
    away = weights - np.array([1.0, *[0.0] * (len(channels) - 2), 1.0])
    slopes = -sums[1:]
    slopes[:-2] += PRIOR_TEXTS * away
    slopes[-2] += spoken @ (sharper / (background * (n_texts + 1)))
    loss = 0.5 * PRIOR_TEXTS * (away**2).sum() - sums[0]
    return float(loss) / n_texts, slopes / n_texts


def _blocks(cosines: Floats) -> list[slice]:
    """Return blocks of rows so small that what is computed of them stays near the processor."""
    return row_blocks(len(cosines), row_bytes=64 * cosines.shape[1])


def _row_dot(one: Doubles, other: Floats) -> Doubles:
    """Return the dot product of each row with its partner."""
    return np.einsum("ij,ij->i", one, other)


def _background(sharpness: float, cosines: Floats, mapped: Mapped) -> Doubles:
    """Return how much texts speak of each class on average, as if one more spoke of all."""

    def part(rows: slice) -> Doubles:
        return softmax(sharpness * cosines[rows], axis=1).sum(axis=0)

    n_texts, n_classes = cosines.shape
    return (sum(mapped(part, _blocks(cosines))) + 1 / n_classes) / (n_texts + 1)


def _count(model: Model, posterior: Doubles, share: csr_array) -> Doubles:
    """Count the images of each class by web label, a little smoothed by how common labels are."""
    likelihood = np.maximum(share @ model.counts / model.totals, SMALLEST)
    counts = np.asarray(share.T @ (posterior / likelihood))
    counts *= model.counts  # in place: with many classes the table is large
    counts /= model.totals
    counts += model.web_prior[:, None]
    return counts
