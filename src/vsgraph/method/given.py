"""What a stage of Algorithm 1 is given, and what the stages give to each other."""

from typing import NamedTuple, Protocol

from scipy.sparse import csr_array

from vsgraph.common.checks import Floats
from vsgraph.method.inputs import Inputs
from vsgraph.method.network import Network
from vsgraph.neighbors.known import Known
from vsgraph.result.parts import Anchors
from vsgraph.settings import Settings


class Job(Protocol):
    """What every stage is given beside the results of the stages that it needs."""

    @property
    def inputs(self) -> Inputs:
        """The arrays of the crawl, checked, as the settings want them."""
        ...

    @property
    def settings(self) -> Settings:
        """The numbers of the correction."""
        ...

    @property
    def known_neighbors(self) -> Known | None:
        """What an earlier result knows of the neighbors; None if there is none to start from."""
        ...

    @property
    def start_weights(self) -> Floats | None:
        """Weights of an earlier network, (n_inputs, n_classes), to start from; or None."""
        ...

    @property
    def progress(self) -> bool:
        """Whether to show progress bars."""
        ...


class Graph(NamedTuple):
    """The visual graph ``A``, (n_images, n_images), and the share of true neighbors in it.

    `n_searched` are the rows that were searched for; None if all were.
    """

    adjacency: csr_array
    recall: float
    n_searched: int | None = None


class AnchorChoice(NamedTuple):
    """How well each text matches its web labels, (n_images, n_classes), and the anchors."""

    match: csr_array
    anchors: Anchors


class TrainedNetwork(NamedTuple):
    """The graph network, and the anchors that its last round learned from."""

    network: Network
    anchors: Anchors
