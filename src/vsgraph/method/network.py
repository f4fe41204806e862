"""Section 3.5: the graph network (Eq. 6), trained on the anchors, in one round or several (4.5).

There is no nonlinearity between layers, so L layers are one weight matrix on features that were
propagated up to L times. Training needs those only at the anchors, and labels are given a block of
images at a time: neither (n_images, n_dims) nor (n_images, n_classes) is ever held.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import expit, log_softmax

from vsgraph.common.blocks import as_floats, in_threads, row_blocks, row_lengths
from vsgraph.common.checks import Floats, check_matrix
from vsgraph.method.graph import gather, propagation_matrix
from vsgraph.method.linear_fit import (
    AnchorTask,
    anchor_task,
    check_task,
    train_by_adam,
    train_to_optimum,
)
from vsgraph.result.parts import Anchors
from vsgraph.settings import Form, Settings

BLOCK_EDGES = 10
SCORE_ARRAYS = 32  # of (n_rows, n_classes) that scoring holds of a block at a time
MOST_ROWS = 2048

RowIndex = slice | NDArray[np.integer[Any]]


def label_by_graph(
    features: ArrayLike,
    adjacency: csr_array,
    anchors: Anchors,
    web_labels: ArrayLike | csr_array,
    *,
    n_classes: int,
    settings: Settings,
    progress: bool = False,
) -> Floats:
    """Spread the anchors' labels over the graph to all images (Eq. 6 and 7).

    Parameters
    ----------
    features : array of shape (n_images, n_dims)
        ``s`` in the paper.
    adjacency : csr_array of shape (n_images, n_images)
        ``A`` in the paper.
    anchors : Anchors
        From :func:`select_anchors`.
    web_labels : int array of shape (n_images,) or bool array of shape (n_images, n_classes)
        ``y*`` in the paper. A web label for which an image is no anchor is neither right nor
        wrong in the loss.
    n_classes : int
        ``C`` in the paper.
    settings : Settings
        The form, ``w``, ``L`` and the training.
    progress : bool
        Show a progress bar.

    Returns
    -------
    gnn_probs : array of shape (n_images, n_classes)
        ``p_g`` in the paper, dense (:func:`correct` goes by blocks); zero for a class without
        anchors. In the released form, and for multi-label data, rows need not sum to one: an image
        far from all anchors has low scores throughout.

    Examples
    --------
    >>> pair = csr_array([[0, 1.0, 0, 0], [1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]])
    >>> sure = Anchors(np.array([0, 2]), np.array([0, 1]), np.ones(2))
    >>> label_by_graph([[1, 0], [1, 0], [0, 1], [0, 1]], pair, sure, [0, 1, 1, 1],
    ...                n_classes=2, settings=Settings()).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    visual = check_matrix("features", features, n_rows=adjacency.shape[0], keep_half=True)
    labels = check_task(anchors, web_labels, n_rows=len(visual), n_classes=n_classes)
    task = anchor_task(anchors, labels, exclusive=np.ndim(web_labels) == 1)
    network = train(visual, adjacency, task, settings=settings, progress=progress)
    return np.asarray(network)


@dataclasses.dataclass(frozen=True)
class Network:
    """A trained graph network: ``network[rows]`` is ``p_g`` of some images, computed on demand.

    Attributes
    ----------
    inputs : NetworkInputs
        Features and the operator that propagates them.
    weights : float array of shape (n_inputs, n_classes)
        ``theta`` in the paper.
    anchored : bool array of shape (n_classes,)
        Classes that have anchors; the others get no score.
    softmax : bool
        Classes exclude each other; otherwise each has a sigmoid of its own.

    Examples
    --------
    >>> features = np.array([[0.0], [9.0]])
    >>> alone = NetworkInputs(features, np.ones(2), csr_array((2, 2)), 1, "released")
    >>> Network(alone, np.array([[1.0], [0.0]]), np.array([True]), softmax=False)[:1].tolist()
    [[0.5]]
    """

    inputs: "NetworkInputs"
    weights: Floats
    anchored: NDArray[np.bool_]
    softmax: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Images and classes."""
        return len(self.inputs.features), self.weights.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: RowIndex) -> Floats:
        """Return ``p_g`` of some images (Eq. 6)."""
        some = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        logits = self.inputs.at(np.asarray(some, np.intp)) @ self.weights
        logits[:, ~self.anchored] = -np.inf
        return np.exp(log_softmax(logits, axis=1)) if self.softmax else expit(logits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:  # noqa: ANN401, FBT001
        blocks = in_threads(self.__getitem__, self.blocks())
        return np.concatenate(list(blocks)).astype(dtype or self.weights.dtype)

    def blocks(self) -> list[slice]:
        """Return blocks of images to compute at a time."""
        n_inputs, n_classes = self.weights.shape
        width = n_inputs + BLOCK_EDGES * self.inputs.features.shape[1] + SCORE_ARRAYS * n_classes
        return row_blocks(len(self), row_bytes=4 * width, most=MOST_ROWS)


@dataclasses.dataclass(frozen=True)
class NetworkInputs:
    """What the network sees of an image: ``S^L s``, or ``[s ; S s ; ... ; S^L s]`` released."""

    features: Floats  # (n_images, n_dims), ``s`` in the paper, may be fp16 and mapped
    scale: Floats  # (n_images,), what each row of `features` is multiplied by
    propagation: csr_array  # (n_images, n_images), ``S`` in the paper
    n_layers: int  # ``L`` in the paper
    form: Form

    def at(self, rows: NDArray[np.intp]) -> Floats:
        """Return the inputs at some rows, (n_rows, n_inputs)."""
        blocks = row_blocks(len(rows), most=MOST_ROWS)
        return np.concatenate([self._few(rows[block]) for block in blocks])

    def _few(self, rows: NDArray[np.intp]) -> Floats:
        """Return the inputs at so few rows that all their neighbors' features fit in memory."""
        own = as_floats(np.asarray(self.features[rows]))
        steps = [own * self.scale[rows][:, None].astype(own.dtype)]
        step = csr_array(self.propagation[rows])
        for layer in range(self.n_layers):
            weights = step.data * self.scale[step.indices]
            scaled = csr_array((weights, step.indices, step.indptr), shape=step.shape)
            steps.append(gather(scaled, self.features))
            step = step @ self.propagation if layer + 1 < self.n_layers else step
        return steps[-1] if self.form == "printed" else np.hstack(steps)


