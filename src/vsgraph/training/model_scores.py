"""A trained model judged on images of known classes, by the paper's measures."""

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vsgraph.common.formatting import markdown_table, percent
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.judge.counts import ClassCounts
from vsgraph.judge.metrics import THRESHOLD, TOP, accuracy, f1_at_top, macro_map, open_set


def judge_scores(scores: Any, truth: Any, *, several: bool) -> dict[str, float]:  # noqa: ANN401
    """Return the paper's measures: top-1 and top-5, or mAP, C-F1 and O-F1 at three classes.

    Of five classes or fewer every one is among the top five, so that is left out.

    >>> judge_scores(np.eye(6), np.arange(6), several=False)
    {'top_1': 1.0, 'top_5': 1.0}
    """
    if not several:
        found = accuracy(scores, truth)
        few = np.shape(scores)[1] <= 5
        return {"top_1": found.top_1} | ({} if few else {"top_5": found.top_5})
    counts = f1_at_top(scores, truth)
    return {"mAP": macro_map(scores, truth), "C-F1": counts.c_f1, "O-F1": counts.o_f1}


def truth_for(model: Checkpoint, crawl: Crawl, *, with_unknown: bool = False) -> csr_array:
    """Return what images show, in the classes of a model.

    Parameters
    ----------
    model : Checkpoint
        Whose classes are meant; found by name.
    crawl : Crawl
        Images of known classes: its truth where it says one, else its labels.
    with_unknown : bool
        Take images of classes that the model does not know as showing none of its classes, instead
        of refusing them.
    """
    places = {name: i for i, name in enumerate(model.class_names)}
    unknown = [name for name in crawl.class_names if name not in places]
    if unknown and not with_unknown:
        raise InputError(
            f"the model does not know {len(unknown)} of the {len(crawl.class_names)} classes, as "
            f"{', '.join(map(repr, unknown[:3]))}; test it on its own classes, or say --open-set "
            "to take them as none of its classes"
        )
    shown = crawl.labels_matrix() if crawl.truth is None else crawl.truth
    known = [i for i, name in enumerate(crawl.class_names) if name in places]
    columns = [places[crawl.class_names[i]] for i in known]
    moved = csr_array(
        (np.ones(len(known), bool), (known, columns)),
        shape=(len(crawl.class_names), len(places)),
    )
    return csr_array(shown.astype(np.int64) @ moved.astype(np.int64)).astype(bool)


@dataclasses.dataclass(frozen=True)
class Tested:
    """What a test found.

    Attributes
    ----------
    measures : dict of str to float
        By name: top-1 and top-5, or mAP, C-F1 and O-F1; of an open set, C-P, C-R and C-F1 in both
        readings.
    classes : ClassCounts
        Of the likeliest class of each image, or of the three likeliest where it may have several.
    class_names : tuple of str
        Of the model.
    n_images, n_unreadable : int
        How many were judged, and how many could not be read.
    """

    measures: dict[str, float]
    classes: ClassCounts
    class_names: tuple[str, ...]
    n_images: int
    n_unreadable: int

    def __str__(self) -> str:
        told = "\n".join(f"{name:<24} {percent(value)}" for name, value in self.measures.items())
        left = f", {self.n_unreadable:,} unreadable left out" if self.n_unreadable else ""
        return f"{self.n_images:,} images{left}\n{told}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        names = ("true", "given", "right", "precision", "recall", "F1")
        return {
            "images": self.n_images,
            "unreadable": self.n_unreadable,
            **self.measures,
            "classes": [
                {"class": name, **dict(zip(names, map(float, line), strict=True))}
                for name, line in zip(self.class_names, self._lines(), strict=True)
            ],
        }

    def _lines(self) -> Any:  # noqa: ANN401
        made = self.classes
        return np.column_stack(
            [made.n_true, made.n_given, made.n_right, made.precision, made.recall, made.f1]
        )

    def to_markdown(self) -> str:
        """Return a page: the measures, then a line a class, the worst first."""
        order = np.argsort(self.classes.f1, kind="stable")
        lines = self._lines()
        rows = [
            [self.class_names[i], *map(int, lines[i, :3]), *map(percent, lines[i, 3:])]
            for i in order
        ]
        head = ["class", "true", "given", "right", "precision", "recall", "F1"]
        short = markdown_table(
            ["measure", "value"], [[n, percent(v)] for n, v in self.measures.items()]
        )
        title = f"# Test, {self.n_images:,} images"
        return f"{title}\n\n{short}\n\n## Classes\n\n{markdown_table(head, rows)}\n"


def judge_model(
    model: Checkpoint,
    scores: Any,  # noqa: ANN401
    crawl: Crawl,
    *,
    with_unknown: bool = False,
    threshold: float = THRESHOLD,
) -> Tested:
    """Judge a model's probabilities for images of known classes.

    Parameters
    ----------
    model : Checkpoint
        What gave the probabilities.
    scores : array of shape (n_images, n_classes)
        The probabilities.
    crawl : Crawl
        The images; those whose truth is unknown are left out.
    with_unknown : bool
        An open set: images of other classes should get no label.
    threshold : float
        Of an open set; 0.2 in the paper.
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
            found = open_set(scores, truth, reading=reading, threshold=threshold)
            measures |= {
                f"C-P ({reading})": found.c_p,
                f"C-R ({reading})": found.c_r,
                f"C-F1 ({reading})": found.c_f1,
            }
    counts = f1_at_top(scores, truth, k=TOP if several else 1)
    return Tested(measures, counts, model.class_names, len(crawl), n_unreadable)
