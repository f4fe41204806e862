"""Figure 6, progressive training: ``python experiments/paper/figure6_progressive.py ROOT -o OUT``.

On Google-500, images of which the graph is sure become the anchors of the next round: on the graph
of the network's own features, and on one of an off-the-shelf network's (``--graph-encoder``). Only
the graph differs: first anchors, node features and p_c are the same. Run it in table 1's folder.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_array

from command import begin, finish, open_work, paper_options
from measuring import TUNED, How, Points, pretrained_worth
from study import GOOGLE_500
from vsgraph import visual_graph
from vsgraph.common.blocks import as_floats, do_in_threads
from vsgraph.common.files import write_whole
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines
from vsgraph.encoders import embed_images, image_encoder
from vsgraph.method.fusion import fuse
from vsgraph.method.network import Network, grow_anchors, train_in_rounds
from vsgraph.result.correction import Correction
from vsgraph.result.scores import TopScores
from work import Work

RESNEXT = "timm:resnext101_32x8d.fb_swsl_ig1b_ft_in1k"  # semi-weakly supervised, 940M images
GRAPHS = {"own": "Google-500 feature graph", "off-the-shelf": "Off-the-shelf feature graph"}


def other_graph(work: Work, encoder: str) -> csr_array:
    """Return the graph of an off-the-shelf network's features."""
    place = work.out / "graph" / _short(encoder)
    made = embed_images(
        work.crawl, image_encoder(encoder, runtime=work.runtime), place, overwrite=True,
        progress=True,
    )  # fmt: skip
    settings = work.study.settings
    return visual_graph(
        made.vectors, n_neighbors=settings.n_neighbors, search=settings.neighbor_search,
        recall=settings.neighbor_recall, progress=True,
    )  # fmt: skip


def _short(encoder: str) -> str:
    return Path(encoder.replace(":", "-")).name


def rounds_on(work: Work, adjacency: csr_array, n_rounds: int) -> Iterator[Correction]:
    """Yield the labels of each round on a graph, from the anchors of the run."""
    made = work.corrected()
    anchors, settings = made.correction.anchors, made.settings
    for number in range(n_rounds):
        network, _ = train_in_rounds(
            made.features, adjacency, anchors, made.crawl.labels_matrix(),
            exclusive=not made.crawl.has_several_labels, settings=settings, progress=True,
        )  # fmt: skip
        found = dataclasses.replace(made.correction, anchors=anchors)
        yield fused(found, network, made.arrays()["cnn_probs"])
        if number < n_rounds - 1:
            threshold = settings.confidence_threshold
            anchors = grow_anchors(network, anchors, confidence_threshold=threshold)


def fused(correction: Correction, network: Network, cnn_probs: Any) -> Correction:  # noqa: ANN401
    """Return a correction with p_g of a network, and p_f of it and p_c (Eq. 8)."""
    settings = correction.settings
    shape, n_kept = network.shape, settings.kept_scores
    gnn, final = (TopScores.empty(*shape, n_kept=n_kept) for _ in range(2))

    def fill(rows: slice) -> None:
        graph, cnn = network[rows], as_floats(np.asarray(cnn_probs[rows]))
        gnn.put(rows, graph)
        final.put(rows, fuse(graph, cnn, confidence_threshold=settings.confidence_threshold,
                             gnn_weight=settings.gnn_weight))  # fmt: skip

    do_in_threads(fill, network.blocks(), title="labels", progress=True)
    return dataclasses.replace(correction, gnn_probs=gnn, final_probs=final)


def curve(work: Work, points: Points, graph: str, adjacency: Any, n_rounds: int) -> list[Any]:  # noqa: ANN401
    """Return anchors and average accuracy of each round."""
    names = [f"{graph}, round {number + 1}" for number in range(n_rounds)]
    if not all(name in points.known for name in names):
        for name, made in zip(names, rounds_on(work, adjacency(), n_rounds), strict=True):
            points.find(name, lambda m=made: (m, {"anchors": len(m.anchors)}))
    return [points.known[name] | {"round": i + 1} for i, name in enumerate(names)]


@click.command()
@TUNED
@click.option("--rounds", "n_rounds", type=click.IntRange(1), default=5, show_default=True,
              help="Rounds of labeling by graph.")  # fmt: skip
@click.option("--graph-encoder", default=RESNEXT, show_default=True,
              help="Network whose features make the other graph.")  # fmt: skip
@paper_options
def main(how: How, n_rounds: int, graph_encoder: str, **given: Any) -> None:  # noqa: ANN401
    """Google-500 in ROOT: rounds of labeling on two graphs."""
    work = open_work(GOOGLE_500, given)
    if given["smoke"]:
        n_rounds, graph_encoder = 2, work.study.start.network
    if not begin(work, ["pretrained"], given, points=2 * n_rounds, tuned=how):
        return
    points = Points(work, how, work.by_text / f"figure6-{_short(graph_encoder)}")
    graphs = {
        "own": lambda: work.corrected().correction.adjacency,
        "off-the-shelf": lambda: other_graph(work, graph_encoder),
    }
    curves = {name: curve(work, points, name, graphs[name], n_rounds) for name in GRAPHS}
    page = _page(curves, how)
    for panel, what in (("anchors", "anchors"), ("accuracy", "average accuracy, %")):
        lines = {GRAPHS[name]: _line(rows, panel) for name, rows in curves.items()}
        drawn = draw_lines({"": lines}, title=f"Progressive training: {what}", x_name="round",
                           y_name=what)  # fmt: skip
        write_whole(work.by_text / f"figure6-{panel}.svg", drawn)
    values = {"tuned": how, "pretrained": pretrained_worth(work), "graph encoder": graph_encoder}
    finish(work, "figure6", "Figure 6: progressive training", page, values | {"curves": curves},
           given=given)  # fmt: skip


def _line(rows: list[Any], panel: str) -> list[tuple[int, float]]:
    return [(r["round"], r["anchors"] if panel == "anchors" else 100 * r["average"]) for r in rows]


def _page(curves: dict[str, list[Any]], how: How) -> str:
    """Return the table and the pictures; the paper prints a curve only."""
    lines = [
        [GRAPHS[name], row["round"], f"{row['anchors']:,}", f"{100 * row['average']:.2f}"]
        for name, rows in curves.items() for row in rows
    ]  # fmt: skip
    head = ["graph", "round", "anchors", "average accuracy"]
    told = f"Fine-tuned: {'the last layer alone' if how == 'head' else 'the network'}. "
    told += "The paper prints curves, no numbers: level on its own graph, rising on the other.\n\n"
    pictures = "\n\n![anchors](figure6-anchors.svg)\n![accuracy](figure6-accuracy.svg)"
    return told + markdown_table(head, lines) + pictures


if __name__ == "__main__":
    main()
