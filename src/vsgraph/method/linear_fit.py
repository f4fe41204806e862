"""Linear classifiers fitted by L-BFGS, shared by the graph network and the probe; Adam as well.

Section 3.5: what the network must learn at the anchors, and its loss (Eq. 7).
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

from vsgraph.common.blocks import Mapped, open_threads, row_blocks
from vsgraph.common.checks import Floats, check_labels
from vsgraph.common.progress import bar
from vsgraph.errors import InputError
from vsgraph.result.parts import Anchors
from vsgraph.settings import Form, Settings

MAX_STEPS = 2000
MOST_ROWS = 2048  # of a block
Doubles = NDArray[np.float64]


def check_task(
    anchors: Anchors, web_labels: ArrayLike | csr_array, *, n_rows: int, n_classes: int
) -> csr_array:
    """Return web labels as a matrix, (n_rows, n_classes); raise an error if anchors do not fit."""
    labels = check_labels("web_labels", web_labels, n_rows=n_rows, n_classes=n_classes)
    if not len(anchors):
        raise InputError("anchors must not be empty: no image has text near it to choose it by")
    if anchors.rows.max() >= n_rows or anchors.classes.max() >= n_classes:
        raise InputError("anchors must be rows and classes of these images")
    return labels


@dataclasses.dataclass(frozen=True)
class AnchorTask:
    """What the network must learn at the anchors; no array of (n_rows, n_classes) is held."""

    rows: NDArray[np.intp]  # (n_rows,), each anchor image once
    targets: csr_array  # (n_rows, n_classes), one if the image is an anchor of the class
    unknown: csr_array  # the same shape, one at a web label that it is no anchor of
    row_weights: NDArray[np.float32]  # (n_rows,), rare classes count as much as common ones; mean 1
    exclusive: bool = True  # an image has one class only


def anchor_task(anchors: Anchors, labels: csr_array, *, exclusive: bool = True) -> AnchorTask:
    """Turn anchors, with the labels of all images, (n_images, n_classes), into targets."""
    rows, place = np.unique(anchors.rows, return_inverse=True)
    n_classes = labels.shape[1]
    ones = np.ones(len(place), np.float32)
    targets = csr_array((ones, (place, anchors.classes)), shape=(len(rows), n_classes))
    own = csr_array(labels[rows] != 0)
    unknown = csr_array(own - own.multiply(targets != 0))
    unknown.eliminate_zeros()
    per_class = np.bincount(anchors.classes, minlength=n_classes)
    class_weights = 1 / np.where(per_class > 0, per_class, 1)
    row_weights = targets @ class_weights / targets.sum(axis=1)
    row_weights = (row_weights / row_weights.mean()).astype(np.float32)
    return AnchorTask(rows, targets, unknown, row_weights, exclusive)


def anchor_loss(
    weights: Floats, inputs: Floats, task: AnchorTask, *, form: Form, mapped: Mapped = map
) -> tuple[float, Floats]:
    """Return the loss on the anchors, averaged over them, and its gradient (Eq. 7).

    Printed: softmax cross-entropy. Released, and for multi-label data: binary cross-entropy summed
    over the known classes, times the weight of the anchor's class. A block of anchors at a time.
    """

    def part(rows: slice) -> tuple[float, Floats]:
        block = inputs[rows]
        true, unknown = (m[rows].tocoo().coords for m in (task.targets, task.unknown))
        logits = block @ weights  # (n_rows, n_inputs) @ (n_inputs, n_classes)
        if form == "printed" and task.exclusive:
            log_probs = log_softmax(logits, axis=1)
            loss = -log_probs[true].sum(dtype=np.float64)
            slope = np.exp(log_probs) * np.bincount(true[0])[:, None].astype(logits.dtype)
            slope[true] -= 1
        else:
            row_weights = task.row_weights[rows].astype(logits.dtype)
            surprise, slope = sigmoid_loss(logits)
            surprise[true] -= logits[true]
            slope[true] -= 1
            surprise[unknown], slope[unknown] = 0, 0
            loss = row_weights @ surprise.sum(axis=1, dtype=np.float64)
            slope *= row_weights[:, None]
        return float(loss), block.T @ slope

    blocks = row_blocks(len(inputs), row_bytes=8 * weights.shape[1], most=MOST_ROWS)
    total, gradient = 0.0, np.zeros(weights.shape, weights.dtype)
    for loss, slope in mapped(part, blocks):
        total += loss
        gradient += slope
    return total / len(inputs), gradient / len(inputs)


def sigmoid_loss(logits: Floats) -> tuple[Floats, Floats]:
    """Return ``log(1 + exp(logits))``, the cross-entropy of classes not there, and its slope.

    >>> sigmoid_loss(np.array([-1000.0, 0.0, 1000.0]))[0].round(3).tolist()
    [0.0, 0.693, 1000.0]
    >>> sigmoid_loss(np.array([-1000.0, 0.0, 1000.0]))[1].tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(logits))  # faster by far than logaddexp and expit
    slope = np.where(logits < 0, small, 1) / (1 + small)
    return np.log1p(small, out=small) + np.maximum(logits, 0), slope


