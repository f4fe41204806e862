"""The result that a run had before: where a changed crawl starts from.

Nothing that is found depends on it beyond the tolerance of a search or a solver. It only says what
need not be searched for again, and where the solver starts.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats
from vsgraph.common.files import open_array
from vsgraph.common.version import __version__
from vsgraph.judge.since import Version
from vsgraph.neighbors.known import Digests, Known, known_neighbors, match_rows
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder
from vsgraph.runs.outputs import Outputs
from vsgraph.runs.stage_files import DIGESTS, load_compared, load_decisions, load_graph
from vsgraph.screening import NOTHING, Compared, known_pairs
from vsgraph.settings import Settings

MOST_CHANGED = 0.2  # of the rows; beyond, everything is computed from nothing


@dataclasses.dataclass(frozen=True)
class Former:
    """The result before, of the crawl as it was then."""

    outputs: Outputs
    asked: Mapping[str, Any]  # what it was asked for
    again: Mapping[str, Any]  # marks of the stages that are repeated now

    @classmethod
    def of(cls, folder: RunFolder) -> "Former | None":
        """Return the current result of a run, before it is replaced; None if it is not whole."""
        keys = {name: stage["key"] for name, stage in folder.stages.items()}
        records = [folder.stage_record(name, key) for name, key in keys.items()]
        if folder.made is None or None in records:
            return None
        choices = Choices.from_dict(folder.made["asked"]["choices"])
        outputs = Outputs(folder, keys, choices)
        return cls(outputs, folder.made["asked"], folder.asked.get("again", {}))

    def stage(self, name: str) -> Path | None:
        """Return the folder of a stage; None if there is none, or if it shall be repeated."""
        is_repeated = self.asked.get("again", {}).get(name) != self.again.get(name)
        return None if is_repeated or name not in self.outputs.keys else self.outputs[name]

    def places(self, digests: Digests) -> NDArray[np.int32] | None:
        """Return the row of now of each row before, -1 if it is gone; None if much has changed."""
        graph = self.stage("graph")
        if graph is None or not (graph / DIGESTS).exists():
            return None
        places = match_rows(open_array(graph / DIGESTS), digests)
        n_same = int((places >= 0).sum())
        n_changed = max(len(digests), len(places)) - n_same
        return places if n_changed <= MOST_CHANGED * len(digests) else None

    def neighbors(self, digests: Digests, settings: Settings) -> Known | None:
        """Return what is known of the neighbors of the rows of now."""
        places = self.places(digests)
        same_k = self.asked["settings"]["n_neighbors"] == settings.n_neighbors
        if places is None or not same_k:
            return None
        graph = load_graph(self.outputs["graph"])
        if graph.recall != 1:  # approximate, or the user's own
            return None
        return known_neighbors(
            graph.adjacency, places, n_images=len(digests), n_neighbors=settings.n_neighbors,
            recall=graph.recall,
        )  # fmt: skip

    def pairs(self, keys: NDArray[np.uint8]) -> Compared:
        """Return pairs of pictures that were compared before, as rows of now.

        `keys`, (n_images, n_bytes), tell the pictures of now by their content.
        """
        folder, measures = self.stage("screening"), self.outputs.measures()
        made_by = (self.outputs.folder.made or {}).get("versions", {}).get("vsgraph")
        if folder is None or measures is None or made_by != __version__:
            return NOTHING
        before, now = (np.ascontiguousarray(k[:, :8]).view(np.uint64)[:, 0]
                       for k in (measures.keys, keys))  # fmt: skip
        return known_pairs(load_compared(folder), match_rows(before, now))

    def weights(self, class_names: tuple[str, ...]) -> Floats | None:
        """Return the weights of the network, (n_inputs, n_classes), zero for a new class."""
        folder = self.stage("network")
        if folder is None:
            return None
        former = open_array(folder / "weights.npy")
        crawl = self.outputs.crawl()
        words = self.outputs.words(len(crawl))
        names = (*crawl.class_names, *(words.unwanted_names if words else ()))[: former.shape[1]]
        weights = np.zeros((len(former), len(class_names)), former.dtype)
        for place, name in enumerate(class_names):
            if name in names:
                weights[:, place] = former[:, names.index(name)]
        return weights


def version_of(outputs: Outputs) -> Version:
    """Return the crawl of a result, and what was decided."""
    pictures = outputs.pictures()
    return Version(
        outputs.crawl(), load_decisions(outputs["decisions"]), pictures.keys if pictures else None
    )