def train(
    features: Floats,
    adjacency: csr_array,
    task: AnchorTask,
    *,
    settings: Settings,
    start: Floats | None = None,
    progress: bool = False,
) -> Network:
    """Train the network on the anchors, from features (n_images, n_dims) and the graph."""
    inputs = network_inputs(features, adjacency, settings)
    seen = inputs.at(task.rows)
    if settings.solver == "adam":
        weights = train_by_adam(seen, task, settings=settings, progress=progress)
    else:
        weights = train_to_optimum(seen, task, settings=settings, start=start, progress=progress)
    softmax = settings.form == "printed" and task.exclusive
    return Network(inputs, weights, task.targets.sum(axis=0) > 0, softmax)


def network_inputs(features: Floats, adjacency: csr_array, settings: Settings) -> NetworkInputs:
    """Put features and graph together as the network sees them."""
    length = row_lengths(features) if settings.unit_features else np.ones(len(features))
    return NetworkInputs(
        features,
        np.divide(1, length, out=np.zeros_like(length), where=length > 0),
        propagation_matrix(adjacency, self_weight=settings.self_weight, form=settings.form),
        settings.gnn_layers,
        settings.form,
    )


def train_in_rounds(
    features: Floats,
    adjacency: csr_array,
    anchors: Anchors,
    labels: csr_array,
    *,
    exclusive: bool,
    settings: Settings,
    start: Floats | None = None,
    progress: bool = False,
) -> tuple[Network, Anchors]:
    """Train `settings.rounds` times, each round on the anchors that the one before found (4.5).

    Return the network of the last round and the anchors it learned from. Web labels, (n_images,
    n_classes), count only in the first round. The graph stays the same; the paper finds that rounds
    help only on a graph of strong features.
    """
    task = anchor_task(anchors, labels, exclusive=exclusive)
    network = train(features, adjacency, task, settings=settings, start=start, progress=progress)
    unlabeled = csr_array(labels.shape, dtype=np.float32)
    for _ in range(settings.rounds - 1):
        anchors = grow_anchors(network, anchors, confidence_threshold=settings.confidence_threshold)
        task = anchor_task(anchors, unlabeled, exclusive=exclusive)
        network = train(features, adjacency, task, settings=settings, progress=progress)
    return network, anchors


def grow_anchors(
    gnn_probs: Network | Floats, anchors: Anchors, *, confidence_threshold: float
) -> Anchors:
    """Make every image the graph is sure of an anchor of the class it is sure of.

    A class of which the graph is sure nowhere keeps its anchors, so no class is lost.
    """
    sure = []  # (rows, classes, scores) of each block
    for block in row_blocks(len(gnn_probs), row_bytes=8 * gnn_probs.shape[1]):
        probs = gnn_probs[block]
        rows, classes = np.nonzero(probs >= confidence_threshold)
        sure.append((rows + block.start, classes, probs[rows, classes]))
    left = ~np.isin(anchors.classes, np.concatenate([classes for _, classes, _ in sure]))
    rows, classes = anchors.rows[left], anchors.classes[left]
    if left.any():
        sure.append((rows, classes, gnn_probs[rows][np.arange(len(rows)), classes]))
    rows, classes, match = (np.concatenate([pairs[i] for pairs in sure]) for i in range(3))
    order = np.lexsort((rows, classes))
    return Anchors(rows[order], classes[order], match[order])
