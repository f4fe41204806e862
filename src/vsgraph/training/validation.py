"""A network judged on images of known classes after each epoch."""

import copy
import dataclasses
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.training.batches import read_batches
from vsgraph.training.model_scores import judge_scores
from vsgraph.training.processes import Processes

BATCH = 64


@dataclasses.dataclass
class Validation:
    """A set of images of known classes, and a copy of the network to judge on it."""

    crawl: Crawl
    network: Any
    checkpoint: Checkpoint
    several: bool

    def __post_init__(self) -> None:
        self.network = copy.deepcopy(self.network).eval()
        self.crawl = self.crawl.take(self.crawl.judgeable())
        truth = self.crawl.truth
        self.truth = self.crawl.labels_matrix() if truth is None else truth

    def judge(self, weights: dict[str, Any], processes: Processes) -> dict[str, float]:
        """Return the scores of the network with these weights, by name."""
        self.network.load_state_dict(weights)
        self.network.to(processes.device)
        part = np.arange(len(self.crawl))[processes.part(len(self.crawl))]
        scores = processes.together(torch.from_numpy(self._scores(part, processes.device)))
        measures = judge_scores(scores.numpy(), self.truth, several=self.several)
        return {name: round(value, 4) for name, value in measures.items()}

    def _scores(self, rows: NDArray[np.intp], device: str) -> NDArray[np.float32]:
        """Return the probabilities of some images; zeros if a picture cannot be read."""
        scores = np.zeros((len(rows), len(self.crawl.class_names)), np.float32)
        preparation = self.checkpoint.architecture.preparation
        batches = [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]
        for batch in read_batches(self.crawl, batches, lambda _: preparation):
            if not len(batch.rows):
                continue
            with torch.inference_mode():
                _, logits = self.network(torch.from_numpy(batch.pixels).to(device))
            probs = (
                logits.float().sigmoid() if self.checkpoint.several else logits.float().softmax(1)
            )
            scores[batch.rows - rows[0]] = probs.cpu().numpy()
        return scores
