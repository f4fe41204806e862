"""The arrays of a crawl, checked once, as every stage reads them."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import as_floats
from vsgraph.common.checks import (
    Floats,
    check_labels,
    check_matrix,
    check_meanings,
    check_probs,
    check_vector,
    label_matrix,
    name_rows,
    unit_rows,
)
from vsgraph.errors import InputError
from vsgraph.method.graph import adopt_graph
from vsgraph.method.zero_shot import ZeroShot
from vsgraph.neighbors.search import Neighbors
from vsgraph.result.parts import NONE, UNANSWERED
from vsgraph.result.scores import TopScores


@dataclasses.dataclass(frozen=True)
class Words:
    """What texts say word by word; the columns are the classes, then senses that are not meant.

    Attributes
    ----------
    name_embeddings : float array of shape (n_columns, n_text_dims)
        Embedded names, from the encoder of the texts.
    names, words : bool csr_array of shape (n_images, n_columns)
        Which texts have the name; which have the name or another word for the meant sense.
    unwanted_embeddings : float array of shape (n_unwanted, n_text_dims)
        Embedded descriptions of the senses that are not meant.
    unwanted_of : int array of shape (n_unwanted,)
        The class among whose images each of them is found.
    unwanted_names : tuple of str
        What to call them.
    """

    name_embeddings: Floats
    names: csr_array
    words: csr_array
    unwanted_embeddings: Floats
    unwanted_of: NDArray[np.intp]
    unwanted_names: tuple[str, ...]


class Repeated(NamedTuple):
    """Scores read by rows, some columns of which stand for several classes."""

    scores: Floats | TopScores | ZeroShot
    columns: NDArray[np.intp]

    def __getitem__(self, rows: Any) -> Floats:  # type: ignore[override]  # noqa: ANN401
        return np.asarray(self.scores[rows])[:, self.columns]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """The arrays of a crawl; large ones are read in blocks."""

    features: Floats  # (n_images, n_dims), ``s`` in the paper
    text_embeddings: Floats  # (n_images, n_text_dims), ``t``; rows of zeros without text
    label_embeddings: Floats  # (n_classes, n_text_dims), ``l``
    web_labels: NDArray[Any]  # (n_images,) or (n_images, n_classes), ``y*``
    labels: csr_array  # (n_images, n_classes), the same as a matrix of ones
    cnn_probs: Any  # (n_images, n_classes), ``p_c``, read by rows; None without a CNN
    graph: csr_array | Neighbors | None  # (n_images, n_images), the user's own
    sources: NDArray[Any] | None  # (n_images,), where each image comes from
    class_names: tuple[str, ...]
    words: Words | None = None
    answers: NDArray[np.intp] | None = None  # (n_images,), what people say; None if nothing
    copies: NDArray[np.intp] | None = None  # (n_images,), a number that copies share
    zero_shot: ZeroShot | None = None  # (n_classes, or unwanted ones too), by pictures alone
    descriptions: Floats | None = None  # (n_classes, n_text_dims), meanings without names
    n_unwanted: int = 0  # how many of the classes, the last ones, are senses that are not meant

    @property
    def single(self) -> bool:
        """Whether an image has one web label only."""
        return self.web_labels.ndim == 1

    def with_words(self) -> "Inputs":
        """Return the inputs with names beside meanings, and unwanted senses as further classes.

        An image whose text has a word for an unwanted sense of its class gets that as its label.
        """
        words = self.words
        if words is None or not self.single:
            return dataclasses.replace(self, words=None)
        meanings = unit_rows(np.concatenate([self.label_embeddings, words.unwanted_embeddings]))
        cnn = self.cnn_probs
        if cnn is not None and len(words.unwanted_of):  # it cannot tell these senses apart
            cnn = Repeated(cnn, np.r_[: len(self.class_names), words.unwanted_of])
        return dataclasses.replace(
            self,
            label_embeddings=meanings + unit_rows(words.name_embeddings),
            descriptions=meanings,
            labels=_with_unwanted(self.web_labels, words),
            cnn_probs=cnn,
            class_names=(*self.class_names, *words.unwanted_names),
            n_unwanted=len(words.unwanted_of),
        )

    @functools.cached_property
    def witnesses(self) -> dict[str, Any]:
        """What speaks of the classes besides graph, text and web label, each read by rows."""
        found = {} if self.cnn_probs is None else {"cnn": self.cnn_probs}
        if self.zero_shot is None:
            return found
        columns, n_columns = np.arange(len(self.class_names)), len(self.zero_shot.prompts)
        if self.words is not None and n_columns < len(columns):  # it cannot tell senses apart
            columns[self.n_wanted :] = self.words.unwanted_of
        return found | {"zero shot": Repeated(self.zero_shot, columns)}

    def heard(self, rows: slice) -> dict[str, Floats]:
        """Return what each of the witnesses says of a block, (n_rows, n_classes)."""
        return {name: as_floats(np.asarray(w[rows])) for name, w in self.witnesses.items()}

    @property
    def n_wanted(self) -> int:
        """How many of the classes are wanted; the others come after them."""
        return len(self.class_names) - self.n_unwanted


def _with_unwanted(web_labels: NDArray[np.intp], words: Words) -> csr_array:
    """Return the labels as a matrix, those of images with a word for an unwanted sense changed."""
    n_wanted, labels = words.names.shape[1] - len(words.unwanted_of), web_labels.copy()
    for column, of_class in reversed(list(enumerate(words.unwanted_of, n_wanted))):
        has_word = np.asarray(words.words[:, [column]].toarray()).ravel()
        labels[has_word & (web_labels == of_class)] = column
    return label_matrix(labels, words.names.shape[1])


def check_inputs(  # noqa: PLR0913
    features: ArrayLike,
    text_embeddings: ArrayLike,
    label_embeddings: ArrayLike,
    web_labels: ArrayLike | csr_array,
    cnn_probs: ArrayLike | TopScores | None = None,
    *,
    graph: csr_array | Neighbors | None = None,
    sources: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    words: Words | None = None,
    answers: ArrayLike | None = None,
    copies: ArrayLike | None = None,
    prompt_embeddings: ArrayLike | None = None,
) -> Inputs:
    """Check that the arrays fit together; the parameters are those of :func:`vsgraph.correct`."""
    visual = check_matrix("features", features, keep_half=True)
    meaning = check_meanings("label_embeddings", label_embeddings)
    text = check_matrix(
        "text_embeddings", text_embeddings, n_rows=len(visual), n_columns=meaning.shape[1],
        nan_rows_are_missing=True, keep_half=True,
    )  # fmt: skip
    shape = (len(visual), len(meaning))
    labels = check_labels("web_labels", web_labels, n_rows=shape[0], n_classes=shape[1])
    single = np.ndim(web_labels) == 1
    if sources is not None:
        sources = check_vector("sources", sources, length=len(visual), dtype=str)
    return Inputs(
        features=visual,
        text_embeddings=text,
        label_embeddings=meaning,
        web_labels=labels.indices.astype(np.intp) if single else labels.toarray().astype(bool),
        labels=labels,
        cnn_probs=None if cnn_probs is None else _check_scores(cnn_probs, shape),
        graph=None if graph is None else _check_graph(graph, n_images=len(visual)),
        sources=sources,
        class_names=check_names(class_names, n_classes=len(meaning)),
        words=None if words is None else _check_words(words, text, len(meaning)),
        answers=None if answers is None else _check_answers(answers, shape, single=single),
        copies=None if copies is None else _check_copies(copies, len(visual)),
        zero_shot=_check_prompts(prompt_embeddings, visual, len(meaning), words),
    )


def check_names(class_names: Sequence[str] | None, *, n_classes: int) -> tuple[str, ...]:
    """Return class names, numbers by default; raise an error if they do not fit or repeat."""
    if isinstance(class_names, str) or not (class_names is None or np.iterable(class_names)):
        raise InputError(f"class_names must be a sequence of names, got {class_names!r}")
    names = tuple(map(str, range(n_classes) if class_names is None else class_names))
    if len(names) != n_classes:
        raise InputError(f"class_names must name {n_classes} classes, got {len(names)}")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        listed = ", ".join(map(repr, repeated[:3]))
        raise InputError(f"class_names must be unique; repeated: {listed}")
    return names


def _check_scores(scores: ArrayLike | TopScores, shape: tuple[int, int]) -> Floats | TopScores:
    """Return scores of a shape, (n_images, n_classes), that can be read by rows."""
    if not isinstance(scores, TopScores):
        return check_probs("cnn_probs", scores, shape=shape, keep_half=True)
    if scores.shape != shape:
        raise InputError(f"cnn_probs must have shape {shape}, got {scores.shape}")
    return scores


def _check_words(words: Words, text: Floats, n_classes: int) -> Words:
    """Return words that fit the texts and classes."""
    n_columns = n_classes + len(words.unwanted_of)
    for name in ("name_embeddings", "unwanted_embeddings"):
        rows = n_columns if name == "name_embeddings" else len(words.unwanted_of)
        shape = getattr(words, name).shape
        if shape != (rows, text.shape[1]):
            raise InputError(f"words.{name} must have shape {(rows, text.shape[1])}, got {shape}")
    for name in ("names", "words"):
        shape = getattr(words, name).shape
        if shape != (len(text), n_columns):
            raise InputError(f"words.{name} must have shape {(len(text), n_columns)}, got {shape}")
    return words


def _check_prompts(
    prompts: ArrayLike | None, features: Floats, n_classes: int, words: Words | None
) -> ZeroShot | None:
    """Compare features with descriptions in their space: of classes, perhaps of unwanted senses."""
    if prompts is None:
        return None
    given = check_meanings("prompt_embeddings", prompts)
    n_columns = n_classes + (len(words.unwanted_of) if words else 0)
    if given.shape not in {(n_classes, features.shape[1]), (n_columns, features.shape[1])}:
        raise InputError(
            f"prompt_embeddings must have shape {(n_classes, features.shape[1])}, from the text "
            f"part of the model that the features come from; got {given.shape}"
        )
    return ZeroShot.of(features, given)


def _check_copies(copies: ArrayLike, n_images: int) -> NDArray[np.intp]:
    """Return the first row of each image's copies."""
    given = np.asarray(copies)
    if given.dtype.kind not in "iu" or given.shape != (n_images,):
        raise InputError(
            f"copies must be ({n_images},) whole numbers, the same for copies of one picture; got "
            f"{given.dtype} {given.shape}"
        )
    _, first, number = np.unique(given, return_index=True, return_inverse=True)
    return first[number]


