"""Figure 1, a map of ten classes: ``python experiments/paper/figure1_map.py ROOT -o OUT``.

t-SNE of the pretrained network's features of Google-500: colors are the web labels, what
Co-teaching predicts, and the final labels p_f; faint where they are unsure. The paper does not say
which ten classes it selected; here those that the network knows least (``--show``). Run it in the
folder of table 1.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from command import begin, finish, open_work, paper_options
from noisiest import chosen_classes, class_titles
from study import GOOGLE_500
from vsgraph.common.files import write_whole
from vsgraph.common.formatting import markdown_table
from work import Work

N_CLASSES, PER_CLASS = 10, 300
SIDE, GAP, LINE = 320, 30, 18
GRAY = "#9ca3af"
COLORS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#00a5a5", "#f032e6", "#808000",
          "#9a6324", "#000075")  # fmt: skip
Panel = tuple[NDArray[np.integer[Any]], NDArray[np.floating[Any]]]


def chosen_rows(work: Work, classes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return images of the classes, at most so many of each, drawn at random."""
    random, labels = np.random.default_rng(0), work.crawl.web_labels
    parts = [np.flatnonzero(labels == number) for number in classes]
    return np.sort(np.concatenate([random.permutation(part)[:PER_CLASS] for part in parts]))


def place(features: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return t-SNE's places of images, in 0 to 1."""
    from sklearn.manifold import TSNE

    perplexity = min(30, (len(features) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", random_state=0)
    places = tsne.fit_transform(np.asarray(features, np.float32))
    return (places - places.min(axis=0)) / np.ptp(places, axis=0)


def panels_of(work: Work, rows: NDArray[np.intp]) -> dict[str, Panel]:
    """Return class and confidence of images by web label, Co-teaching and p_f."""
    model = work.model("co-teaching")
    said = np.asarray(work.predicted(model, work.crawl.take(rows), "figure1").probs, np.float32)
    final = work.corrected().correction.final_probs
    return {
        "Web labels": (work.crawl.web_labels[rows], np.ones(len(rows))),
        "Prediction by Co-teaching": (said.argmax(axis=1), said.max(axis=1)),
        "Final labels by VSGraph-LC": (final.argmax()[rows], final.max()[rows]),
    }


def draw(
    places: NDArray[Any], panels: Mapping[str, Panel], classes: Sequence[int], titles: Sequence[str]
) -> str:
    """Return the panels beside each other as SVG; other classes than those shown are gray."""
    colors = {number: COLORS[i % len(COLORS)] for i, number in enumerate(classes)}
    parts = []
    for i, (name, (labels, sure)) in enumerate(panels.items()):
        dots = "".join(
            f'<circle cx="{SIDE * x:.1f}" cy="{SIDE * y:.1f}" r="2.5" '
            f'fill="{colors.get(int(label), GRAY)}" opacity="{max(0.1, float(one)):.2f}"/>'
            for (x, y), label, one in zip(places, labels, sure, strict=True)
        )
        start = f"translate({GAP + i * (SIDE + GAP)},{2 * GAP})"
        parts.append(f'<g transform="{start}"><text y="-12">{name}</text>{dots}</g>')
    below = SIDE + 3 * GAP
    legend = [*((colors[number], titles[number]) for number in classes), (GRAY, "another class")]
    for i, (color, title) in enumerate(legend):
        y = below + LINE * i
        parts.append(
            f'<circle cx="{GAP + 5}" cy="{y - 4}" r="5" fill="{color}"/>'
            f'<text x="{GAP + 18}" y="{y}">{html.escape(title)}</text>'
        )
    width, height = GAP + len(panels) * (SIDE + GAP), below + LINE * len(legend)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="t-SNE of features by web and final labels"><style>text{font:13px system-ui,'
        f"sans-serif}}svg{{background:#fff}}</style>{''.join(parts)}</svg>\n"
    )


@click.command()
@click.option("--show", metavar="WNIDS", help="Classes to show.  [the ten least known]")
@paper_options
def main(show: str | None, **given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT: ten classes on a map, by web, Co-teaching's and final labels."""
    work = open_work(GOOGLE_500, given)
    if not begin(work, ["pretrained", "co-teaching"], given):
        return
    classes = chosen_classes(work, show, N_CLASSES)
    rows, titles = chosen_rows(work, classes), class_titles(work)
    places = place(work.corrected().features[rows])
    panels = panels_of(work, rows)
    write_whole(work.by_text / "figure1.svg", draw(places, panels, classes.tolist(), titles))
    web = panels["Web labels"][0]
    table = [[titles[number], int((web == number).sum()),
              *(f"{np.mean(labels[web == number] == number):.1%}" for labels, _ in
                list(panels.values())[1:])] for number in classes]  # fmt: skip
    head = ["class", "images", "Co-teaching agrees", "VSGraph-LC agrees"]
    page = "Images on the map, and how many keep their web label:\n\n"
    page += markdown_table(head, table) + "\n\n![map](figure1.svg)"
    values = {
        "rows": rows, "places": places.round(4),
        "panels": {name: {"class": a, "confidence": b} for name, (a, b) in panels.items()},
    }  # fmt: skip
    finish(work, "figure1", "Figure 1: ten classes on a map", page, values, given=given)


if __name__ == "__main__":
    main()
