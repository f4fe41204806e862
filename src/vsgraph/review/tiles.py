"""Pictures as the pages show them, and everything that is known of one."""

import dataclasses
from typing import Any

import numpy as np

from vsgraph.answers import Answer
from vsgraph.common.formatting import plain
from vsgraph.report.cards import DONE, clip
from vsgraph.report.tallies import Rows
from vsgraph.result.parts import Decision
from vsgraph.review.session import Session
from vsgraph.review.view import View

LONGEST_ALT = 90
LONGEST_TEXT = 2000
N_NEAR = 6
MOST_COPIES = 20  # whose labels are named


@dataclasses.dataclass(frozen=True)
class Tile:
    """One picture on a page."""

    row: int
    alt: str
    decision: str  # of the tool: kept, relabeled or rejected
    web: list[str]
    final: list[str]
    confidence: float
    said: list[str] | None  # what a person says that it shows; None without an answer
    who: str
    note: str


def make_tiles(
    session: Session, view: View, rows: Rows, notes: list[str] | None = None
) -> list[Tile]:
    """Return the tiles of some images."""
    texts, answers = view.crawl.texts(rows), session.said(rows)
    told = notes or [""] * len(rows)
    return [
        Tile(
            row=row, alt=clip(text, LONGEST_ALT) or "picture without text",
            decision=DONE[Decision(view.correction.decisions[row]).name.lower()],
            web=list(view.web_names(row)), final=list(view.final_names(row)),
            confidence=float(view.confidence[row]),
            said=None if answer is None else list(answer.new),
            who="" if answer is None else answer.who, note=note,
        )
        for row, text, answer, note in zip(rows.tolist(), texts, answers, told, strict=True)
    ]  # fmt: skip


def describe(session: Session, view: View, row: int) -> dict[str, Any]:
    """Return everything that is known of an image, for the panel beside it."""
    why = view.correction.explain(row, n_shown=N_NEAR)
    rows = np.array([row])
    texts = {
        field: clip(view.crawl.texts(rows, fields=[field])[0], LONGEST_TEXT)
        for field in view.crawl.text_fields
    }
    witnesses = {"graph": why.gnn, "classifier": why.cnn, "together": why.final, "text": why.text}
    near = [link for link in why.neighbors if link.row != row]
    answer = session.said(rows)[0]
    return plain({
        "row": row,
        "image": view.crawl.table["image"][row].as_py(),
        "source": _source(view, row),
        "texts": {field: text for field, text in texts.items() if text},
        "decision": DONE[why.decision],
        "reason": why.reason + _about_picture(view, row),
        "web": why.web_labels,
        "final": why.final_labels,
        "confidence": round(float(view.confidence[row]), 4),
        "evidence": {name: _top(scores, 4) for name, scores in witnesses.items() if scores},
        "near": [{"row": link.row, "label": clip(link.label)} for link in near],
        "suggested": list(why.final)[:4],
        "said": _said(answer),
        "others": _others(session, row),
    })  # fmt: skip


def _top(scores: dict[str, float], n: int) -> list[tuple[str, float]]:
    return [(clip(name), round(score, 3)) for name, score in list(scores.items())[:n]]


def _source(view: View, row: int) -> str:
    if view.sources is None:
        return ""
    names, numbers = view.sources
    return names[int(numbers[row])]


def _about_picture(view: View, row: int) -> str:
    """Return what else is known of a picture, in words: its copies and flaws."""
    screening = view.screening
    if screening is None:
        return ""
    flaws = screening.words(np.array([row]))[0]
    about = f"; picture: {flaws}" if flaws else ""
    copies = np.flatnonzero(screening.groups == screening.groups[row])
    if len(copies) > 1:
        labels = {name for copy in copies[:MOST_COPIES] for name in view.web_names(int(copy))}
        about += f"; {len(copies):,} copies, found as {', '.join(map(clip, sorted(labels)))}"
    return about


def _said(answer: Answer | None) -> dict[str, Any] | None:
    return None if answer is None else {"new": answer.new, "who": answer.who}


def _others(session: Session, row: int) -> dict[str, Any]:
    """Return what each reviewer says of an image on which they differ."""
    key = session.index.of_rows(np.array([row]))[0]
    for conflict in session.answers.conflicts:
        if conflict.picture == key:
            return dict(conflict.said)
    return {}
