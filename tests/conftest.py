"""Small crawls that many tests share."""

import dataclasses

import numpy as np
import pytest

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


@pytest.fixture(scope="session")
def two_senses():
    return make_two_senses()


@pytest.fixture(scope="session")
def corrected(two_senses):
    return two_senses.correct(class_names=["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory):
    """A cache of converted models that all tests share and nobody else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
