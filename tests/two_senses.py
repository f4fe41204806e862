"""A made-up crawl of arrays with known truth."""

import dataclasses

import numpy as np

import vsgraph


@dataclasses.dataclass
class Crawl:
    """Arrays of a made-up crawl with known truth; call :meth:`correct` on it."""

    features: np.ndarray
    text: np.ndarray
    meaning: np.ndarray
    web_labels: np.ndarray
    truth: np.ndarray

    def correct(self, settings=None, **arguments):
        given = {
            "features": self.features,
            "text_embeddings": self.text,
            "label_embeddings": self.meaning,
            "web_labels": self.web_labels,
        }
        return vsgraph.correct(**(given | arguments), settings=settings or QUICK)


QUICK = vsgraph.Settings(anchors_per_class=8, epochs=150)


def make_two_senses(*, n=240, n_classes=4, noise=0.35, missing=0.2, spread=0.25, seed=0):
    """Classes as clusters; a share of each query's images are of the next class.

    Their text tells: it points to the class they show.
    """
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_classes, 16))
    meaning = random.normal(size=(n_classes, 12))
    web_labels = np.arange(n) % n_classes
    wrong = random.uniform(size=n) < noise
    truth = np.where(wrong, (web_labels + 1) % n_classes, web_labels)
    features = centers[truth] + spread * random.normal(size=(n, 16))
    text = meaning[truth] + 0.5 * random.normal(size=(n, 12))
    text[random.uniform(size=n) < missing] = 0
    return Crawl(features, text, meaning, web_labels, truth)
