"""Why one image got its label, in numbers and in words."""

import dataclasses
from collections.abc import Iterator

from scipy.sparse import csr_array


@dataclasses.dataclass(frozen=True)
class Link:
    """Another image that supports a label.

    Attributes
    ----------
    row : int
        The other image.
    weight : float
        Cosine along the edge; for an anchor, the strongest path of at most two edges.
    label : str
        Its web label, or the class it is an anchor of.

    Examples
    --------
    >>> Link(row=7, weight=0.9, label="orange").label
    'orange'
    """

    row: int
    weight: float
    label: str


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why an image got its label.

    Attributes
    ----------
    row : int
        The image.
    web_labels, final_labels : tuple of str
        Labels before and after; no final label if rejected.
    decision : str
        keep, relabel or reject.
    reason : str
        The rule that decided, in words.
    text_match : dict of str to float
        Cosine of the smoothed text and the meaning of each web label; NaN without any text near.
    gnn, cnn, text, final : dict of str to float
        The classes that each witness favors, best first. `text` holds factors: above one, the text
        supports the class. Empty if there is no such witness.
    neighbors, anchors : tuple of Link
        Most similar images, and the anchors within two steps.

    Examples
    --------
    >>> print(Explanation(
    ...     row=3, web_labels=("orange",), final_labels=(), decision="reject",
    ...     reason="the image is far from every class", text_match={"orange": 0.1}, gnn={}, cnn={},
    ...     text={}, final={}, neighbors=(Link(7, 0.9, "orange"),), anchors=()))
    image 3: orange -> none (reject: the image is far from every class)
      text match   orange 0.1
      graph (p_g)  -
      CNN (p_c)    -
      text factor  -
      final (p_f)  -
      neighbors    7 (orange, 0.90)
      anchors      -
    """

    row: int
    web_labels: tuple[str, ...]
    final_labels: tuple[str, ...]
    decision: str
    reason: str
    text_match: dict[str, float]
    gnn: dict[str, float]
    cnn: dict[str, float]
    text: dict[str, float]
    final: dict[str, float]
    neighbors: tuple[Link, ...]
    anchors: tuple[Link, ...]

    def __str__(self) -> str:
        before, after = ", ".join(self.web_labels), ", ".join(self.final_labels) or "none"
        lines = [
            f"image {self.row}: {before} -> {after} ({self.decision}: {self.reason})",
            f"  text match   {numbers_text(self.text_match)}",
            f"  graph (p_g)  {numbers_text(self.gnn)}",
            f"  CNN (p_c)    {numbers_text(self.cnn)}",
            f"  text factor  {numbers_text(self.text)}",
            f"  final (p_f)  {numbers_text(self.final)}",
            f"  neighbors    {links_text(self.neighbors)}",
            f"  anchors      {links_text(self.anchors)}",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from vsgraph.result.showing import explanation_html

        return explanation_html(self)


def numbers_text(values: dict[str, float]) -> str:
    """Format names with numbers."""
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items()) or "-"


def links_text(links: tuple[Link, ...]) -> str:
    """Format links to other images."""
    return ", ".join(f"{link.row} ({link.label}, {link.weight:.2f})" for link in links) or "-"


def two_steps(adjacency: csr_array, row: int) -> dict[int, float]:
    """Return the images within two steps of one, each with the weight of its strongest path.

    >>> import numpy as np
    >>> line = csr_array(np.array([[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]))
    >>> two_steps(line, 0)
    {0: 1.0, 1: 0.5, 2: 0.25}
    """

    def edges(start: int) -> Iterator[tuple[int, float]]:
        own = slice(*adjacency.indptr[start : start + 2])  # quicker by far than a row of a matrix
        return zip(adjacency.indices[own].tolist(), adjacency.data[own].tolist(), strict=True)

    reach = {row: 1.0} | dict(edges(row))
    for middle, weight in list(reach.items()):
        for i, w in edges(middle):
            reach[i] = max(reach.get(i, 0.0), weight * w)
    return reach
