"""``p_c`` if there is no CNN: a linear classifier on frozen features, applied out of fold.

Rows are scaled to length one and rotated onto their first principal axes. There a softmax (with
several labels per image: one sigmoid per class) is fitted to the web labels, in folds: no image is
judged by a classifier that has seen its label. Large crawls are fitted on a sample with equally
many images of each class; the biases are then shifted to the shares of the classes in the crawl.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import expit, softmax

from vsgraph.common.blocks import Arrays, Mapped, fill_rows, open_threads, row_blocks
from vsgraph.common.checks import Floats, check_at_least, check_labels, check_matrix, check_number
from vsgraph.common.progress import bar
from vsgraph.errors import InputError
from vsgraph.method.linear_fit import Doubles, fit_weights, sigmoid_loss
from vsgraph.neighbors.sketch import Rows, Singles, principal_axes, rotate, rows_to_search
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings

N_AXES = 256
PENALTY = 3e-5  # held-out web labels of COCO-Web surprise least, see docs/departures.md
STEPS = 30
PER_CLASS = 200
CELLS = 2**26  # with few classes, as many images as make so many cells of images x classes squared
MOST_ROWS = 4096


def linear_probe(
    features: ArrayLike,
    web_labels: ArrayLike | csr_array,
    *,
    n_classes: int,
    n_folds: int = 5,
    per_class: int | None = None,
    n_kept: int = Settings.kept_scores,
    random_state: int = 0,
    progress: bool = False,
) -> TopScores:
    """Learn the web labels from the features, and predict each image from the other folds.

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        Visual features, ``s`` in the paper, in fp16 or float32, mapped or not; a row of zeros if an
        image could not be read.
    web_labels : int array of shape (n_images,) or bool matrix of shape (n_images, n_classes)
        Labels as crawled; the shape decides between softmax and sigmoid.
    n_classes : int
        Number of classes.
    n_folds : int
        Parts of the crawl; each is judged by what was learned from the others.
    per_class : int, optional
        Most images per class to learn from; 200 by default, and more with few classes.
    n_kept : int
        How many of an image's highest scores are kept.
    random_state : int
        Seed of the folds and of the sample.
    progress : bool
        Show progress bars.

    Returns
    -------
    cnn_probs : TopScores of shape (n_images, n_classes)
        ``p_c`` for :func:`correct`; zero for an image that could not be read.

    Examples
    --------
    >>> features = np.repeat(np.eye(2), 20, axis=0)
    >>> probs = linear_probe(features, [0] * 19 + [1] * 21, n_classes=2)
    >>> probs.argmax()[[0, 19, 20]].tolist()  # the web label of image 19 is wrong
    [0, 0, 1]
    """
    check_at_least("n_kept", check_number("n_kept", n_kept, int), 1)
    learned = learn_probe(
        features, web_labels, n_classes=n_classes, n_folds=n_folds, per_class=per_class,
        random_state=random_state, progress=progress,
    )  # fmt: skip
    return learned.out_of_fold(n_kept=n_kept, progress=progress)


def learn_probe(
    features: ArrayLike,
    web_labels: ArrayLike | csr_array,
    *,
    n_classes: int,
    n_folds: int = 5,
    per_class: int | None = None,
    random_state: int = 0,
    progress: bool = False,
) -> "Probes":
    """Learn the web labels from the features, in folds; see :func:`linear_probe`."""
    visual = check_matrix("features", features, keep_half=True)
    for name, number in (("n_classes", n_classes), ("per_class", per_class)):
        if number is not None:
            check_at_least(name, check_number(name, number, int), 1)
    labels = check_labels("web_labels", web_labels, n_rows=len(visual), n_classes=n_classes)
    rows = rows_to_search(visual)
    if len(rows.alive) < 2:
        raise InputError(
            f"{len(rows.alive)} of {len(visual)} images have features; the pictures of the others "
            "are missing or cannot be read (vsgraph inspect says why)"
        )
    if not 2 <= check_number("n_folds", n_folds, int) <= len(rows.alive):
        raise InputError(
            f"n_folds must lie between 2 and the number of readable images, {len(rows.alive)}, "
            f"got {n_folds}"
        )
    random = np.random.default_rng(random_state)
    strata = _strata(labels)
    rank = _rank_in_stratum(rows.alive, strata, random)
    fold = np.full(len(visual), n_folds, np.intp)
    fold[rows.alive] = (rank + strata[rows.alive]) % n_folds
    most = per_class or max(PER_CLASS, CELLS // n_classes**2)
    pool = np.sort(rows.alive[rank < most * n_folds / (n_folds - 1)]).astype(np.intp)
    axes = principal_axes(rows, min(N_AXES, visual.shape[1]))
    share = np.asarray(labels.sum(axis=0), np.float64) / len(visual)
    task = _Task(rotate(rows, axes, pool), csr_array(labels[pool]), share, np.ndim(web_labels) == 1)
    probes = []
    with bar(n_folds, "probe", progress=progress) as steps:
        for part in range(n_folds):
            probes.append(task.fit(np.flatnonzero(fold[pool] != part)))
            steps.update()
    return Probes(rows, axes, fold, probes)


@dataclasses.dataclass(frozen=True)
class Probes:
    """What all folds learned."""

    rows: Rows
    axes: Singles  # (n_dims, n_axes)
    fold: NDArray[np.intp]  # (n_images,), that of each image
    probes: list["_Probe"]  # of each fold, learned from the others

    def out_of_fold(self, *, n_kept: int, progress: bool = False) -> TopScores:
        """Judge each image by the probe that has not seen it."""
        return _predict(
            self.rows, self.axes, self.fold, self.probes, n_kept=n_kept, progress=progress
        )

    def judge(self, features: NDArray[Any], *, n_kept: int) -> TopScores:
        """Judge other images, (n_others, n_dims), by the mean of all folds."""
        others, n_classes = rows_to_search(features), self.probes[0].weights.shape[1]
        scores = TopScores.empty(len(features), n_classes, n_kept=n_kept)
        row_bytes = 4 * (len(self.axes) + 4 * n_classes)
        for block in row_blocks(len(features), row_bytes=row_bytes, most=MOST_ROWS):
            turned = others.unit(block) @ self.axes
            mean = sum(probe(turned) for probe in self.probes) / len(self.probes)
            scores.put(block, mean * (others.scale[block] > 0)[:, None])
        return scores


@dataclasses.dataclass(frozen=True)
class _Probe:
    """What one fold learned."""

    mean: Singles  # (n_axes,), of the rotated rows
    weights: Singles  # (n_axes, n_classes)
    bias: Singles  # (n_classes,)
    single: bool

    def __call__(self, rotated: Singles) -> Singles:
        """Return probabilities, (n_rows, n_classes), of rotated rows, (n_rows, n_axes)."""
        logits = (rotated - self.mean) @ self.weights + self.bias
        return softmax(logits, axis=1) if self.single else expit(logits)


@dataclasses.dataclass(frozen=True)
class _Task:
    """The sample that is learned from."""

    inputs: Singles  # (n_rows, n_axes)
    labels: csr_array  # (n_rows, n_classes)
    share: Floats  # (n_classes,), of each class in the whole crawl
    single: bool

    def fit(self, rows: NDArray[np.intp]) -> _Probe:
        """Learn from some rows, by L-BFGS on inputs scaled to an equal curvature of the loss."""
        n_classes = self.labels.shape[1]
        mean = self.inputs[rows].mean(axis=0)
        inputs = self.inputs[rows] - mean
        labels = csr_array(self.labels[rows])
        scale = 1 / np.sqrt((inputs**2).mean(axis=0) / n_classes + PENALTY)
        inputs *= scale
        decay = (PENALTY * scale**2)[:, None].astype(np.float64)

        def loss(weights: Doubles) -> tuple[float, Doubles]:
            value, slope = _loss(weights.astype(np.float32), inputs, labels, self.single, mapped)
            slope[:-1] += decay * weights[:-1]
            return value + float((decay * weights[:-1] ** 2).sum()) / 2, slope

        with open_threads() as mapped:
            fitted = fit_weights(loss, self._start(labels), max_steps=STEPS)
        weights = (fitted[:-1] * scale[:, None]).astype(np.float32)
        bias = fitted[-1] + self._shift(labels)
        return _Probe(mean, weights, bias.astype(np.float32), self.single)

    def _start(self, labels: csr_array) -> Doubles:
        """Return weights of zero, and biases that give the shares of the classes."""
        start = np.zeros((self.inputs.shape[1] + 1, labels.shape[1]))
        share = (np.asarray(labels.sum(axis=0)) + 0.5) / (labels.shape[0] + 1)
        start[-1] = np.log(share) if self.single else np.log(share / (1 - share))
        return start

    def _shift(self, labels: csr_array) -> Floats:
        """Return what moves biases from the shares of the sample to those of the crawl."""
        small = 0.5 / labels.shape[0]
        in_sample = np.clip(np.asarray(labels.sum(axis=0)) / labels.shape[0], small, 1 - small)
        in_crawl = np.clip(self.share, small, 1 - small)
        shift = np.log(in_crawl / in_sample)
        return shift if self.single else shift - np.log((1 - in_crawl) / (1 - in_sample))


def _loss(
    weights: Singles,
    inputs: Singles,
    labels: csr_array,
    single: bool,  # noqa: FBT001
    mapped: Mapped = map,
) -> tuple[float, NDArray[np.float64]]:
    """Return the cross-entropy, averaged over rows and summed over classes, and its gradient."""

    def part(rows: slice) -> tuple[float, NDArray[np.float64]]:
        block, targets = inputs[rows], labels[rows].tocoo()
        true = targets.row, targets.col
        logits = block @ weights[:-1] + weights[-1]
        if single:
            logits -= logits.max(axis=1, keepdims=True)
            value = -logits[true].sum(dtype=np.float64)
            slope = np.exp(logits, out=logits)
            total = slope.sum(axis=1, keepdims=True)
            value += np.log(total).sum(dtype=np.float64)
            slope /= total
        else:
            surprise, slope = sigmoid_loss(logits)
            value = surprise.sum(dtype=np.float64) - logits[true].sum(dtype=np.float64)
        slope[true] -= 1
        both = np.vstack([block.T @ slope, slope.sum(axis=0, keepdims=True)])
        return float(value), both.astype(np.float64)

    total, gradient = 0.0, np.zeros(weights.shape)
    for value, slope in mapped(part, row_blocks(len(inputs), most=MOST_ROWS)):
        total += value
        gradient += slope
    return total / len(inputs), gradient / len(inputs)


def _predict(
    rows: Rows,
    axes: Singles,
    fold: NDArray[np.intp],
    probes: list[_Probe],
    *,
    n_kept: int,
    progress: bool,
) -> TopScores:
    """Judge each image by the probe that has not seen it."""
    n_classes = probes[0].weights.shape[1]

    def judge(block: slice) -> Arrays:
        rotated = rows.unit(block) @ axes
        probs = np.zeros((len(rotated), n_classes), np.float32)
        for part, probe in enumerate(probes):
            own = fold[block] == part
            probs[own] = probe(rotated[own])
        return tuple(TopScores.of(probs, n_kept=n_kept).parts().values())

    row_bytes = 4 * (len(axes) + 4 * n_classes)
    blocks = row_blocks(len(fold), row_bytes=row_bytes, most=MOST_ROWS)
    filled = fill_rows(judge, blocks, title="probe", progress=progress)
    return TopScores.from_parts(filled, n_classes)


def _strata(labels: csr_array) -> NDArray[np.intp]:
    """Return the rarest label of each image, (n_images,); without any, the number of classes."""
    n_images = np.bincount(labels.indices, minlength=labels.shape[1])
    owner = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    order = np.lexsort((labels.indices, n_images[labels.indices], owner))
    strata = np.full(labels.shape[0], labels.shape[1], np.intp)
    has_any, first = np.unique(owner[order], return_index=True)
    strata[has_any] = labels.indices[order][first]
    return strata


def _rank_in_stratum(
    alive: NDArray[np.int32], strata: NDArray[np.intp], random: np.random.Generator
) -> NDArray[np.intp]:
    """Return the place of each image among those of its stratum, in random order."""
    order = np.lexsort((random.permutation(len(alive)), strata[alive]))
    sorted_strata = strata[alive][order]
    rank = np.empty(len(alive), np.intp)
    rank[order] = np.arange(len(alive)) - np.searchsorted(sorted_strata, sorted_strata)
    return rank
