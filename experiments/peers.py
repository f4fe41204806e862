"""The methods that the paper compares with, on frozen features, from their papers.

Each returns a :class:`Lesson`: the labels that a classifier learns, how much each image counts, and
what is believed of the web labels. The features stay as they are, so what a method does to features
during its training is left out.
"""

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.cluster import KMeans

from vsgraph.result.parts import UNANSWERED

Array = NDArray[np.floating]
Labels = NDArray[np.intp]
DENSE = 0.6  # CurriculumNet: the rank of the distance that counts as near
CURRICULUM = (1.0, 0.5, 0.5)  # weights of the clean, noisy and highly noisy subset
SIMILAR = 0.4  # Han et al.: the rank, from the top, of the similarity that counts as near
N_PROTOTYPES, MOST_ALIKE = 8, 0.95
OWN_SHARE = 0.5  # Han et al.: of the loss on the web label
N_AXES = 128  # CleanNet: dimensions of the space in which images and classes are compared
PERCENTILE = 75  # MentorNet: of the losses of a class, which a loss is compared with


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What a classifier learns from, and what a method says of the labels."""

    table: Array  # (n_images, n_classes), rows sum to 1, or 0 if an image is left out
    labels: Labels  # (n_images,), the likeliest, also of images left out
    confidence: Array  # (n_images,), how sure they are
    quality: Array  # (n_images,), high where the web label is believed
    stages: tuple[Array, ...] = ()  # how much images count, (n_images,), one stage after another


def one_hot(labels: Labels, n_classes: int) -> Array:
    """Return labels as rows of zeros and a one."""
    return np.eye(n_classes, dtype=np.float32)[labels]


def of_probs(probs: Array, web: Labels) -> Lesson:
    """Return what a classifier's probabilities teach."""
    own = probs[np.arange(len(web)), web]
    return Lesson(probs, probs.argmax(axis=1), probs.max(axis=1), own)


# --- CurriculumNet (Guo et al. 2018)


def density_center(points: Array) -> tuple[int, Array]:
    """Return the densest of the images of a class, and the squared distance of each to it.

    The density of an image counts the images nearer than the distance of rank `DENSE` among all.
    """
    squares = (points**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0)
    ranked = np.sort(distances, axis=None)
    near = ranked[min(int(DENSE * ranked.size), ranked.size - 1)]
    center = int((distances < near).sum(axis=1).argmax())
    return center, distances[center]


def three_subsets(distances: Array) -> Labels:
    """Return 0 (clean), 1 (noisy) or 2 (highly noisy) by k-means of the distances to the center."""
    n = min(3, len(np.unique(distances)))
    groups = KMeans(n, n_init=10, random_state=0).fit(distances[:, None])
    rank = np.argsort(np.argsort(groups.cluster_centers_[:, 0]))
    return rank[groups.labels_]


def curriculum(features: Array, web: Labels, n_classes: int) -> Lesson:
    """Split each class into three subsets by density, and learn from clean to noisy."""
    subset, nearness = np.zeros(len(web), np.intp), np.zeros(len(web))
    for number in np.unique(web):
        rows = np.flatnonzero(web == number)
        _, distances = density_center(features[rows])
        subset[rows] = three_subsets(distances)
        nearness[rows] = -np.argsort(np.argsort(distances)) / len(rows)
    stages = [np.where(subset <= last, np.array(CURRICULUM)[subset], 0) for last in range(3)]
    quality = nearness - subset
    return Lesson(one_hot(web, n_classes), web, quality, quality, tuple(stages))


# --- Deep self-learning (Han et al. 2019)


def prototypes(unit: Array) -> Labels:
    """Choose dense images of a class that differ from each other.

    The density of an image is the number of images more similar than the rank `SIMILAR`, minus the
    others; one that is very similar to a denser one is no prototype.
    """
    alike = unit @ unit.T
    ranked = np.sort(alike, axis=None)[::-1]
    density = np.sign(alike - ranked[min(int(SIMILAR * ranked.size), ranked.size - 1)]).sum(axis=1)
    denser = density[None, :] > density[:, None]
    likeness = np.where(denser.any(axis=1), np.where(denser, alike, -1).max(axis=1), alike.min(1))
    order = np.argsort(-density, kind="stable")
    different = order[likeness[order] < MOST_ALIKE]
    return (different if len(different) else order)[:N_PROTOTYPES]


