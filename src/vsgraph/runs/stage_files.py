"""The results of Algorithm 1's stages as files: plain ``.npy`` arrays and JSON."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vsgraph.common.files import flat_arrays, load_csr, open_array, save_arrays
from vsgraph.method.given import AnchorChoice, Graph, TrainedNetwork
from vsgraph.method.network import Network, network_inputs
from vsgraph.method.scoring import ImageScores
from vsgraph.result.parts import Anchors, Decisions
from vsgraph.result.scores import TopScores
from vsgraph.screening import Compared

VALUES = "values.json"
DIGESTS = "digests.npy"  # of the features that a graph connects
COMPARED, AGREE = "compared.npy", "agree.npy"  # pairs of pictures, and whether they are copies
SCORES = ("final", "gnn", "cnn", "text")


def save_result(result: Any, folder: Path, **values: object) -> None:  # noqa: ANN401
    """Write the arrays of a result as ``.npy`` files, and other values as JSON."""
    save_arrays(folder, flat_arrays(result))
    (folder / VALUES).write_text(json.dumps(values), encoding="utf-8")


def load_values(folder: Path) -> dict[str, Any]:
    """Read the values that were saved beside the arrays."""
    return json.loads((folder / VALUES).read_text(encoding="utf-8"))


def save_graph(graph: Graph, folder: Path) -> None:
    """Write the visual graph."""
    save_result(graph, folder, recall=None if np.isnan(graph.recall) else graph.recall)


def load_graph(folder: Path) -> Graph:
    """Map the visual graph."""
    n_images = len(open_array(folder / "adjacency_indptr.npy")) - 1
    recall = load_values(folder)["recall"]
    adjacency = load_csr(folder, "adjacency", (n_images, n_images))
    return Graph(adjacency, np.nan if recall is None else recall)


def save_choice(choice: AnchorChoice, folder: Path) -> None:
    """Write the text match and the anchors."""
    save_result(choice, folder, n_classes=choice.match.shape[1])


def load_choice(folder: Path) -> AnchorChoice:
    """Map the text match and the anchors."""
    n_images = len(open_array(folder / "match_indptr.npy")) - 1
    match = load_csr(folder, "match", (n_images, load_values(folder)["n_classes"]))
    return AnchorChoice(match, Anchors.load(folder))


def save_network(trained: TrainedNetwork, folder: Path) -> None:
    """Write the weights of the graph network, and the anchors of its last round."""
    network, anchors = trained
    arrays = {"weights": network.weights, "anchored": network.anchored, "anchors": anchors}
    save_result(arrays, folder, softmax=network.softmax)


def load_network(folder: Path, job: Any, graph: Graph) -> TrainedNetwork:  # noqa: ANN401
    """Read the graph network, and give it its features and graph again."""
    network = Network(
        network_inputs(job.inputs.features, graph.adjacency, job.settings),
        np.array(open_array(folder / "weights.npy")),
        np.array(open_array(folder / "anchored.npy")),
        load_values(folder)["softmax"],
    )
    return TrainedNetwork(network, Anchors.load(folder))


def save_scores(scores: ImageScores, folder: Path) -> None:
    """Write the scores of every image."""
    save_result(scores, folder, weights=scores.weights)


def load_scores(folder: Path) -> ImageScores:
    """Map the scores of every image."""
    n_classes = len(open_array(folder / "anchored.npy"))
    values: dict[str, Any] = {"weights": load_values(folder)["weights"]}
    for name in (field.name for field in dataclasses.fields(ImageScores)):
        path = folder / f"{name}.npy"
        if path.exists():
            values[name] = open_array(path)
        elif name in SCORES and (folder / f"{name}_rest.npy").exists():
            values[name] = TopScores.load(folder, n_classes, prefix=f"{name}_")
        else:
            values.setdefault(name, None)
    return ImageScores(**values)


def load_decisions(folder: Path) -> Decisions:
    """Map the decisions."""
    fields = dataclasses.fields(Decisions)
    return Decisions(*(open_array(folder / f"{field.name}.npy") for field in fields))


def save_compared(compared: Compared, folder: Path) -> None:
    """Write the pairs of pictures that were compared, and whether they are copies."""
    arrays = {COMPARED: compared.pairs.astype(np.int32), AGREE: compared.agree}
    save_arrays(folder, {Path(name).stem: array for name, array in arrays.items()})


def load_compared(folder: Path) -> Compared:
    """Map the pairs of pictures that were compared."""
    return Compared(open_array(folder / COMPARED), open_array(folder / AGREE))


class Files(NamedTuple):
    """How the result of a stage is written and read."""

    save: Callable[[Any, Path], None]
    load: Callable[..., Any]


FILES = {  # trust, smoothing, evidence and doubt are not kept: large, or soon made again
    "graph": Files(save_graph, load_graph),
    "anchors": Files(save_choice, load_choice),
    "network": Files(save_network, load_network),
    "scores": Files(save_scores, load_scores),
    "decisions": Files(save_result, load_decisions),
}
