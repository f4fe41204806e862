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


def web_classifier(features: Array, labels: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return p_c on the images it was trained on, and out of fold (5 folds).

    Out of fold the penalty is the one that predicts held-out web labels best; no truth is seen.
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
    in_sample = softmax_regression(features, labels, features, penalty=FITTED, n_classes=n_classes)
    return in_sample, tried[best]


def neighbor_vote(features: Array, labels: NDArray[np.intp], *, k: int) -> Array:
    """Return the share of each web label among an image's nearest neighbors."""
    neighbors = vsgraph.nearest_neighbors(features, n_neighbors=k).rows
    return np.eye(int(labels.max()) + 1)[labels[neighbors]].mean(axis=1)


def cleanlab_labels(labels: NDArray[np.intp], probs: Array) -> tuple[NDArray[np.intp], Array]:
    """Return labels with flagged ones replaced by the likeliest, and label quality scores."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    flagged = find_label_issues(labels, probs, n_jobs=1)
    quality = get_label_quality_scores(labels, probs)
    return np.where(flagged, probs.argmax(axis=1), labels), quality
