"""A trial: nine tenths of COCO-Web and its vectors, drawn by a seed.

The seed draws the photos, the folds of p_c, and with web-like text which texts are missing and
which are exchanged. Different seeds share most photos, so the spread is that of the methods' luck
more than that of another crawl.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import vsgraph
from baselines import fitted_classifier
from coco_web_data import CocoWeb, web_like
from encode import cached, describe, photo_features, text_vectors

Array = NDArray[np.floating]
DRAWN = 0.9
CAPTIONS, WEB_LIKE = "captions as they are", "web-like text"
TEXTS = (CAPTIONS, WEB_LIKE)


@dataclasses.dataclass(frozen=True)
class Vectors:
    """The photos, and what all methods see of them: features, texts, meanings of labels."""

    data: CocoWeb
    features: Array
    text: Array
    meaning: Array


def load_vectors(data: CocoWeb) -> Vectors:
    """Encode photos, captions and label meanings."""
    return Vectors(
        data=data,
        features=photo_features(data.images),
        text=text_vectors(data.texts),
        meaning=text_vectors(describe(data.wnids)),
    )


@dataclasses.dataclass(frozen=True)
class Trial:
    """What one seed draws of the `whole`; web-like text is spoiled already."""

    seed: int
    kind: str
    rows: NDArray[np.intp]
    data: CocoWeb
    whole: CocoWeb
    features: Array
    text: Array
    meaning: Array
    texts: NDArray[np.object_]  # in words, spoiled as their vectors

    @property
    def about(self) -> dict[str, object]:
        """What the trial depends on."""
        named = "\0".join([*(path.name for path in self.data.images), *self.data.texts])
        photos = hashlib.sha256(named.encode()).hexdigest()[:16]
        return {"seed": self.seed, "kind": self.kind, "photos": photos}

    @property
    def own(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the web labels lie in a table of scores."""
        return np.arange(len(self.rows)), self.data.web_labels

    @functools.cached_property
    def unit(self) -> Array:
        """Features of length one."""
        return self.features / np.linalg.norm(self.features, axis=1, keepdims=True)

    @functools.cached_property
    def graph(self) -> csr_array:
        """The visual graph with the default number of neighbors."""
        return vsgraph.visual_graph(self.features, n_neighbors=vsgraph.Settings().n_neighbors)

    @functools.cached_property
    def probe(self) -> Array:
        """p_c out of fold, by ``vsgraph.linear_probe``."""
        n_classes = len(self.meaning)
        return np.asarray(
            vsgraph.linear_probe(
                self.features, self.data.web_labels,
                n_classes=n_classes, n_kept=n_classes, random_state=self.seed,
            )
        )  # fmt: skip

    @functools.cached_property
    def fitted(self) -> Array:
        """p_c of a classifier on the photos it was trained on, as the paper has it."""
        names = [path.name for path in self.data.images]
        return cached("fitted", names, lambda: fitted_classifier(self.unit, self.data.web_labels))

    def correct(
        self,
        settings: vsgraph.Settings | None = None,
        cnn: Array | None = None,
        **changes: Array | csr_array | None,
    ) -> vsgraph.Correction:
        """Correct the labels of the trial."""
        given = {"features": self.features, "web_labels": self.data.web_labels}
        given |= {"text_embeddings": self.text, "graph": self.graph} | changes
        return vsgraph.correct(
            label_embeddings=self.meaning, cnn_probs=cnn,
            settings=settings, class_names=self.data.class_names, **given,
        )  # fmt: skip


def draw(vectors: Vectors, *, seed: int, kind: str) -> Trial:
    """Draw the trial of a seed."""
    data = vectors.data
    order = np.random.default_rng(seed).permutation(len(data.images))
    rows = np.sort(order[: round(DRAWN * len(order))])
    texts = np.array(data.texts, object)[rows]
    text, texts = spoil(vectors.text[rows], texts, seed=seed, kind=kind)
    return Trial(
        seed=seed,
        kind=kind,
        rows=rows,
        data=data.take(rows),
        whole=data,
        features=vectors.features[rows],
        text=text,
        meaning=vectors.meaning,
        texts=texts,
    )


def spoil(
    text: Array, texts: NDArray[np.object_], *, seed: int, kind: str
) -> tuple[Array, NDArray[np.object_]]:
    """Return vectors and words of texts, spoiled if they are to be web-like."""
    if kind != WEB_LIKE:
        return text, texts
    texts = web_like(texts, seed=seed)
    texts[texts == 0] = ""
    return web_like(text, seed=seed), texts


def spread(values: Sequence[float | None], *, digits: int = 1, scale: float = 100) -> str:
    """Print mean and standard deviation over the seeds, in percent unless told otherwise."""
    known = [scale * value for value in values if value is not None]
    if not known or len(known) < len(values):
        return "-"
    mean = f"{np.mean(known):.{digits}f}"
    return f"{mean} ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else mean
