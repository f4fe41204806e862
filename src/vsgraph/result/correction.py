"""The result of a correction: a record that explains itself, saves, loads and becomes a table."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, check_number, filled_rows
from vsgraph.common.files import load_record, save_record
from vsgraph.errors import InputError, MissingExtraError
from vsgraph.result.explanation import Explanation, Link, two_steps
from vsgraph.result.parts import Anchors, Decision, Rule
from vsgraph.result.scores import PARTS as SCORE_PARTS
from vsgraph.result.scores import TopScores, label_quality
from vsgraph.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclasses.dataclass(frozen=True, eq=False)
class Correction:
    """Everything a correction found out.

    Attributes
    ----------
    class_names : tuple of str
        Names of the classes, in the order of the columns.
    web_labels, final_labels : int array of shape (n_images,) or bool (n_images, n_classes)
        Before and after; a rejected image has -1, or no True.
    decisions, rules : uint8 array of shape (n_images,)
        :class:`Decision` and :class:`Rule` of each image.
    final_probs : TopScores of shape (n_images, n_classes)
        What the decisions were made on: ``p_f`` of Eq. 8, or the weighed evidence.
    gnn_probs, cnn_probs : TopScores of shape (n_images, n_classes)
        ``p_g`` and ``p_c`` in the paper; `cnn_probs` is None if there was no CNN.
    text_factor : TopScores of shape (n_images, n_classes) or None
        How much each image's text raises or lowers each class; None in the paper's fusion.
    confusion : float array of shape (n_classes, n_classes) or None
        Estimated share of each web label among the images of each class.
    evidence_weights : dict of str to float
        How far each witness was believed; empty in the paper's fusion.
    text_match : csr_array of shape (n_images, n_classes)
        Cosine of smoothed text and meaning at each web label.
    anchors : Anchors
        What the graph network learned from.
    adjacency : csr_array of shape (n_images, n_images)
        The visual graph.
    graph_recall : float
        Share of the true neighbors in it, measured; NaN for a graph of the user's own.
    settings : Settings
        The numbers used.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> made = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, class_names=["bat", "owl"],
    ...                        settings=Settings(n_neighbors=2, anchors_per_class=2))
    >>> made.counts, made.to_columns()["final_label"][:2]
    ({'keep': 8, 'relabel': 0, 'reject': 0}, ['bat', 'owl'])
    """

    class_names: tuple[str, ...]
    web_labels: NDArray[Any]
    final_labels: NDArray[Any]
    decisions: NDArray[np.uint8]
    rules: NDArray[np.uint8]
    final_probs: TopScores
    gnn_probs: TopScores
    cnn_probs: TopScores | None
    text_factor: TopScores | None
    confusion: Floats | None
    evidence_weights: dict[str, float]
    text_match: csr_array
    anchors: Anchors
    adjacency: csr_array
    graph_recall: float
    settings: Settings

    def __len__(self) -> int:
        return len(self.web_labels)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"Correction({len(self)} images, {len(self.class_names)} classes: {counts})"

    @property
    def counts(self) -> dict[str, int]:
        """How many images are kept, relabeled and rejected."""
        return {d.name.lower(): int((self.decisions == d).sum()) for d in Decision}

    def counts_with(self, features: NDArray[Any]) -> dict[str, int]:
        """Count as :attr:`counts`, but apart those kept whose picture could not be read.

        Parameters
        ----------
        features : array of shape (n_images, d)
            What was corrected; a row of zeros is a picture that could not be read.

        Returns
        -------
        counts : dict of str to int
            `keep`, `relabel`, `reject` and `unreadable`, which add up to all images.
        """
        kept = self.decisions == Decision.KEEP
        blocks = row_blocks(len(self), row_bytes=features.itemsize * features[:1].size)
        lost = sum(int((kept[b] & ~filled_rows(features[b])).sum()) for b in blocks)
        counts = self.counts
        return counts | {"keep": counts["keep"] - lost, "unreadable": lost}

    @functools.cached_property
    def confidence(self) -> Floats:
        """Probability of each image's final label; of several, the least; rejected, the highest."""
        labels = self.final_labels
        highest = self.final_probs.max(axis=1)
        if labels.ndim == 2:
            blocks = row_blocks(len(self), row_bytes=8 * labels.shape[1])
            least = [np.where(labels[b], self.final_probs[b], 1).min(axis=1) for b in blocks]
            return np.where(labels.any(axis=1), np.concatenate(least), highest)
        return np.where(labels < 0, highest, self.final_probs.at(np.maximum(labels, 0)))

    @functools.cached_property
    def label_quality(self) -> Floats:
        """How far each image's web label can be believed, 0 to 1; of several, the least.

        Low where it is probably wrong, one half where it could not be judged, one where there is
        no web label.
        """
        web = self.web_labels

        def lowest(rows: slice) -> Floats:
            quality = label_quality(self.final_probs[rows], self.gnn_probs[rows])
            if web.ndim == 1:
                return quality[np.arange(len(quality)), web[rows]]
            return np.where(web[rows], quality, 1).min(axis=1)

        blocks = row_blocks(len(self), row_bytes=32 * len(self.class_names))
        quality = np.concatenate([lowest(rows) for rows in blocks])
        return np.where(self.rules == Rule.NOT_JUDGED, 0.5, quality)

    def soft_labels(self) -> TopScores:
        """Return labels to fine-tune a network on (Eq. 9), zero for rejected images.

        Single-label: rows that sum to one. Multi-label: the probabilities as they are. An image
        that could not be judged has its web labels; one whose label was kept for want of a surer
        one stays as unsure as it is.
        """
        soft = self.final_probs
        if self.web_labels.ndim == 1:
            soft = soft.scaled(1 / np.where(soft.total > 0, soft.total, 1))
        soft = soft.scaled((self.decisions != Decision.REJECT).astype(np.float32))
        rows = np.flatnonzero(self.rules == Rule.NOT_JUDGED)
        return soft.replaced(rows, self._web_scores(rows))

    def _web_scores(self, rows: NDArray[np.intp]) -> Floats:
        """Return the web labels of some rows as scores of one."""
        web = self.web_labels[rows]
        return web.astype(np.float32) if web.ndim == 2 else np.eye(len(self.class_names))[web]

    def explain(self, row: int, *, n_shown: int = 5) -> Explanation:
        """Say why image `row` got its label.

        Parameters
        ----------
        row : int
            The image.
        n_shown : int
            Classes, neighbors and anchors to list.

        Returns
        -------
        explanation : Explanation
            Print it, or read its fields.
        """
        row = int(check_number("row", row, int))
        if not 0 <= row < len(self):
            raise InputError(f"row must lie in 0..{len(self) - 1}, got {row}")
        match = csr_array(self.text_match[[row]])
        names = [self.class_names[c] for c in match.indices]
        return Explanation(
            row=row,
            web_labels=self._names(self.web_labels[row]),
            final_labels=self._names(self.final_labels[row]),
            decision=Decision(self.decisions[row]).name.lower(),
            reason=Rule(self.rules[row]).sentence,
            text_match=dict(zip(names, match.data.tolist(), strict=True)),
            gnn=self._top(self.gnn_probs, row, n_shown),
            cnn=self._top(self.cnn_probs, row, n_shown),
            text=self._top(self.text_factor, row, n_shown),
            final=self._top(self.final_probs, row, n_shown),
            neighbors=self._neighbors(row, n_shown),
            anchors=self._anchors_near(row, n_shown),
        )

    def _names(self, labels: Any) -> tuple[str, ...]:  # noqa: ANN401
        """Return the names of one image's labels, of either shape."""
        classes = np.flatnonzero(labels) if np.ndim(labels) else [labels] if labels >= 0 else []
        return tuple(self.class_names[c] for c in classes)

    def _top(self, table: TopScores | None, row: int, n_shown: int) -> dict[str, float]:
        """Return the highest entries of a row by class name, best first."""
        if table is None:
            return {}
        best = zip(table.classes[row][:n_shown], table.values[row][:n_shown], strict=True)
        return {self.class_names[c]: float(value) for c, value in best}

    def _neighbors(self, row: int, n_shown: int) -> tuple[Link, ...]:
        """Return the most similar images in the graph."""
        edges = csr_array(self.adjacency[[row]])
        best = np.argsort(-edges.data, kind="stable")[:n_shown]
        return tuple(
            Link(int(i), float(w), ", ".join(self._names(self.web_labels[i])))
            for i, w in zip(edges.indices[best], edges.data[best], strict=True)
        )

    def _anchors_near(self, row: int, n_shown: int) -> tuple[Link, ...]:
        """Return the anchors within two steps, by their strongest path."""
        reach = two_steps(self.adjacency, row)
        near = np.flatnonzero(np.isin(self.anchors.rows, list(reach)))
        found = zip(self.anchors.rows[near], self.anchors.classes[near], strict=True)
        links = [Link(int(i), reach[int(i)], self.class_names[c]) for i, c in found]
        return tuple(sorted(links, key=lambda link: -link.weight)[:n_shown])

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the columns of the table as Python lists, one value per image."""
        web: list[Any] = [self._names(labels) for labels in self.web_labels]
        final: list[Any] = [self._names(labels) for labels in self.final_labels]
        if self.web_labels.ndim == 1:
            web = [names[0] for names in web]
            final = [names[0] if names else None for names in final]
        anchors = np.zeros(len(self), bool)
        anchors[self.anchors.rows] = True
        return {
            "web_label": web,
            "final_label": final,
            "decision": [Decision(code).name.lower() for code in self.decisions],
            "confidence": self.confidence.tolist(),
            "rule": [Rule(code).name.lower() for code in self.rules],
            "anchor": anchors.tolist(),
        }

    def to_arrow(self) -> "pa.Table":
        """Return the labels as an Arrow table, one row per image."""
        import pyarrow as pa

        return pa.table(self.to_columns())

    def to_pandas(self) -> "pd.DataFrame":
        """Return the labels as a pandas table, one row per image (needs the extra 'table')."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("a pandas table", "table") from error
        return pd.DataFrame(self.to_columns())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the record to a folder of ``.npy`` files and one JSON file.

        Parameters
        ----------
        folder : path
            Appears only when it is complete.
        overwrite : bool
            Replace a correction that is there already.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        for name in _SCORES:
            scores = getattr(self, name)
            if scores is not None:
                arrays |= {f"{name}_{part}": getattr(scores, part) for part in SCORE_PARTS}
        arrays |= {f"anchor_{name}": getattr(self.anchors, name) for name in _ANCHOR_FIELDS}
        for name in _SPARSE:
            matrix = getattr(self, name)
            arrays |= {f"{name}_{part}": getattr(matrix, part) for part in _CSR_PARTS}
        values = {
            "class_names": list(self.class_names),
            "evidence_weights": self.evidence_weights,
            "graph_recall": None if np.isnan(self.graph_recall) else self.graph_recall,
            "settings": dataclasses.asdict(self.settings),
        }
        save_record(Path(folder), arrays, values, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a record back; arrays are mapped from disk, not copied.

        Parameters
        ----------
        folder : path
            What :meth:`save` wrote.

        Returns
        -------
        correction : Correction
            As it was saved.
        """
        arrays, values = load_record(Path(folder))
        lacking = sorted(_needed() - set(arrays))
        if lacking:
            raise InputError(f"{folder} lacks {', '.join(lacking)}; save the correction again")
        dense: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        names, n_images = tuple(values["class_names"]), len(arrays["rules"])
        shapes = {"text_match": (n_images, len(names)), "adjacency": (n_images, n_images)}
        scores: dict[str, Any] = {
            name: TopScores(
                n_classes=len(names), **{part: arrays[f"{name}_{part}"] for part in SCORE_PARTS}
            )
            if f"{name}_rest" in arrays
            else None
            for name in _SCORES
        }
        sparse = {
            name: csr_array(tuple(arrays[f"{name}_{part}"] for part in _CSR_PARTS), shape)
            for name, shape in shapes.items()
        }
        return cls(
            **dense,
            **sparse,
            **scores,
            anchors=Anchors(*(arrays[f"anchor_{name}"] for name in _ANCHOR_FIELDS)),
            class_names=names,
            evidence_weights=values["evidence_weights"],
            graph_recall=np.nan if values["graph_recall"] is None else values["graph_recall"],
            settings=Settings.from_dict(values["settings"]),
        )


def _needed() -> set[str]:
    """Return the names of the arrays that no record is without."""
    always = set(_ARRAYS) - {"confusion"}
    sparse = {f"{name}_{part}" for name in _SPARSE for part in _CSR_PARTS}
    scores = {f"{name}_{part}" for name in ("final_probs", "gnn_probs") for part in SCORE_PARTS}
    return always | sparse | scores | {f"anchor_{name}" for name in _ANCHOR_FIELDS}


_SPARSE = ("text_match", "adjacency")
_CSR_PARTS = ("data", "indices", "indptr")
_ANCHOR_FIELDS = tuple(field.name for field in dataclasses.fields(Anchors))
_SCORES = ("final_probs", "gnn_probs", "cnn_probs", "text_factor")
_ARRAYS = ("web_labels", "final_labels", "decisions", "rules", "confusion")
