"""What people do without vsgraph, on the same vectors."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold

import vsgraph

Array = NDArray[np.floating]
PENALTIES = (3e-5, 1e-4)
FITTED = 1e-5  # weak enough to fit the web labels of its own photos, as a CNN does


def softmax_regression(
    train: Array, labels: NDArray[np.intp], test: Array, *, penalty: float, n_classes: int
) -> Array:
    """Fit a linear softmax classifier and return its probabilities."""
    mean = train.mean(axis=0)
    inputs = (train - mean).astype(np.float32)
    targets = np.eye(n_classes, dtype=np.float32)[labels]

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(-1, n_classes).astype(np.float32)
        log_probs = log_softmax(inputs @ weights[:-1] + weights[-1], axis=1)
        slope = (np.exp(log_probs) - targets) / len(inputs)
        gradient = np.vstack([inputs.T @ slope + penalty * weights[:-1], slope.sum(axis=0)])
        value = -(targets * log_probs).sum() / len(inputs) + penalty / 2 * (weights[:-1] ** 2).sum()
        return float(value), gradient.ravel().astype(np.float64)

    start = np.zeros((train.shape[1] + 1) * n_classes)
    fitted = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    weights = fitted.x.reshape(-1, n_classes)
    return np.exp(log_softmax((test - mean) @ weights[:-1] + weights[-1], axis=1))


def fitted_classifier(features: Array, labels: NDArray[np.intp]) -> Array:
    """Return p_c on the images it was trained on."""
    n_classes = int(labels.max()) + 1
    return softmax_regression(features, labels, features, penalty=FITTED, n_classes=n_classes)


def web_classifier(features: Array, labels: NDArray[np.intp]) -> Array:
    """Return p_c out of fold (5 folds).

    The penalty is the one that predicts held-out web labels best; no truth is seen.
    """
    n_classes = int(labels.max()) + 1
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(features, labels))

    def out_of_fold(penalty: float) -> Array:
        probs = np.zeros((len(labels), n_classes))
        for train, test in folds:
            probs[test] = softmax_regression(
                features[train], labels[train], features[test],
                penalty=penalty, n_classes=n_classes,
            )  # fmt: skip
        return probs

    def surprise(probs: Array) -> float:
        return -float(np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-12)).mean())

    tried = {penalty: out_of_fold(penalty) for penalty in PENALTIES}
    best = min(tried, key=lambda penalty: surprise(tried[penalty]))
    return tried[best]


def neighbor_vote(features: Array, labels: NDArray[np.intp], *, k: int) -> Array:
    """Return the share of each web label among an image's nearest neighbors."""
    neighbors = vsgraph.nearest_neighbors(features, n_neighbors=k).rows
    return np.eye(int(labels.max()) + 1)[labels[neighbors]].mean(axis=1)


def cleanlab_flags(labels: NDArray[np.intp], probs: Array) -> NDArray[np.bool_]:
    """Return the labels that cleanlab takes for wrong."""
    from cleanlab.filter import find_label_issues

    return find_label_issues(labels, probs, n_jobs=1)


def propagate_labels(features: Array, seeds: NDArray[np.intp], *, k: int) -> Array:
    """Return scikit-learn's label propagation from seeds (-1: none), which stay as they are."""
    from sklearn.semi_supervised import LabelPropagation

    fitted = LabelPropagation(kernel="knn", n_neighbors=k, max_iter=5000).fit(features, seeds)
    return fitted.label_distributions_


def spread_labels(
    features: Array, seeds: NDArray[np.intp], *, k: int, neighbors_share: float
) -> Array:
    """Return scikit-learn's label spreading from seeds (-1: none), which may change."""
    from sklearn.semi_supervised import LabelSpreading

    fitted = LabelSpreading(kernel="knn", n_neighbors=k, alpha=neighbors_share, max_iter=1000)
    return fitted.fit(features, seeds).label_distributions_
