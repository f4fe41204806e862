"""What changed from one result of a crawl to the next: images, texts, labels and decisions."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.crawls.crawl import Crawl
from vsgraph.neighbors.known import match_rows
from vsgraph.result.parts import Decision, Decisions

NEW, GONE, EDITED, CHANGED = KINDS = ("new", "gone", "edited", "changed")
WORDS = {"keep": "kept", "relabel": "relabeled", "reject": "rejected"}
TABLE, CSV = "since.parquet", "since.csv"


class Version(NamedTuple):
    """One result: the crawl, what was decided, and keys of the pictures' content if known."""

    crawl: Crawl
    decisions: Decisions
    keys: NDArray[np.uint8] | None  # (n_images, 16)


@dataclasses.dataclass(frozen=True)
class Since:
    """What changed since an earlier result.

    Attributes
    ----------
    table : pyarrow.Table
        One row per image that is new, gone or edited (another web label, text or picture), or whose
        decision or label changed though it is none of these. `row` is its row in the crawl, -1 if
        it is gone; `image`, `change`, `web_label`; `label_before`, `decision_before`, `label` and
        `decision`, null where there is none.

    Examples
    --------
    >>> columns = dict.fromkeys(("row", "image", "change", "decision"), [])
    >>> print(Since(pa.table(columns)))
    since the last result: 0 images new, 0 gone, 0 edited; 0 others decided otherwise
    """

    table: pa.Table

    def of(self, change: str) -> pa.Table:
        """Return the images of one kind of change."""
        return self.table.filter(pc.equal(self.table["change"].cast(pa.string()), change))

    @property
    def counts(self) -> dict[str, int]:
        """How many images changed in each way."""
        return {kind: len(self.of(kind)) for kind in KINDS}

    def __str__(self) -> str:
        counts = self.counts
        changed = self.of(CHANGED)["decision"].to_pylist()
        listed = [f"{n:,} {WORDS[word]}" for word, n in Counter(changed).most_common()]
        return (
            f"since the last result: {counts[NEW]:,} images new, {counts[GONE]:,} gone, "
            f"{counts[EDITED]:,} edited; {counts[CHANGED]:,} others decided otherwise"
            + (f" ({', '.join(listed)})" if listed else "")
        )

    def save(self, folder: Path) -> None:
        """Write the table for programs and, without row numbers, for people."""
        pq.write_table(self.table, folder / TABLE)
        pyarrow.csv.write_csv(self.table.drop_columns(["row"]), folder / CSV)

    @classmethod
    def load(cls, folder: Path) -> "Since":
        """Read the table again."""
        return cls(pq.read_table(folder / TABLE))


def changed_since(before: Version, now: Version) -> Since:
    """Compare two results; an image is the same if its path in the crawl is.

    Of images that are listed several times, the first is compared with the first, and so on.
    """
    paths = pa.chunked_array(
        [*before.crawl.table["image"].chunks, *now.crawl.table["image"].chunks], pa.string()
    )
    codes = pc.dictionary_encode(paths).combine_chunks().indices.to_numpy().astype(np.uint64)
    places = match_rows(*np.split(codes, [len(before.crawl)]))
    old = np.flatnonzero(places >= 0)
    new = places[old].astype(np.intp)
    edited = _are_edited(before, now, old, new)
    differ = _differ(before, now, old, new)
    is_new = np.ones(len(now.crawl), bool)
    is_new[new] = False
    fresh, gone = np.flatnonzero(is_new), np.flatnonzero(places < 0)
    kinds = {
        NEW: (np.full(len(fresh), -1), fresh),
        GONE: (gone, np.full(len(gone), -1)),
        EDITED: (old[edited], new[edited]),
        CHANGED: (old[differ & ~edited], new[differ & ~edited]),
    }
    parts = [_rows(before, now, kind, *rows) for kind, rows in kinds.items()]
    return Since(pa.concat_tables(parts))


def _rows(
    before: Version, now: Version, kind: str, old: NDArray[np.intp], new: NDArray[np.intp]
) -> pa.Table:
    """Return the rows of one kind of change; a row number of -1 means that there is none."""
    side, rows = (before, old) if kind == GONE else (now, new)
    return pa.table(
        {
            "row": pa.array(new, pa.int64()),
            "image": side.crawl.table["image"].take(pa.array(rows, pa.int64())),
            "change": pa.array([kind] * len(rows), pa.string()),
            "web_label": _names(side.crawl, side.crawl.labels_matrix()[rows]),
            "label_before": _final(before, old),
            "decision_before": _decided(before, old),
            "label": _final(now, new),
            "decision": _decided(now, new),
        }
    )


def _are_edited(
    before: Version, now: Version, old: NDArray[np.intp], new: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return which of the images that both have got another web label, text or picture."""
    labels = [_names(v.crawl, v.crawl.labels_matrix()[rows]).to_numpy(zero_copy_only=False)
              for v, rows in ((before, old), (now, new))]  # fmt: skip
    edited = np.asarray(labels[0] != labels[1], bool)
    for block in row_blocks(len(old), most=2**15):
        texts = zip(before.crawl.texts(old[block]), now.crawl.texts(new[block]), strict=True)
        edited[block] |= np.array([one != other for one, other in texts], bool)
        if before.keys is not None and now.keys is not None:
            edited[block] |= (before.keys[old[block]] != now.keys[new[block]]).any(axis=1)
    return edited


def _differ(
    before: Version, now: Version, old: NDArray[np.intp], new: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return which of the images that both have are decided on otherwise."""
    decided = before.decisions.decisions[old] != now.decisions.decisions[new]
    labels = [part.to_numpy(zero_copy_only=False) for part in
              (_final(before, old), _final(now, new))]  # fmt: skip
    return np.asarray(decided | (labels[0] != labels[1]), bool)


def _names(crawl: Crawl, labels: Any) -> pa.Array:  # noqa: ANN401
    """Return the names in rows of a sparse matrix of labels, joined; null without any."""
    names = pa.array(crawl.class_names, pa.string()).take(pa.array(labels.indices, pa.int64()))
    lists = pa.ListArray.from_arrays(pa.array(labels.indptr, pa.int32()), names)
    joined = pc.binary_join(lists, "|")
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), joined)


def _final(version: Version, rows: NDArray[np.intp]) -> pa.Array:
    """Return the names of final labels; null where an image is rejected or not there."""
    labels = version.decisions.final_labels
    if labels.ndim == 1:
        given = np.where(rows < 0, -1, labels[rows]) if len(labels) else rows
        names = pa.array(version.crawl.class_names, pa.string())
        return names.take(pa.array(given.astype(np.int64), mask=given < 0))
    return _names(version.crawl, csr_array(labels[rows] & (rows >= 0)[:, None]))


def _decided(version: Version, rows: NDArray[np.intp]) -> pa.Array:
    """Return the names of decisions; null where an image is not there."""
    names = pa.array([decision.name.lower() for decision in Decision])
    codes = version.decisions.decisions[rows].astype(np.int64)
    return names.take(pa.array(codes, mask=rows < 0))
