"""A result of a run as the pages read it: rows by class, labels, texts."""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vsgraph.common.checks import Floats, label_matrix
from vsgraph.meanings.senses import Meaning
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.runs import Run
from vsgraph.screening import Screening

MOST_KEPT = 48  # boards in memory


def label_names(labels: Any, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ANN401
    """Return the names of one image's labels: a number, -1 for none, or a row of booleans."""
    classes = np.flatnonzero(labels) if np.ndim(labels) else [labels] if labels >= 0 else []
    return tuple(names[int(c)] for c in classes)


class Columns:
    """The rows of each class, from labels of either shape."""

    def __init__(self, labels: NDArray[Any], n_classes: int) -> None:
        if labels.ndim == 1:  # a stable sort is much quicker than a sparse matrix
            order = np.argsort(labels, kind="stable")
            starts = np.searchsorted(labels[order], np.arange(n_classes + 1))
            self._rows, self._starts = order, starts
        else:
            table = label_matrix(labels, n_classes).tocsc()
            table.sort_indices()
            self._rows, self._starts = table.indices, table.indptr

    def rows(self, number: int) -> Rows:
        """Return the rows of a class, in ascending order."""
        part = slice(self._starts[number], self._starts[number + 1])
        return np.asarray(self._rows[part], np.intp)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of rows of each class."""
        return np.diff(self._starts)


class View:
    """One result of a run; nothing in it changes."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.crawl = run.crawl
        self.correction: Correction = run.found  # answers are shown beside it
        self.names = self.correction.class_names
        self.several = self.correction.web_labels.ndim == 2
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.correction)

    @property
    def version(self) -> str:
        """Changes when row numbers may mean other images."""
        return self.run.keys["crawl"]

    @property
    def solution(self) -> str:
        """Changes with every new solution."""
        return self.run.keys["decisions"]

    @functools.cached_property
    def web(self) -> Columns:
        """The rows of each web label."""
        return Columns(self.correction.web_labels, len(self.names))

    @functools.cached_property
    def final(self) -> Columns:
        """The rows of each final label."""
        return Columns(self.correction.final_labels, len(self.names))

    @functools.cached_property
    def confidence(self) -> Floats:
        """The probability of each final label."""
        return self.correction.confidence

    @functools.cached_property
    def quality(self) -> Floats:
        """The probability of each web label."""
        return self.correction.label_quality

    @functools.cached_property
    def noise(self) -> Floats:
        """Estimated share of wrong web labels of each class, or else of those that did not stay."""
        if self.correction.estimate is not None:
            return 1 - self.correction.class_shares()[0]
        found = np.maximum(self.web.sizes, 1)
        changed = self.correction.decisions != Decision.KEEP
        matrix = label_matrix(self.correction.web_labels, len(self.names), np.float64)
        return np.asarray(matrix.T @ changed.astype(np.float64)).ravel() / found

    @functools.cached_property
    def by_noise(self) -> NDArray[np.intp]:
        """The classes that have images, the noisiest first."""
        order = np.argsort(-self.noise, kind="stable")
        return order[self.web.sizes[order] > 0]

    @functools.cached_property
    def decided(self) -> NDArray[np.intp]:
        """How many images of each class were kept, relabeled, rejected, (n_classes, 3)."""
        matrix = label_matrix(self.correction.web_labels, len(self.names), np.float64).T
        counts = [matrix @ (self.correction.decisions == d).astype(np.float64) for d in Decision]
        return np.column_stack([np.asarray(column).ravel() for column in counts]).astype(np.intp)

    @functools.cached_property
    def screening(self) -> Screening | None:
        """Copies and flawed pictures, if the run looked for them."""
        return self.run.screening

    @functools.cached_property
    def meanings(self) -> dict[str, Meaning]:
        """The meaning of each class, if the run has any."""
        if "meanings" not in self.run.keys:
            return {}
        return {meaning.class_name: meaning for meaning in self.run.meanings}

    @functools.cached_property
    def sources(self) -> tuple[list[str], NDArray[np.intp]] | None:
        """The names of the sources, and the number of each image's; None if there are none."""
        if self.crawl.sources is None:
            return None
        column = self.crawl.table["source"].combine_chunks()
        chunk = column if isinstance(column, pa.Array) else column.chunk(0)
        coded = pc.dictionary_encode(pc.fill_null(chunk, ""))
        return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.intp)

    def with_words(self, rows: Rows, words: str) -> Rows:
        """Return those of some rows whose text has some words, in any case."""
        fields = [self.crawl.table[name] for name in self.crawl.text_fields]
        if not fields:
            return rows[:0]
        taken = pa.array(rows, pa.int64())
        hits = np.zeros(len(rows), bool)
        for field in fields:
            part = field if len(rows) == len(self) else field.take(taken)
            found = pc.match_substring(part, words, ignore_case=True)
            hits |= np.asarray(pc.fill_null(found, fill_value=False))
        return rows[hits]

    def web_names(self, row: int) -> tuple[str, ...]:
        """Return the web labels of an image."""
        return label_names(self.correction.web_labels[row], self.names)

    def final_names(self, row: int) -> tuple[str, ...]:
        """Return the final labels of an image."""
        return label_names(self.correction.final_labels[row], self.names)

    def keep(self, key: object, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return what was made for a key; only the latest results are kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return made
