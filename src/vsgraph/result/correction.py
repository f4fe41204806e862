"""The result of a correction, with explanations, saving, loading and tables."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.blocks import row_blocks
from vsgraph.common.checks import Floats, check_number, filled_rows, label_matrix
from vsgraph.common.files import file_errors
from vsgraph.errors import InputError, MissingExtraError
from vsgraph.result.explanation import Explanation, Link, two_steps
from vsgraph.result.parts import Anchors, Decision, Rule, count_decisions, shares_by_class
from vsgraph.result.saving import load_fields, save_correction
from vsgraph.result.scores import TopScores, web_quality
from vsgraph.result.showing import correction_html
from vsgraph.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHARPNESS = 2  # of soft labels: heads on COCO-Web learn less from 1, and about as much from 3


@dataclasses.dataclass(frozen=True, eq=False)
class Correction:
    """The corrected labels, and everything that led to them.

    Attributes
    ----------
    class_names : tuple of str
        Names of the classes, in the order of the columns.
    web_labels, final_labels : int array of shape (n_images,) or bool (n_images, n_classes)
        Labels before and after; a rejected image has -1, or no True.
    decisions, rules : uint8 array of shape (n_images,)
        :class:`Decision` and :class:`Rule` of each image.
    final_probs : TopScores of shape (n_images, n_classes)
        The basis of the decisions: ``p_f`` of Eq. 8, or the weighed evidence.
    gnn_probs, cnn_probs : TopScores of shape (n_images, n_classes)
        ``p_g`` and ``p_c`` in the paper; `cnn_probs` is None if there was no CNN.
    text_factor : TopScores of shape (n_images, n_classes) or None
        The factor by which each image's text raises or lowers each class; None in the paper's
        fusion.
    confusion : float array of shape (n_classes, n_classes) or None
        Estimated share of each web label among the images of each class.
    evidence_weights : dict of str to float
        The weight of each witness; empty in the paper's fusion.
    text_match : csr_array of shape (n_images, n_classes)
        Cosine of smoothed text and meaning at each web label.
    anchors : Anchors
        The images that the graph network learned from.
    adjacency : csr_array of shape (n_images, n_images)
        The visual graph.
    graph_recall : float
        Measured share of the true neighbors in the graph; NaN for the user's own graph.
    settings : Settings
        The settings used.

    Examples
    --------
    >>> import vsgraph
    >>> texts = np.tile(np.eye(2), (4, 1))
    >>> result = vsgraph.correct(texts, texts, np.eye(2), [0, 1] * 4, class_names=["bat", "owl"],
    ...                          settings=Settings(n_neighbors=2, anchors_per_class=2))
    >>> result.counts, result.to_columns()["final_label"][:2]
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
    unwanted: NDArray[np.int16] | None = None
    unwanted_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.web_labels)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"Correction({len(self)} images, {len(self.class_names)} classes: {counts})"

    def _repr_html_(self) -> str:
        return correction_html(self)

    @property
    def counts(self) -> dict[str, int]:
        """How many images are kept, relabeled and rejected."""
        return count_decisions(self.decisions)

    def counts_with(self, features: NDArray[Any]) -> dict[str, int]:
        """Count as :attr:`counts`, but apart the kept images whose picture could not be read.

        `features`, of shape (n_images, d), are what was corrected: zeros for such a picture.
        """
        blocks = row_blocks(len(self), row_bytes=features.itemsize * features[:1].size)
        unreadable = np.concatenate([~filled_rows(features[rows]) for rows in blocks])
        return count_decisions(self.decisions, unreadable)

    @functools.cached_property
    def confidence(self) -> Floats:
        """Probability of each final label: the lowest of several, the highest if rejected."""
        labels = self.final_labels
        highest = self.final_probs.max(axis=1)
        if labels.ndim == 2:
            blocks = row_blocks(len(self), row_bytes=8 * labels.shape[1])
            least = [np.where(labels[b], self.final_probs[b], 1).min(axis=1) for b in blocks]
            return np.where(labels.any(axis=1), np.concatenate(least), highest)
        return np.where(labels < 0, highest, self.final_probs.at(np.maximum(labels, 0)))

    @functools.cached_property
    def label_quality(self) -> Floats:
        """How reliable each web label is, 0 to 1; the lowest of several.

        It is low if the label is probably wrong, one half if it could not be judged, and one if
        there is no web label.
        """
        if self.unwanted is not None:
            quality = self.final_probs.at(self.web_labels)
        else:
            quality = web_quality(self.web_labels, self.final_probs, self.gnn_probs)
        answered = np.flatnonzero(self.rules == Rule.ANSWERED)
        if self.unwanted is None and len(answered):
            web, final = self.web_labels[answered], self.final_labels[answered]
            quality[answered] = web == final if web.ndim == 1 else (web <= final).all(axis=1)
        return np.where(self.rules == Rule.NOT_JUDGED, 0.5, quality)

    @property
    def is_checked(self) -> bool:
        """Whether texts told which meaning of a label is meant; without text none could."""
        return self.unwanted is None or self.text_factor is not None

    @property
    def estimate(self) -> dict[str, float] | None:
        """Estimated shares of right labels: `left`, of `web` labels.

        None if labels were not doubted, or if their meaning is not checked.
        """
        if self.unwanted is None or not self.is_checked:
            return None
        left = self.decisions != Decision.REJECT
        right = float(self.confidence[left].mean()) if left.any() else 0.0
        return {"left": right, "web": float(self.label_quality.mean())}

    def class_shares(self) -> tuple[Floats, Floats]:
        """Return the estimated share of right web labels of each class, and its standard error."""
        return shares_by_class(self.web_labels, self.label_quality, len(self.class_names))

    def soft_labels(self, *, with_rejected: bool = False) -> TopScores:
        """Return labels to fine-tune a network on (Eq. 9), zero for rejected images unless wanted.

        With one label per image, rows sum to one; with several, they hold the probabilities. Where
        each class was judged by itself, a row holds the squares of the probabilities, as shares:
        two sure classes have half each, and unlikely ones hardly count. An image that could not be
        judged has its web labels; one of which people say that it shows none is always zero.
        """
        soft = self.final_probs
        if self.web_labels.ndim == 1:
            soft = soft if self.unwanted is None else soft.power(SHARPNESS)
            soft = soft.scaled(1 / np.where(soft.total > 0, soft.total, 1))
        if not with_rejected:
            soft = soft.scaled((self.decisions != Decision.REJECT).astype(np.float32))
        rows = np.flatnonzero(self.rules == Rule.NOT_JUDGED)
        web = label_matrix(self.web_labels[rows], len(self.class_names))
        return soft.replaced(rows, web.toarray())

    def explain(self, row: int, *, n_shown: int = 5) -> Explanation:
        """Explain why image `row` got its label.

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
            web_labels=self.names_of(self.web_labels[row]),
            final_labels=self.names_of(self.final_labels[row]),
            decision=Decision(self.decisions[row]).name.lower(),
            reason=self.reason(row),
            text_match=dict(zip(names, match.data.tolist(), strict=True)),
            gnn=self._top(self.gnn_probs, row, n_shown),
            cnn=self._top(self.cnn_probs, row, n_shown),
            text=self._top(self.text_factor, row, n_shown),
            final=self._top(self.final_probs, row, n_shown),
            neighbors=self._neighbors(row, n_shown),
            anchors=self._anchors_near(row, n_shown),
        )

    def reason(self, row: int) -> str:
        """Return the rule that decided on an image in words, with the unwanted sense it shows."""
        sense = f": {self.sense(row)}" if self.rules[row] == Rule.UNWANTED else ""
        return Rule(self.rules[row]).sentence + sense

    def sense(self, row: int) -> str:
        """Return the name of the unwanted sense that an image shows, or nothing."""
        number = -1 if self.unwanted is None else int(self.unwanted[row])
        return self.unwanted_names[number] if number >= 0 else ""

    def names_of(self, labels: Any) -> tuple[str, ...]:  # noqa: ANN401
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
            Link(int(i), float(w), ", ".join(self.names_of(self.web_labels[i])))
            for i, w in zip(edges.indices[best], edges.data[best], strict=True)
        )

    def _anchors_near(self, row: int, n_shown: int) -> tuple[Link, ...]:
        """Return the anchors within two steps, by their strongest path."""
        reach = two_steps(self.adjacency, row)
        near = np.flatnonzero(np.isin(self.anchors.rows, list(reach)))
        pairs = zip(self.anchors.rows[near], self.anchors.classes[near], strict=True)
        links = [Link(int(i), reach[int(i)], self.class_names[c]) for i, c in pairs]
        return tuple(sorted(links, key=lambda link: -link.weight)[:n_shown])

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the columns of the table as Python lists, one value per image."""
        web: list[Any] = [self.names_of(labels) for labels in self.web_labels]
        final: list[Any] = [self.names_of(labels) for labels in self.final_labels]
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
            "quality": self.label_quality.tolist(),
            "shows": [self.sense(row) for row in range(len(self))],
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

    @file_errors()
    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the correction to a folder of ``.npy`` files and one JSON file.

        Parameters
        ----------
        folder : path
            The folder; it appears when it is complete.
        overwrite : bool
            Replace an existing correction.
        """
        save_correction(self, Path(folder), overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a saved correction; arrays are mapped from disk, not copied.

        Parameters
        ----------
        folder : path
            What :meth:`save` wrote.

        Returns
        -------
        correction : Correction
            As it was saved.
        """
        return cls(**load_fields(Path(folder)))
