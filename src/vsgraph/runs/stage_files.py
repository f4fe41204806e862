"""The results of Algorithm 1's stages as files: plain ``.npy`` arrays and JSON."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.common.files import open_array
from vsgraph.method.algorithm import AnchorChoice, Graph, TrainedNetwork
from vsgraph.method.network import Network, network_inputs
from vsgraph.method.scoring import ImageScores
from vsgraph.result.parts import Anchors, Decisions
from vsgraph.result.scores import TopScores

Arrays = Mapping[str, NDArray[Any]]
VALUES = "values.json"
CSR_PARTS = ("data", "indices", "indptr")
SCORES = ("final", "gnn", "cnn", "text")


def save_arrays(folder: Path, arrays: Arrays, **values: object) -> None:
    """Write arrays as ``.npy`` files, and values as JSON."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    (folder / VALUES).write_text(json.dumps(values), encoding="utf-8")


def load_values(folder: Path) -> dict[str, Any]:
    """Read the values that were saved beside the arrays."""
    return json.loads((folder / VALUES).read_text(encoding="utf-8"))


def csr_parts(name: str, matrix: csr_array) -> dict[str, NDArray[Any]]:
    """Return the arrays of a sparse matrix."""
    return {f"{name}_{part}": getattr(matrix, part) for part in CSR_PARTS}


def load_csr(folder: Path, name: str, shape: tuple[int, int]) -> csr_array:
    """Read a sparse matrix, its arrays mapped from disk."""
    return csr_array(tuple(open_array(folder / f"{name}_{part}.npy") for part in CSR_PARTS), shape)


def save_graph(graph: Graph, folder: Path) -> None:
    """Write the visual graph."""
    recall = None if np.isnan(graph.recall) else graph.recall
    save_arrays(folder, csr_parts("adjacency", graph.adjacency), recall=recall)


def load_graph(folder: Path) -> Graph:
    """Read the visual graph."""
    n_images = len(open_array(folder / "adjacency_indptr.npy")) - 1
    recall = load_values(folder)["recall"]
    adjacency = load_csr(folder, "adjacency", (n_images, n_images))
    return Graph(adjacency, np.nan if recall is None else recall)


def _anchor_parts(anchors: Anchors) -> dict[str, NDArray[Any]]:
    fields = dataclasses.fields(anchors)
    return {f"anchor_{field.name}": getattr(anchors, field.name) for field in fields}


def load_anchors(folder: Path) -> Anchors:
    """Read anchors."""
    fields = dataclasses.fields(Anchors)
    return Anchors(*(open_array(folder / f"anchor_{field.name}.npy") for field in fields))


def save_choice(choice: AnchorChoice, folder: Path) -> None:
    """Write the match of texts and labels, and the anchors."""
    arrays = csr_parts("match", choice.match) | _anchor_parts(choice.anchors)
    save_arrays(folder, arrays, n_classes=choice.match.shape[1])


def load_choice(folder: Path) -> AnchorChoice:
    """Read the match of texts and labels, and the anchors."""
    n_images = len(open_array(folder / "match_indptr.npy")) - 1
    match = load_csr(folder, "match", (n_images, load_values(folder)["n_classes"]))
    return AnchorChoice(match, load_anchors(folder))


def save_network(trained: TrainedNetwork, folder: Path) -> None:
    """Write the weights of the graph network, and the anchors of its last round."""
    arrays = {"weights": trained.network.weights, "anchored": trained.network.anchored}
    arrays |= _anchor_parts(trained.anchors)
    save_arrays(folder, arrays, softmax=trained.network.softmax)


def load_network(folder: Path, job: Any, graph: Graph) -> TrainedNetwork:  # noqa: ANN401
    """Read the graph network and put it on its features and graph again."""
    network = Network(
        network_inputs(job.inputs.features, graph.adjacency, job.settings),
        np.array(open_array(folder / "weights.npy")),
        np.array(open_array(folder / "anchored.npy")),
        load_values(folder)["softmax"],
    )
    return TrainedNetwork(network, load_anchors(folder))


def save_scores(scores: ImageScores, folder: Path) -> None:
    """Write what is known of every image."""
    arrays: dict[str, NDArray[Any]] = {}
    for field in dataclasses.fields(scores):
        value = getattr(scores, field.name)
        if isinstance(value, TopScores):
            arrays |= {f"{field.name}_{part}": array for part, array in value.parts().items()}
        elif isinstance(value, np.ndarray):
            arrays[field.name] = value
    save_arrays(folder, arrays, weights=scores.weights)


def load_scores(folder: Path) -> ImageScores:
    """Read what is known of every image, mapped from disk."""
    n_classes = len(open_array(folder / "anchored.npy"))
    values: dict[str, Any] = {"weights": load_values(folder)["weights"]}
    for field in dataclasses.fields(ImageScores):
        path = folder / f"{field.name}.npy"
        if field.name in SCORES:
            there = (folder / f"{field.name}_rest.npy").exists()
            values[field.name] = (
                TopScores.load(folder, n_classes, prefix=f"{field.name}_") if there else None
            )
        elif field.name != "weights":
            values[field.name] = open_array(path) if path.exists() else None
    return ImageScores(**values)


def save_decisions(decisions: Decisions, folder: Path) -> None:
    """Write the decisions."""
    fields = dataclasses.fields(decisions)
    save_arrays(folder, {field.name: getattr(decisions, field.name) for field in fields})


def load_decisions(folder: Path) -> Decisions:
    """Read the decisions, mapped from disk."""
    fields = dataclasses.fields(Decisions)
    return Decisions(*(open_array(folder / f"{field.name}.npy") for field in fields))


class Files(NamedTuple):
    """How the result of a stage is written and read."""

    save: Callable[[Any, Path], None]
    load: Callable[..., Any]


FILES = {  # smoothing and evidence are not kept: they are large, and needed only for the scores
    "graph": Files(save_graph, load_graph),
    "anchors": Files(save_choice, load_choice),
    "network": Files(save_network, load_network),
    "scores": Files(save_scores, load_scores),
    "decisions": Files(save_decisions, load_decisions),
}
