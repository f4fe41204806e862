"""Figure 4, anchors by method: ``python experiments/paper/figure4_anchors.py ROOT -o OUT``.

For the classes of Google-500 that the pretrained network knows least, the ten images that would be
anchors by its own confidence, by their text, and by the text of their neighborhood. The page holds
the pictures and needs nothing else. Run it in the folder of table 1.
"""

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from command import begin, finish, open_work, paper_options
from noisiest import chosen_classes, class_titles
from study import GOOGLE_500
from vsgraph import select_anchors, text_match
from vsgraph.common.files import write_whole
from vsgraph.common.formatting import markdown_table
from vsgraph.pictures.opener import small_jpeg
from vsgraph.result.parts import Anchors
from work import Work

N_CLASSES = 3
METHODS = {
    "p_c": "confidence of the network",
    "text": "own text",
    "graph": "text of the neighborhood (Eq. 4)",
}
STYLE = "body{font:15px system-ui,sans-serif;margin:2em}img{height:96px;margin:2px}"
Chosen = dict[str, NDArray[np.intp]]


def anchors_by_method(work: Work, number: int, per_class: int) -> Chosen:
    """Return the images that each method takes as anchors of a class, best first."""
    made = work.corrected()
    given = made.arrays()
    own = text_match(given["text_embeddings"], given["label_embeddings"], given["web_labels"])
    rows = np.flatnonzero(given["web_labels"] == number)
    scores = np.asarray(given["cnn_probs"][rows])[:, number]
    return {
        "p_c": rows[np.argsort(-scores, kind="stable")][:per_class],
        "text": _of_class(select_anchors(own, per_class=per_class), number),
        "graph": _of_class(select_anchors(made.correction.text_match, per_class=per_class), number),
    }


def _of_class(anchors: Anchors, number: int) -> NDArray[np.intp]:
    return anchors.rows[anchors.classes == number]


def draw_page(work: Work, shown: Mapping[str, Chosen]) -> str:
    """Return a page with the pictures in it."""
    parts = []
    for title, by_method in shown.items():
        parts.append(f"<h2>{html.escape(title)}</h2>")
        for method, rows in by_method.items():
            pictures = "".join(_picture(work, row) for row in rows.tolist())
            parts.append(f"<h3>{METHODS[method]}</h3><p>{pictures}</p>")
    head = f'<meta charset="utf-8"><title>Anchors by method</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _picture(work: Work, row: int) -> str:
    """Return a small picture, with its text; a hostile file cannot get into the page."""
    made = small_jpeg(work.crawl.read_image(row), side=128, quality=75)
    said = html.escape(work.crawl.texts(np.array([row]))[0][:200], quote=True)
    data = base64.b64encode(made).decode()
    return f'<img alt="{said}" title="{said}" src="data:image/jpeg;base64,{data}">'


def _shared(by_method: Chosen) -> list[str]:
    """Say how many images two methods have in common."""
    pairs: Sequence[tuple[str, str]] = (("p_c", "text"), ("p_c", "graph"), ("text", "graph"))
    return [str(len(np.intersect1d(by_method[a], by_method[b]))) for a, b in pairs]


@click.command()
@click.option("--show", metavar="WNIDS", help="Classes to show.  [the three least known]")
@paper_options
def main(show: str | None, **given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT: anchors of the noisiest classes by method, as pictures."""
    work = open_work(GOOGLE_500, given)
    if not begin(work, ["pretrained"], given):
        return
    titles, per_class = class_titles(work), work.study.settings.anchors_per_class
    numbers = chosen_classes(work, show, N_CLASSES).tolist()
    shown = {titles[i]: anchors_by_method(work, i, per_class) for i in numbers}
    write_whole(work.by_text / "figure4.html", draw_page(work, shown))
    head = ["class", "p_c and text", "p_c and graph", "text and graph"]
    table = markdown_table(head, [[title, *_shared(made)] for title, made in shown.items()])
    page = f"[Pictures](figure4.html). Of {per_class} anchors, so many are the same:\n\n{table}"
    names = work.crawl.table["image"]
    values = {
        title: {method: [names[i].as_py() for i in rows.tolist()] for method, rows in made.items()}
        for title, made in shown.items()
    }
    finish(work, "figure4", "Figure 4: anchors by method", page, {"anchors": values}, given=given)


if __name__ == "__main__":
    main()
