"""Anchors by texts that are smoothed over neighbors that choose each other only.

    python experiments/mutual_neighbors.py ../shared/data/coco-web ../shared/data/coco-web-b

CAPro picks anchors among k-reciprocal neighbors. Prints the share of right anchors, 50 per class:
by the visual graph, in which one of two images chooses the other, and by those that both do.
"""

from pathlib import Path

import click
import numpy as np
from scipy.sparse import csr_array

import vsgraph
from coco_web_data import read_coco_web
from trials import TEXTS, Trial, draw, load_vectors, spread
from vsgraph.common.formatting import markdown_table

PER_CLASS = 50


def mutual_graph(features: np.ndarray, n_neighbors: int) -> csr_array:
    """Connect images that are each among the nearest of the other."""
    found = vsgraph.nearest_neighbors(features, n_neighbors=n_neighbors)
    rows = np.repeat(np.arange(len(features)), n_neighbors)
    values = np.maximum(found.similarities.ravel(), 0)
    one_way = csr_array((values, (rows, found.rows.ravel())), shape=(len(features),) * 2)
    return csr_array(one_way.minimum(one_way.T))


def right_anchors(trial: Trial, graph: csr_array) -> float:
    """Return the share of anchors whose label is right."""
    smoothed = vsgraph.smooth_text(trial.text, graph, self_weight=1, form="released")
    match = vsgraph.text_match(smoothed, trial.meaning, trial.data.web_labels)
    anchors = vsgraph.select_anchors(match, per_class=PER_CLASS)
    return float(trial.data.truth[anchors.rows, anchors.classes].mean())


@click.command(help=__doc__)
@click.argument("folders", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--seeds", default=3, show_default=True, help="Trials.")
def main(folders: tuple[Path, ...], seeds: int) -> None:
    """Print the table."""
    rows = []
    for folder in folders:
        vectors = load_vectors(read_coco_web(folder))
        for kind in TEXTS:
            trials = [draw(vectors, seed=seed, kind=kind) for seed in range(seeds)]
            cells = [spread([right_anchors(trial, trial.graph) for trial in trials])]
            cells += [
                spread([right_anchors(trial, mutual_graph(trial.features, k)) for trial in trials])
                for k in (5, 10, 20)
            ]
            rows.append([f"{folder.name}, {kind}", *cells])
    head = ["crawl, text", "k = 5", "mutual, k = 5", "mutual, k = 10", "mutual, k = 20"]
    click.echo(markdown_table(head, rows))


if __name__ == "__main__":
    main()
