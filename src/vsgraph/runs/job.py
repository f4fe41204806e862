"""A run at work: its crawl, its encoders, and the results of its stages as they are needed."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from vsgraph.crawls import Crawl
from vsgraph.encoders import ImageEncoder, TextEncoder
from vsgraph.encoders.embed import open_image_encoder, open_text_encoder
from vsgraph.method.algorithm import STAGE
from vsgraph.method.inputs import Inputs, check_inputs
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder
from vsgraph.runs.outputs import STAGE_RECORD, Outputs
from vsgraph.runs.stage_files import FILES, load_network
from vsgraph.settings import Settings

Tell = Callable[[str], None]


@dataclasses.dataclass
class RunJob:
    """What the stages of a run work on.

    Attributes
    ----------
    folder : RunFolder
        Where results are kept.
    crawl : Crawl
        As it was read.
    settings, choices
        What the run is made with.
    progress : bool
        Show progress bars.
    tell : callable
        Called with lines of text.
    keys : dict of str to str
        The key of each stage of this run; filled by the plan.
    """

    folder: RunFolder
    crawl: Crawl
    settings: Settings
    choices: Choices
    progress: bool
    tell: Tell
    keys: dict[str, str] = dataclasses.field(default_factory=dict)
    _results: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def outputs(self) -> Outputs:
        """Where the results lie."""
        return Outputs(self.folder, self.keys, self.choices)

    @functools.cached_property
    def image_encoder(self) -> ImageEncoder:
        """The encoder of pictures."""
        choices = self.choices
        return open_image_encoder(
            self.crawl, choices.image_encoder, choices.runtime, choices.precision
        )

    @functools.cached_property
    def text_encoder(self) -> TextEncoder:
        """The encoder of texts and meanings."""
        choices = self.choices
        return open_text_encoder(
            self.crawl, choices.text_encoder, "truncate", choices.runtime, choices.precision
        )

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The arrays of the crawl, checked once."""
        outputs, names = self.outputs, self.crawl.class_names
        return check_inputs(
            outputs.features(),
            outputs.text_embeddings(),
            outputs.label_embeddings(),
            self.crawl.web_labels,
            outputs.cnn_probs(len(names)),
            graph=outputs.own_graph(),
            sources=self.crawl.sources,
            class_names=names,
        )

    def result(self, name: str) -> Any:  # noqa: ANN401
        """Return what a stage of Algorithm 1 makes: from memory, from its files, or computed."""
        if name not in self._results:
            self._results[name] = self._load(name) if self.is_kept(name) else self.compute(name)
        return self._results[name]

    def compute(self, name: str) -> Any:  # noqa: ANN401
        """Do the work of a stage of Algorithm 1."""
        stage = STAGE[name]
        return stage.work(self, *map(self.result, stage.needs))

    def is_kept(self, name: str) -> bool:
        """Return whether the result of a stage lies in the run's folder, whole."""
        return (self.outputs[name] / STAGE_RECORD).exists()

    def _load(self, name: str) -> Any:  # noqa: ANN401
        folder = self.outputs[name]
        if name == "network":
            return load_network(folder, self, self.result("graph"))
        return FILES[name].load(folder)
