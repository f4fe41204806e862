"""One export: which images it writes, and what it says of each."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.common.progress import bar
from vsgraph.crawls.crawl import OTHERS, Crawl
from vsgraph.exports.names import free_names
from vsgraph.exports.selection import Split
from vsgraph.exports.targets import Exported
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision
from vsgraph.screening.screened import Screening

BLOCK_ROWS = 4096
DIGITS = 6  # of a confidence


class Entry(NamedTuple):
    """One image of an export."""

    row: int  # in the crawl
    image: str  # its path, as the crawl gives it
    classes: list[int]  # the numbers of its final labels; none if it is rejected
    columns: dict[str, Any]  # those of Job.decided, without the image
    text: dict[str, str]  # by field; '' if it has none
    others: dict[str, str | None]  # the columns of the crawl that are only passed on

    @property
    def part(self) -> str:
        """The part of the split that it belongs to; '' without a split."""
        return self.columns.get("split", "")


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """What a writer is given: the images to write, what is known of each, and where to write."""

    crawl: Crawl
    correction: Correction  # of the same images, row by row
    exported: Exported  # what is reported to the user
    path: Path  # the unfinished file or folder; it is renamed when the writer returns
    rows: NDArray[np.intp]  # (n_selected,), in order
    progress: bool = False  # whether to show a bar
    split: Split | None = None  # which part each image belongs to
    screening: Screening | None = None  # copies and flawed pictures, if they were looked for

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that the images are divided into; none without a split."""
        return self.split.names if self.split else ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.crawl.class_names

    @property
    def several(self) -> bool:
        """Whether an image may have several labels."""
        return self.crawl.has_several_labels

    def from_crawl(self, entry: Entry, *, taken: Iterable[str]) -> dict[str, str]:
        """Return the text and the other columns of an image that are filled, by free names."""
        values = {name: value for name, value in (entry.text | entry.others).items() if value}
        free = free_names([*entry.text, *entry.others], taken=[*self.decided_columns, *taken])
        return {free[name]: value for name, value in values.items()}

    def leave_out(self, row: int, reason: str, detail: str = "") -> None:
        """Count an image that cannot be written."""
        self.exported.n_images -= 1
        self.exported.problems.add(reason, f"row {row}", detail)

    def blocks(self, *, most: int = BLOCK_ROWS) -> Iterator[NDArray[np.intp]]:
        """Yield the rows to write, a block at a time, with a bar on a terminal."""
        blocks = row_blocks(len(self.rows), row_bytes=len(self.class_names), most=most)
        with bar(len(self.rows), self.exported.to, " images", progress=self.progress) as images:
            for block in blocks:
                yield self.rows[block]
                images.update(block.stop - block.start)

    def table(self, rows: NDArray[np.intp]) -> pa.Table:
        """Return rows of the corrected table: what was decided, then all columns of the crawl."""
        decided = self.decided(rows)
        columns = {name: self.column(name, rows) for name in self.crawl.text_fields}
        columns |= self.others(rows)
        names = free_names(columns, taken=decided.column_names)
        for name, column in columns.items():
            decided = decided.append_column(names[name], column)
        return decided

    def decided(self, rows: NDArray[np.intp]) -> pa.Table:
        """Return what was decided on rows; the final label of a rejected image is null or []."""
        correction = self.correction
        columns = {
            "image": self.column("image", rows),
            "web_label": self._label_names(correction.web_labels[rows]),
            "final_label": self._label_names(correction.final_labels[rows]),
            "decision": _words([d.name.lower() for d in Decision], correction.decisions[rows]),
            "confidence": pa.array(correction.confidence[rows].astype(np.float64).round(DIGITS)),
            "why": pa.array(map(correction.reason, rows.tolist()), pa.string()),
            "anchor": pa.array(np.isin(rows, correction.anchors.rows)),
            "quality": pa.array(correction.label_quality[rows].astype(np.float64).round(DIGITS)),
        }
        if self.screening is not None:
            columns |= self._screened(self.screening, rows)
        if self.split is not None:
            columns["split"] = _words(list(self.parts), self.split.numbers[rows])
        if "source" in self.crawl.table.column_names:
            columns["source"] = self.column("source", rows)
        return pa.table(columns)

    def _screened(self, screening: Screening, rows: NDArray[np.intp]) -> dict[str, pa.Array]:
        """Return the columns on copies and flaws."""
        alone, best = screening.sizes[rows] < 2, screening.best[rows]
        others = self._copied_labels
        lists = [others.indices[others.indptr[r] : others.indptr[r + 1]].tolist() for r in rows]
        labels = ["|".join(self.class_names[c] for c in found) or None for found in lists]
        return {
            "copy_group": pa.array(screening.groups[rows], mask=alone),
            "copy_of": self.crawl.table["image"].take(pa.array(best, mask=alone | (best == rows))),
            "copy_labels": pa.array(labels, pa.string()),
            "flaws": pa.array([word or None for word in screening.words(rows)], pa.string()),
        }

    @functools.cached_property
    def _copied_labels(self) -> csr_array:
        """Web labels of each image's copies that it does not have, (n_images, n_classes)."""
        labels = self.crawl.labels_matrix()
        if self.screening is None or not len(self.rows):
            return csr_array(labels.shape, dtype=bool)
        together = self.screening.label_counts(labels)[self.screening.groups].astype(bool)
        return csr_array(together > labels.astype(bool))

    def empty_table(self) -> pa.Table:
        """Return the corrected table without rows, for its schema."""
        return self.table(np.zeros(0, np.intp))

    @functools.cached_property
    def decided_columns(self) -> list[str]:
        """Names of the columns that say what was decided."""
        return self.decided(np.zeros(0, np.intp)).column_names

    def column(self, name: str, rows: NDArray[np.intp]) -> pa.ChunkedArray:
        """Return rows of a column of the crawl as strings."""
        return self._taken(name, rows).cast(pa.string())

    def others(self, rows: NDArray[np.intp]) -> dict[str, pa.ChunkedArray]:
        """Return rows of the crawl's columns that are only passed on."""
        if not self.crawl.other_columns:
            return {}
        packed = self._taken(OTHERS, rows)
        return {name: pc.struct_field(packed, name) for name in self.crawl.other_columns}

    def _taken(self, name: str, rows: NDArray[np.intp]) -> pa.ChunkedArray:
        """Return rows, in order, of a column of the crawl."""
        first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        nearby = self.crawl.table[name].slice(first, end - first)  # no copy of the whole column
        return nearby.take(pa.array(rows - first))

    def _label_names(self, labels: NDArray[Any]) -> pa.Array:
        """Return labels of either shape as names: one per image, or a list."""
        names = pa.array(self.class_names, pa.string())
        if labels.ndim == 1:
            return names.take(pa.array(labels.astype(np.int64), mask=labels < 0))
        starts = np.concatenate([[0], np.cumsum(labels.sum(axis=1))]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), names.take(pa.array(labels.nonzero()[1])))

    def entries(self, rows: NDArray[np.intp]) -> list[Entry]:
        """Return the images of a block, one by one."""
        columns = self.decided(rows).to_pylist()
        fields = self.crawl.text_fields
        texts = [self.column(name, rows).to_pylist() for name in fields]
        others = {name: column.to_pylist() for name, column in self.others(rows).items()}
        labels = self.correction.final_labels[rows]
        return [
            Entry(
                row=int(row),
                image=columns[i].pop("image"),
                classes=_class_numbers(labels[i]),
                columns=columns[i],
                text={name: text[i] or "" for name, text in zip(fields, texts, strict=True)},
                others={name: values[i] for name, values in others.items()},
            )
            for i, row in enumerate(rows)
        ]


def _words(words: list[str], codes: NDArray[Any]) -> pa.Array:
    """Return a word for each code."""
    return pa.array(words).take(pa.array(codes.astype(np.int64)))


def _class_numbers(labels: Any) -> list[int]:  # noqa: ANN401
    """Return the class numbers of one image's labels, of either shape.

    >>> [_class_numbers(x) for x in (np.int64(3), np.int64(-1), np.array([True, False, True]))]
    [[3], [], [0, 2]]
    """
    if np.ndim(labels):
        return np.flatnonzero(labels).tolist()
    return [int(labels)] if labels >= 0 else []
