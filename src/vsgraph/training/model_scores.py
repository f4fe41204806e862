"""A trained model judged on images of known classes, with the paper's measures."""

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vsgraph.common.formatting import percent
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.judge.counts import ClassCounts
from vsgraph.judge.metrics import THRESHOLD, TOP, accuracy, f1_at_top, macro_map, open_set


def judge_scores(scores: Any, truth: Any, *, several: bool) -> dict[str, float]:  # noqa: ANN401
    """Return the paper's measures: top-1 and top-5, or mAP, C-F1 and O-F1 at three classes.

    Top-5 is left out if there are no more than five classes.

    >>> judge_scores(np.eye(6), np.arange(6), several=False)
    {'top_1': 1.0, 'top_5': 1.0}
    """
    if not several:
        shares = accuracy(scores, truth)
        few = np.shape(scores)[1] <= 5
        return {"top_1": shares.top_1} | ({} if few else {"top_5": shares.top_5})
    counts = f1_at_top(scores, truth)
    return {"mAP": macro_map(scores, truth), "C-F1": counts.c_f1, "O-F1": counts.o_f1}


def truth_for(model: Checkpoint, crawl: Crawl, *, with_unknown: bool = False) -> csr_array:
    """Return what images show, in the classes of a model.

    Classes are matched by name, and the truth is the crawl's, or its labels if it has none. With
    `with_unknown`, images of other classes are accepted: they show none of the model's classes.
    """
    places = {name: i for i, name in enumerate(model.class_names)}
    unknown = [name for name in crawl.class_names if name not in places]
    if unknown and not with_unknown:
        raise InputError(
            f"the model does not know {len(unknown)} of the {len(crawl.class_names)} classes, such "
            f"as {', '.join(map(repr, unknown[:3]))}; test it on its own classes, or pass "
            "with_unknown=True (--open-set) to count them as none of its classes"
        )
    shown = (crawl.labels_matrix() if crawl.truth is None else crawl.truth).tocoo()
    columns = np.array([places.get(name, -1) for name in crawl.class_names])[shown.col]
    known = columns >= 0
    cells = (np.ones(known.sum(), bool), (shown.row[known], columns[known]))
    return csr_array(cells, shape=(len(crawl), len(places)))


@dataclasses.dataclass(frozen=True)
class Tested:
    """The result of a test."""

    measures: dict[str, float]  # top-1 and top-5, or mAP, C-F1, O-F1; for an open set also C-P ...
    classes: ClassCounts  # of the likeliest class, or of the three likeliest if there are several
    class_names: tuple[str, ...]  # the model's
    n_images: int  # those that were judged
    n_unreadable: int

    def __str__(self) -> str:
        lines = [f"{name:<24} {percent(value)}" for name, value in self.measures.items()]
        unreadable = f", {self.n_unreadable:,} unreadable left out" if self.n_unreadable else ""
        return "\n".join([f"{self.n_images:,} images{unreadable}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        by_class = self.classes
        columns = {
            "true": by_class.n_true, "given": by_class.n_given, "right": by_class.n_right,
            "precision": by_class.precision, "recall": by_class.recall, "F1": by_class.f1,
        }  # fmt: skip
        return {
            "images": self.n_images,
            "unreadable": self.n_unreadable,
            **self.measures,
            "classes": [
                {"class": name, **{key: float(values[i]) for key, values in columns.items()}}
                for i, name in enumerate(self.class_names)
            ],
        }


def judge_model(
    model: Checkpoint,
    scores: Any,  # noqa: ANN401
    crawl: Crawl,
    *,
    with_unknown: bool = False,
    threshold: float = THRESHOLD,
) -> Tested:
    """Judge a model's probabilities, (n_images, n_classes), for images of known classes.

    Images whose truth is unknown are left out. With `with_unknown`, an open set, images of other
    classes should get no label: no probability above `threshold`, 0.2 in the paper.
    """
    known = crawl.judgeable()
    readable = known[np.asarray(scores)[known].any(axis=1)]
    n_unreadable = len(known) - len(readable)
    crawl, scores = crawl.take(readable), np.asarray(scores)[readable]
    truth = truth_for(model, crawl, with_unknown=with_unknown)
    several = crawl.has_several_labels
    measures = judge_scores(scores, truth, several=several)
    if with_unknown:
        for reading in ("highest", "every"):
            by_class = open_set(scores, truth, reading=reading, threshold=threshold)
            measures |= {
                f"C-P ({reading})": by_class.c_p,
                f"C-R ({reading})": by_class.c_r,
                f"C-F1 ({reading})": by_class.c_f1,
            }
    counts = f1_at_top(scores, truth, k=TOP if several else 1)
    return Tested(measures, counts, model.class_names, len(crawl), n_unreadable)
