"""A run in progress: its crawl, encoders, and the results of its stages when they are needed."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.answers import Answers, read_answers
from vsgraph.cluster import Parts
from vsgraph.common.checks import Floats
from vsgraph.crawls import Crawl
from vsgraph.encoders import ImageEncoder, TextEncoder, pictures_digest
from vsgraph.encoders.embed import open_image_encoder, open_text_encoder
from vsgraph.encoders.text import text_part
from vsgraph.errors import InputError
from vsgraph.method.algorithm import STAGE
from vsgraph.method.inputs import Inputs, check_inputs
from vsgraph.neighbors.known import Digests, Known, row_digests
from vsgraph.runs.choices import Choices
from vsgraph.runs.folder import RunFolder
from vsgraph.runs.former import Former
from vsgraph.runs.names import PARTS
from vsgraph.runs.outputs import Outputs
from vsgraph.runs.stage_files import FILES, load_network
from vsgraph.screening import NOTHING, Compared
from vsgraph.settings import Settings

Tell = Callable[[str], None]


@dataclasses.dataclass
class RunJob:
    """The inputs and results of a run's stages."""

    folder: RunFolder
    crawl: Crawl
    settings: Settings
    choices: Choices
    progress: bool
    tell: Tell
    keys: dict[str, str] = dataclasses.field(default_factory=dict)  # of each stage; see plan_keys
    parts: Parts | None = None  # of the cluster, if one is at work
    _results: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def outputs(self) -> Outputs:
        """The results on disk."""
        return Outputs(self.folder, self.keys, self.choices)

    @functools.cached_property
    def answers(self) -> Answers:
        """What people say that images show, at the start of the run."""
        return read_answers(self.folder.answers)

    @functools.cached_property
    def pictures_digest(self) -> str:
        """A digest of where the pictures lie, and of the sizes and times of their files."""
        return pictures_digest(self.crawl)

    @functools.cached_property
    def image_encoder(self) -> ImageEncoder:
        """The encoder of pictures."""
        own = self.choices
        return open_image_encoder(self.crawl, own.image_encoder, own.runtime, own.precision)

    @functools.cached_property
    def text_encoder(self) -> TextEncoder:
        """The encoder of texts and meanings."""
        own = self.choices
        return open_text_encoder(
            self.crawl, own.text_encoder, "truncate", own.runtime, own.precision
        )

    @functools.cached_property
    def picture_text_encoder(self) -> TextEncoder | None:
        """The text part of the image encoder, in the space of the pictures, if it has one."""
        own = self.choices
        if own.features is not None:
            return None
        return text_part(own.image_encoder, runtime=own.runtime)

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The arrays of the crawl, checked once; the paper's forms know no words."""
        arrays = self.outputs.arrays(self.crawl)
        inputs = check_inputs(**arrays, class_names=self.crawl.class_names)
        return inputs.with_words() if self.settings.text_evidence else inputs

    @functools.cached_property
    def former(self) -> Former | None:
        """The result that this run had before; None if there is none."""
        return Former.of(self.folder)

    @functools.cached_property
    def digests(self) -> Digests:
        """Digests of the features, row by row, (n_images,)."""
        return row_digests(self.outputs.features())

    @functools.cached_property
    def known_neighbors(self) -> Known | None:
        """What the result before knows of the neighbors."""
        with contextlib.suppress(InputError):  # damaged: everything is searched for
            return self.former.neighbors(self.digests, self.settings) if self.former else None
        return None

    @functools.cached_property
    def start_weights(self) -> Floats | None:
        """The weights of the network before, if most images are the same."""
        with contextlib.suppress(InputError):  # damaged: it starts from nothing
            if self.former is not None and self.former.places(self.digests) is not None:
                return self.former.weights(self.inputs.class_names)
        return None

    def known_pairs(self, keys: NDArray[np.uint8] | None) -> Compared:
        """Return pairs of pictures that the result before has compared."""
        with contextlib.suppress(InputError):  # damaged: all are compared again
            return self.former.pairs(keys) if self.former and keys is not None else NOTHING
        return NOTHING

    def know_copies(self, groups: NDArray[np.intp]) -> None:
        """Let the stages that follow know which images are copies, (n_images,)."""
        if "inputs" in vars(self):  # otherwise they are read from disk with all arrays
            self.inputs = dataclasses.replace(self.inputs, copies=groups)

    def result(self, name: str) -> Any:  # noqa: ANN401
        """Return the result of a stage of Algorithm 1: from memory, from disk, or computed."""
        if name not in self._results:
            self._results[name] = self._load(name) if self.is_kept(name) else self.compute(name)
        return self._results[name]

    def compute(self, name: str) -> Any:  # noqa: ANN401
        """Compute a stage of Algorithm 1."""
        stage = STAGE[name]
        needed = [self.result(need) for need in stage.needs]
        with self.doing(name):
            return stage.work(self, *needed)

    def work_on(self, parts: Parts | None) -> None:
        """Let a cluster do the work, if there is one; its files are in the run's folder."""
        self.parts = parts
        if parts is not None:
            parts.folder = self.folder.path / PARTS

    def doing(self, name: str) -> AbstractContextManager[None]:
        """Give the files of a stage that other machines write a place of their own."""
        return self.parts.doing(name) if self.parts else nullcontext()

    def finish(self, name: str) -> None:
        """Forget what other machines made for a stage, which is complete on disk now."""
        if self.parts:
            self._results.pop(name, None)
            self.parts.drop(name)

    def is_kept(self, name: str) -> bool:
        """Return whether the result of a stage is complete on disk."""
        return name in self.keys and self.folder.stage_record(name, self.keys[name]) is not None

    def _load(self, name: str) -> Any:  # noqa: ANN401
        folder = self.outputs[name]
        if name == "network":
            return load_network(folder, self, self.result("graph"))
        return FILES[name].load(folder)
