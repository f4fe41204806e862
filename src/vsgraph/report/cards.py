"""One picture, what became of it and why, as the pages show it."""

import dataclasses

from vsgraph.crawls.crawl import Crawl
from vsgraph.report.tallies import Rows
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

LONGEST_TEXT = 160
LONGEST_NAME = 80
N_SCORES = 2  # classes listed per witness
LEAST_FACTOR = 0.005  # a text that changes less says nothing
DONE = {"keep": "kept", "relabel": "relabeled", "reject": "rejected"}


@dataclasses.dataclass(frozen=True)
class Card:
    """A picture with its labels and the evidence for them."""

    row: int  # in the crawl
    has_picture: bool  # whether its file could be read
    decision: str  # kept, relabeled or rejected
    before: str  # web labels
    after: str  # final labels; '' if it was rejected
    confidence: float  # of the final label
    text: str  # what came with it, shortened
    reason: str  # the rule that decided, in words
    evidence: tuple[tuple[str, str], ...]  # each witness and what it says


def clip(text: str, longest: int = LONGEST_NAME) -> str:
    """Shorten a text that is too long to show.

    >>> clip("a crane", 4), clip("", 4)
    ('a c…', '')
    """
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def make_cards(
    rows: Rows, crawl: Crawl, correction: Correction, *, pictures: frozenset[int]
) -> dict[int, Card]:
    """Return the cards of some images by row; `pictures` are the rows that could be read."""
    texts = zip(rows.tolist(), crawl.texts(rows), strict=True)
    return {
        row: _make_card(row, clip(text, LONGEST_TEXT), correction, has_picture=row in pictures)
        for row, text in texts
    }


def _make_card(row: int, text: str, correction: Correction, *, has_picture: bool) -> Card:
    """Return the card of one image."""
    why = correction.explain(row, n_shown=N_SCORES)
    witnesses = {"graph": why.gnn, "classifier": why.cnn, "together": why.final}
    evidence = [(name, _list(scores)) for name, scores in witnesses.items() if scores]
    if any(abs(factor - 1) >= LEAST_FACTOR for factor in why.text.values()):
        factors = (f"{clip(name)} times {factor:.2g}" for name, factor in why.text.items())
        evidence.insert(1, ("text", ", ".join(factors)))
    if why.neighbors:
        evidence.append(("look alike", ", ".join(clip(link.label) for link in why.neighbors)))
    return Card(
        row=row,
        has_picture=has_picture,
        decision=DONE[Decision(correction.decisions[row]).name.lower()],
        before=clip(", ".join(why.web_labels)),
        after=clip(", ".join(why.final_labels)),
        confidence=float(correction.confidence[row]),
        text=text,
        reason=why.reason,
        evidence=tuple(evidence),
    )


def _list(scores: dict[str, float]) -> str:
    return ", ".join(f"{clip(name)} {score:.2f}" for name, score in scores.items())
