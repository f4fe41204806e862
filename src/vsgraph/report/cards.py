"""One picture with what became of it and why, as the pages show it."""

import dataclasses

from vsgraph.crawls.crawl import Crawl
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

LONGEST_TEXT = 160
LONGEST_NAME = 80
N_TOLD = 2
DONE = {"keep": "kept", "relabel": "relabeled", "reject": "rejected"}


@dataclasses.dataclass(frozen=True)
class Card:
    """A picture and its story.

    Attributes
    ----------
    row : int
        The image.
    has_picture : bool
        Whether its file could be read.
    decision : str
        kept, relabeled or rejected.
    before, after : str
        Its labels; `after` is empty if it was rejected.
    confidence : float
        Of the final label; not shown where there is none.
    text : str
        What came with it, cut.
    reason : str
        The rule that decided, in words.
    evidence : tuple of (str, str)
        What each witness says.
    """

    row: int
    has_picture: bool
    decision: str
    before: str
    after: str
    confidence: float
    text: str
    reason: str
    evidence: tuple[tuple[str, str], ...]


def clip(text: str, longest: int = LONGEST_NAME) -> str:
    """Cut a text that is too long to show.

    >>> clip("a crane", 4), clip("", 4)
    ('a c…', '')
    """
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def make_cards(
    rows: Rows, crawl: Crawl, correction: Correction, *, pictures: frozenset[int]
) -> dict[int, Card]:
    """Return the cards of some images by row."""
    texts = crawl.texts(rows)
    return {
        row: _make_card(row, clip(text, LONGEST_TEXT), correction, has_picture=row in pictures)
        for row, text in zip(rows.tolist(), texts, strict=True)
    }


def _make_card(row: int, text: str, correction: Correction, *, has_picture: bool) -> Card:
    told = correction.explain(row, n_shown=N_TOLD)
    witnesses = {"graph": told.gnn, "classifier": told.cnn, "together": told.final}
    evidence = [(name, _list(scores)) for name, scores in witnesses.items() if scores]
    if told.text:
        factors = (f"{clip(name)} times {factor:.2g}" for name, factor in told.text.items())
        evidence.insert(1, ("text", ", ".join(factors)))
    near = ", ".join(clip(link.label) for link in told.neighbors)
    return Card(
        row=row,
        has_picture=has_picture,
        decision=DONE[Decision(correction.decisions[row]).name.lower()],
        before=clip(", ".join(told.web_labels)),
        after=clip(", ".join(told.final_labels)),
        confidence=float(correction.confidence[row]),
        text=text,
        reason=told.reason,
        evidence=(*evidence, ("look alike", near)) if near else tuple(evidence),
    )


def _list(scores: dict[str, float]) -> str:
    return ", ".join(f"{clip(name)} {score:.2f}" for name, score in scores.items())