def self_learning(unit: Array, web: Labels, n_classes: int) -> Lesson:
    """Learn the web label and the class whose prototypes are most similar, half and half."""
    scores = np.full((len(web), n_classes), -1.0, np.float32)
    for number in np.unique(web):
        own = unit[web == number]
        scores[:, number] = (unit @ own[prototypes(own)].T).mean(axis=1)
    found = one_hot(scores.argmax(axis=1), n_classes)
    margin = scores[np.arange(len(web)), web] - scores.max(axis=1)
    mixed = OWN_SHARE * one_hot(web, n_classes) + (1 - OWN_SHARE) * found
    return Lesson(mixed, scores.argmax(axis=1), scores.max(axis=1), margin)


# --- with a clean subset: some web labels that people have judged


def judged(answers: Labels, web: Labels) -> tuple[Labels, NDArray[np.bool_]]:
    """Return the images with an answer, and whether their web label is right."""
    rows = np.flatnonzero(answers != UNANSWERED)
    return rows, answers[rows] == web[rows]


def verification(unit: Array, web: Labels, n_classes: int, answers: Labels) -> Lesson:
    """Weigh images by how well they match their class, as CleanNet does (Lee et al. 2018).

    Images and classes (the mean of their images) are mapped alike; the map is learned from judged
    pairs: cosine one where the label is right, none where it is wrong. An image counts by its
    cosine, if that is above zero.
    """
    rows, right = judged(answers, web)
    centers = np.stack([unit[web == c].mean(axis=0) if (web == c).any() else unit[0] * 0
                        for c in range(n_classes)])  # fmt: skip
    mean = unit.mean(axis=0)
    axes = np.linalg.svd(unit[:: max(1, len(unit) // 2000)] - mean, full_matrices=False)[2][:N_AXES]
    image, center = (torch.from_numpy((x - mean) @ axes.T).float() for x in (unit, centers))
    mapping = torch.eye(len(axes), requires_grad=True)
    wanted = torch.from_numpy(right)
    steps = torch.optim.Adam([mapping], lr=1e-3, weight_decay=1e-4)
    for _ in range(300):
        cosine = torch.cosine_similarity(image[rows] @ mapping, center[web[rows]] @ mapping)
        loss = torch.where(wanted, 1 - cosine, cosine.clamp(min=0)).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    with torch.no_grad():
        cosine = torch.cosine_similarity(image @ mapping, center[web] @ mapping).numpy()
    quality = settled(cosine, answers, web)
    return Lesson(one_hot(web, n_classes), web, quality, quality, (np.maximum(quality, 0),))


def mentor(probs: Array, web: Labels, n_classes: int, answers: Labels) -> Lesson:
    """Weigh images by their loss, as a MentorNet that learned from judged labels (Jiang 2018).

    The loss of the web label under a classifier, and how far it is from the `PERCENTILE` of its
    class, tell right labels from wrong ones by a logistic regression on the judged images.
    """
    losses = -np.log(np.maximum(probs[np.arange(len(web)), web], 1e-6))
    usual = np.array([np.percentile(losses[web == c], PERCENTILE) if (web == c).any() else 0
                      for c in range(n_classes)])  # fmt: skip
    seen = np.stack([losses, losses - usual[web], np.ones(len(web))], axis=1)
    rows, right = judged(answers, web)
    weights = fit_logistic(seen[rows], right)
    shares = settled(expit(seen @ weights), answers, web)
    return Lesson(one_hot(web, n_classes), web, shares, shares, (shares,))


def fit_logistic(inputs: Array, right: NDArray[np.bool_]) -> Array:
    """Return the weights of a logistic regression, with a little decay."""

    def loss(weights: Array) -> tuple[float, Array]:
        probs = expit(inputs @ weights)
        surprise = -np.log(np.where(right, probs, 1 - probs) + 1e-12).mean()
        slope = inputs.T @ (probs - right) / len(right)
        return surprise + 1e-3 / 2 * weights @ weights, slope + 1e-3 * weights

    return minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x


def settled(values: Array, answers: Labels, web: Labels) -> Array:
    """Put 1 or 0 where people have judged the web label."""
    rows, right = judged(answers, web)
    values = np.array(values, np.float64)
    values[rows] = right
    return values
