"""The graph network at size: the converged solver beside the paper's Adam loop.

``networks.py CRAWL EPOCHS``: both train on the same anchors of a made-up crawl, in the form as
printed. Prints a line of JSON.
"""

import json
import time
from pathlib import Path

import click
import numpy as np

import vsgraph
from made_up_crawl import read_crawl
from vsgraph.common.blocks import in_threads
from vsgraph.method.linear_fit import AnchorTask, anchor_loss, anchor_task, check_task
from vsgraph.method.network import Network, train

PAPER = vsgraph.Settings.google_500()


def decayed_loss(network: Network, task: AnchorTask) -> float:
    """Return what both solvers minimize: the loss and the weight decay."""
    loss = anchor_loss(network.weights, network.inputs.at(task.rows), task, form=PAPER.form)[0]
    return loss + PAPER.weight_decay / 2 * float((network.weights.astype(np.float64) ** 2).sum())


def labels_of(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Return likeliest labels, and which rows are over tau_f."""

    def few(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        block = network[rows]
        return block.argmax(axis=1), block.max(axis=1) >= PAPER.confidence_threshold

    parts = list(in_threads(few, network.blocks()))
    return tuple(np.concatenate([part[i] for part in parts]) for i in range(2))


@click.command()
@click.argument("crawl", type=click.Path(path_type=Path, exists=True))
@click.argument("epochs", type=int)
def main(crawl: Path, epochs: int) -> None:
    """Train both ways and compare."""
    given = read_crawl(crawl)
    features, web = given["features"], given["web_labels"]
    graph = vsgraph.visual_graph(features, n_neighbors=PAPER.n_neighbors)
    smooth = vsgraph.smooth_text(given["texts"], graph, self_weight=0, form=PAPER.form)
    match = vsgraph.text_match(smooth, given["meanings"], web)
    anchors = vsgraph.select_anchors(match, per_class=PAPER.anchors_per_class)
    n_classes = len(given["meanings"])
    task = anchor_task(anchors, check_task(anchors, web, n_rows=len(features), n_classes=n_classes))
    told: dict[str, object] = {"n_images": len(features), "anchors": len(anchors), "epochs": epochs}
    found = {}
    for solver in ("optimum", "adam"):
        chosen = vsgraph.Settings.google_500(solver=solver, epochs=epochs)
        started, busy = time.perf_counter(), time.process_time()
        network = train(features, graph, task, settings=chosen)
        seconds = time.perf_counter() - started
        labels, sure = found[solver] = labels_of(network)
        told[solver] = {
            "seconds": seconds,
            "cpu_seconds": time.process_time() - busy,
            "loss": decayed_loss(network, task),
            "right": float((labels == given["truth"]).mean()),
            "over_tau": float(sure.mean()),
            "norm": float(np.linalg.norm(network.weights)),
        }
    told["labels_agree"] = float((found["optimum"][0] == found["adam"][0]).mean())
    told["over_tau_agree"] = float((found["optimum"][1] == found["adam"][1]).mean())
    print(json.dumps(told))


if __name__ == "__main__":
    main()
