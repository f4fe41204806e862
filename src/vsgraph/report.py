"""A page that shows what a correction did, in one file that opens from disk.

Titles and class names come from the web: everything is escaped, and the page runs no script.
"""

import base64
import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.correction import Correction
from vsgraph.decisions import Decision
from vsgraph.errors import InputError

SHOWN = 24
STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #888; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
figure { display: inline-block; margin: 0 .5rem .75rem 0; width: 6.5rem; vertical-align: top; }
figure img { width: 100%; border-radius: .3rem; display: block; border: 3px solid transparent; }
.relabel img { border-style: dashed; border-color: #d97706; }
.reject img { border-style: dotted; border-color: #dc2626; opacity: .8; }
.keep img { border-color: #2563eb; border-style: solid; }
figcaption { font-size: .72rem; line-height: 1.25; overflow-wrap: anywhere; }
figcaption span { color: var(--quiet); }
h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.quiet { color: var(--quiet); }
"""


def write_report(
    correction: Correction,
    path: Path,
    *,
    pictures: Callable[[int], NDArray[np.uint8]],
    titles: Sequence[str],
    descriptions: Sequence[str],
    heading: str,
) -> None:
    """Write the page.

    Parameters
    ----------
    correction : Correction
        Of single-label data.
    path : Path
        Where the HTML file goes; it appears only when it is complete.
    pictures : callable
        Row to an (height, width, 3) picture.
    titles : sequence of str
        The text of each image.
    descriptions : sequence of str
        What each class means.
    heading : str
        Title of the page.
    """
    if correction.web_labels.ndim != 1:
        raise InputError("the report shows single-label corrections; this one is multi-label")
    page = _Page(correction, pictures, titles)
    noise = [page.share_moved(c) for c in range(len(correction.class_names))]
    sections = "".join(page.section(c, descriptions[c]) for c in np.argsort(noise)[::-1])
    content = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(heading)}</title><style>{STYLE}</style>"
        f"<h1>{html.escape(heading)}</h1>{page.overview()}{sections}</html>"
    )
    unfinished = path.with_suffix(".part")
    unfinished.write_text(content, encoding="utf-8")
    unfinished.replace(path)


def _of(rows: NDArray[np.intp]) -> str:
    """Say how many there are, and how many of them are shown."""
    return f"{len(rows)}" if len(rows) <= SHOWN else f"the first {SHOWN} of {len(rows)}"


class _Page:
    """Turns rows of a correction into HTML."""

    def __init__(
        self,
        correction: Correction,
        pictures: Callable[[int], NDArray[np.uint8]],
        titles: Sequence[str],
    ) -> None:
        self.correction = correction
        self.pictures = pictures
        self.titles = titles
        self.sure_first = np.argsort(-correction.confidence, kind="stable")

    def rows(self, class_index: int, decision: Decision) -> NDArray[np.intp]:
        """Return rows found by a class's query, with one decision, the surest first."""
        found = self.correction.web_labels == class_index
        chosen = found & (self.correction.decisions == decision)
        return self.sure_first[chosen[self.sure_first]]

    def share_moved(self, class_index: int) -> float:
        """Return the share of a class's images that did not stay."""
        kept = len(self.rows(class_index, Decision.KEEP))
        found = int((self.correction.web_labels == class_index).sum())
        return 1 - kept / found if found else 0.0

    def overview(self) -> str:
        """Return the table of all classes, the noisiest first."""
        counts = self.correction.counts
        names = self.correction.class_names
        lines = []
        for c in np.argsort([self.share_moved(c) for c in range(len(names))])[::-1]:
            numbers = [len(self.rows(c, decision)) for decision in Decision]
            came = int(
                ((self.correction.final_labels == c) & (self.correction.web_labels != c)).sum()
            )
            cells = "".join(f"<td>{n}</td>" for n in (sum(numbers), *numbers, came))
            lines.append(f'<tr><td><a href="#c{c}">{html.escape(names[c])}</a></td>{cells}</tr>')
        columns = "".join(
            f'<th scope="col">{name}</th>'
            for name in ("query", "found", "kept", "relabeled", "rejected", "came in")
        )
        return (
            f"<p>{len(self.correction)} images: {counts['keep']} kept, {counts['relabel']} "
            f"relabeled, {counts['reject']} rejected. Noisiest queries first. Borders: solid, "
            "kept; dashed, relabeled; dotted, rejected. The number is the label's probability.</p>"
            f'<div class="scroll"><table><thead><tr>{columns}</tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div>"
        )

    def section(self, class_index: int, description: str) -> str:
        """Return the part of the page on one class."""
        name = html.escape(self.correction.class_names[class_index])
        anchors = self.correction.anchors
        groups = {
            "Anchors: the texts around them fit the meaning best": anchors.rows[
                anchors.classes == class_index
            ],
            "Kept": self.rows(class_index, Decision.KEEP),
            "Relabeled": self.rows(class_index, Decision.RELABEL),
            "Rejected": self.rows(class_index, Decision.REJECT),
        }
        shown = "".join(
            f"<h3>{title} <span class=quiet>({_of(rows)})</span></h3>"
            f"<div>{''.join(self.figure(row) for row in rows[:SHOWN])}</div>"
            for title, rows in groups.items()
            if len(rows)
        )
        return f"<h2 id=c{class_index}>{name}</h2><p>{html.escape(description)}</p>{shown}"

    def figure(self, row: int) -> str:
        """Return one picture with its title, label and reason."""
        told = self.correction.explain(int(row), n_shown=1)
        sure = f" {self.correction.confidence[row]:.2f}" if told.final_labels else ""
        after = told.final_labels[0] if told.final_labels else "rejected"
        title = self.titles[row] or "(no text)"
        return (
            f'<figure class="{told.decision}"><img loading="lazy" alt="{html.escape(title)}" '
            f'title="{html.escape(told.reason)}" src="{self.image(row)}"><figcaption>'
            f"<b>{html.escape(after)}</b>{sure}<br>"
            f"<span>{html.escape(title)}</span></figcaption></figure>"
        )

    def image(self, row: int) -> str:
        """Return a picture as a data address."""
        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(self.pictures(row)).save(buffer, "JPEG", quality=80)
        return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
