"""A crawl and its correction side by side, a block of rows at a time."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import name_rows
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision, Rule

ROWS = 4096
DIGITS = 6
SEVERAL = "csv, parquet, soft, hf, webdataset, coco, fiftyone, labelstudio and cleanlab"


@dataclasses.dataclass(frozen=True)
class Row:
    """One image: what the crawl says of it and what became of it.

    Attributes
    ----------
    row : int
        Its row in the crawl.
    image : str
        Where it lies, as the crawl says.
    classes : list of int
        Numbers of its final labels; none if it is rejected.
    values : dict
        The columns of :meth:`Corrected.table` but the image.
    text : dict of str to str
        Its text by field; '' where there is none.
    """

    row: int
    image: str
    classes: list[int]
    values: dict[str, Any]
    text: dict[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Corrected:
    """A crawl and its correction, row by row the same images."""

    crawl: Crawl
    correction: Correction

    @classmethod
    def join(cls, crawl: Crawl, correction: Correction) -> Self:
        """Put both together; refuse a correction of another crawl."""
        if len(crawl) != len(correction):
            raise InputError(
                f"the crawl has {len(crawl)} images and the correction {len(correction)}; "
                "give the crawl that the correction was made from"
            )
        numbers = tuple(map(str, range(len(crawl.class_names))))
        if correction.class_names not in {crawl.class_names, numbers}:
            raise InputError(
                "the classes of the crawl and of the correction differ; "
                "give the crawl that the correction was made from"
            )
        joined = cls(crawl, correction)
        joined._refuse_other_labels()
        return joined

    def _refuse_other_labels(self) -> None:
        """Refuse rows in another order, which shows in the web labels."""
        if self.crawl.has_several_labels != self.several:
            raise InputError("only one of crawl and correction has several labels an image")
        web, ours = self.crawl.web_labels, self.correction.web_labels
        differ = np.zeros(len(self.crawl), bool)
        for rows in row_blocks(len(self.crawl), row_bytes=len(self.names)):
            block = web[rows].toarray() if self.several else web[rows]
            unlike = np.asarray(block != ours[rows])
            differ[rows] = unlike.any(axis=1) if self.several else unlike
        if differ.any():
            raise InputError(
                f"the web labels of crawl and correction differ in {name_rows(differ)}; "
                "give the crawl that the correction was made from"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.crawl.class_names

    @property
    def several(self) -> bool:
        """Whether an image may have several labels."""
        return bool(self.correction.web_labels.ndim == 2)

    def refuse_several(self, to: str) -> None:
        """Refuse several labels an image where the format has room for one."""
        if self.several:
            raise InputError(f"{to} has room for one label an image; {SEVERAL} take several")

    @functools.cached_property
    def is_anchor(self) -> NDArray[np.bool_]:
        """Whether each image is an anchor."""
        anchors = np.zeros(len(self.crawl), bool)
        anchors[self.correction.anchors.rows] = True
        return anchors

    @functools.cached_property
    def rejected(self) -> NDArray[np.bool_]:
        """Whether each image is rejected."""
        return np.asarray(self.correction.decisions == Decision.REJECT)

    def blocks(self, *, title: str, progress: bool, most: int = ROWS) -> Iterator[slice]:
        """Yield blocks of rows, with a bar on a terminal."""
        hidden = None if progress else True
        with tqdm(
            total=len(self.crawl), desc=title, disable=hidden, leave=False, unit=" images"
        ) as bar:
            for rows in row_blocks(len(self.crawl), row_bytes=len(self.names), most=most):
                yield rows
                bar.update(rows.stop - rows.start)

    def table(self, rows: slice) -> pa.Table:
        """Return rows of the corrected table; a label is null, or a list empty, if rejected."""
        made = self.correction
        columns = {
            "image": self.column("image", rows),
            "web_label": self._labels(made.web_labels[rows]),
            "final_label": self._labels(made.final_labels[rows]),
            "decision": _words([d.name.lower() for d in Decision], made.decisions[rows]),
            "confidence": pa.array(made.confidence[rows].astype(np.float64).round(DIGITS)),
            "why": _words([rule.sentence for rule in Rule], made.rules[rows]),
            "anchor": pa.array(self.is_anchor[rows]),
        }
        if "source" in self.crawl.table.column_names:
            columns["source"] = self.column("source", rows)
        return pa.table(columns)

    def column(self, name: str, rows: slice) -> pa.ChunkedArray:
        """Return rows of a column of the crawl as strings."""
        return self.crawl.table[name].slice(rows.start, rows.stop - rows.start).cast(pa.string())

    def _labels(self, labels: NDArray[Any]) -> pa.Array:
        """Return the names of labels of either shape."""
        names = pa.array(self.names, pa.string())
        if labels.ndim == 1:
            return names.take(pa.array(labels.astype(np.int64), mask=labels < 0))
        starts = np.concatenate([[0], np.cumsum(labels.sum(axis=1))]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), names.take(pa.array(labels.nonzero()[1])))

    def rows(self, rows: slice, *, rejected: bool) -> list[Row]:
        """Return the images of a block, the rejected ones only if asked for."""
        values = self.table(rows).to_pylist()
        texts = [self.column(name, rows).to_pylist() for name in self.crawl.text_fields]
        final = self.correction.final_labels[rows]
        return [
            Row(
                row=row,
                image=values[i].pop("image"),
                classes=_classes(final[i]),
                values=values[i],
                text={
                    name: column[i] or ""
                    for name, column in zip(self.crawl.text_fields, texts, strict=True)
                },
            )
            for i, row in enumerate(range(rows.start, rows.stop))
            if rejected or not self.rejected[row]
        ]


def _words(words: list[str], codes: NDArray[Any]) -> pa.Array:
    """Return a word for each code."""
    return pa.array(words).take(pa.array(codes.astype(np.int64)))


def _classes(labels: Any) -> list[int]:  # noqa: ANN401
    """Return the class numbers of one image's labels, of either shape.

    >>> _classes(np.int64(3)), _classes(np.int64(-1)), _classes(np.array([True, False, True]))
    ([3], [], [0, 2])
    """
    if np.ndim(labels):
        return [int(c) for c in np.flatnonzero(labels)]
    return [int(labels)] if labels >= 0 else []