def _check_answers(
    answers: ArrayLike, shape: tuple[int, int], *, single: bool
) -> NDArray[np.intp] | None:
    """Return what people say of each image; None if nobody has said anything."""
    given = np.asarray(answers)
    if given.dtype.kind not in "iu" or given.shape != shape[:1]:
        raise InputError(
            f"answers must be ({shape[0]},) whole numbers: a class, {NONE} for none of them, "
            f"{UNANSWERED} where nobody was asked; got {given.dtype} {given.shape}"
        )
    bad = (given < UNANSWERED) | (given >= shape[1])
    if bad.any():
        raise InputError(
            f"answers must lie in {UNANSWERED}..{shape[1] - 1}, but do not in {name_rows(bad)}"
        )
    if (given == UNANSWERED).all():
        return None
    if not single:
        raise InputError("answers can be learned from only if images have one web label each")
    return given.astype(np.intp)


def _check_graph(graph: csr_array | Neighbors, *, n_images: int) -> csr_array | Neighbors:
    """Return a graph of the user's own, checked."""
    if not isinstance(graph, Neighbors):
        return adopt_graph(graph, n_images=n_images)
    if len(graph.rows) != n_images:
        raise InputError(f"graph must have {n_images} rows, one per image, got {len(graph.rows)}")
    return graph