def train_to_optimum(
    inputs: Floats,
    task: AnchorTask,
    *,
    settings: Settings,
    start: Floats | None = None,
    progress: bool = False,
) -> Floats:
    """Minimize the anchor loss with weight decay to its only optimum, by L-BFGS.

    The optimum does not depend on a start, a learning rate or a number of epochs; weights to start
    from, (n_inputs, n_classes), only make the way shorter. It lies in the span of the anchors'
    inputs, so with fewer anchors than dimensions it is searched for there.
    """
    few = len(inputs) < inputs.shape[1]
    span = np.linalg.qr(inputs.T)[0] if few else None  # (n_inputs, n_rows)
    reduced = inputs if span is None else inputs @ span
    shape = (reduced.shape[1], task.targets.shape[1])
    decay = settings.weight_decay
    first = np.zeros(shape)
    if start is not None and start.shape == (inputs.shape[1], shape[1]):
        first[:] = start if span is None else span.T @ start

    def decayed_loss(weights: Doubles) -> tuple[float, Doubles]:
        loss, slope = anchor_loss(
            weights.astype(reduced.dtype), reduced, task, form=settings.form, mapped=mapped
        )
        flat = weights.ravel()
        total = loss + decay / 2 * float(flat @ flat)
        return total, slope.astype(np.float64) + decay * weights

    with open_threads() as mapped, bar(title="network", progress=progress) as steps:
        fitted = fit_weights(
            decayed_loss, first, max_steps=MAX_STEPS, ftol=1e-12, gtol=1e-7,
            after_step=steps.update,
        )  # fmt: skip
    weights = fitted.astype(inputs.dtype)
    return weights if span is None else span @ weights


def fit_weights(
    loss: Callable[[Doubles], tuple[float, Doubles]],
    start: Doubles,
    *,
    max_steps: int,
    after_step: Callable[[], object] = lambda: None,
    **tolerances: float,
) -> Doubles:
    """Return the weights of least loss, by L-BFGS; `loss` returns its value and its slope."""

    def flat_loss(flat: Doubles) -> tuple[float, Doubles]:
        value, slope = loss(flat.reshape(start.shape))
        return value, slope.ravel()

    fitted = minimize(
        flat_loss, start.ravel(), jac=True, method="L-BFGS-B", callback=lambda _: after_step(),
        options={"maxiter": max_steps, "maxfun": 2 * max_steps, **tolerances},
    )  # fmt: skip
    return fitted.x.reshape(start.shape)


def train_by_adam(
    inputs: Floats, task: AnchorTask, *, settings: Settings, progress: bool = False
) -> Floats:
    """Minimize the anchor loss by Adam, all anchors in one batch, as the paper does."""
    n_classes = task.targets.shape[1]
    bound = 1 / np.sqrt(n_classes)
    random = np.random.default_rng(settings.random_state)
    start = random.uniform(-bound, bound, (inputs.shape[1], n_classes))
    weights: Floats = start.astype(inputs.dtype)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    with open_threads() as mapped, bar(settings.epochs, "network", progress=progress) as steps:
        for epoch in range(1, settings.epochs + 1):
            slope = anchor_loss(weights, inputs, task, form=settings.form, mapped=mapped)[1]
            slope += settings.weight_decay * weights
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            size = np.sqrt(square / (1 - 0.999**epoch)) + 1e-8
            weights -= settings.learning_rate / (1 - 0.9**epoch) * mean / size
            steps.update()
    return weights
