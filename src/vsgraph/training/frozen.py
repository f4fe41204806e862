"""A trained model whose network stays as it is: only a head is trained, on the network's vectors.

The result is a folder like that of any other training: network and head in one file.
"""

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import file_errors
from vsgraph.crawls import Crawl
from vsgraph.encoders import embed_images, image_encoder
from vsgraph.encoders.runtimes.models import need
from vsgraph.encoders.sources.checkpoints import WEIGHTS, Checkpoint, is_checkpoint
from vsgraph.errors import InputError
from vsgraph.training.fit import Job, Trained
from vsgraph.training.history import read_history, write_history
from vsgraph.training.labels import Labels, web_labels
from vsgraph.training.model_scores import judge_scores
from vsgraph.training.recipe import Recipe, Start
from vsgraph.training.training_folder import (
    claim_folder,
    held_folder,
    replace_model,
    working_folder,
)

FEATURES = "features"  # folder of the vectors, if they are not given


@file_errors()
def train_frozen(
    crawl: Crawl,
    out: str | Path,
    *,
    vectors: NDArray[np.floating] | None = None,
    labels: Labels | None = None,
    start: Start | None = None,
    recipe: Recipe | None = None,
    validation: Crawl | None = None,
    overwrite: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Trained:
    """Train a linear head on the vectors of a network that stays as it is.

    Parameters
    ----------
    vectors : array of shape (n_images, n_dims), optional
        What the network makes of the crawl's pictures, as a run keeps it. Without it the pictures
        are encoded into the folder ``features`` in `out`, once.
    crawl, out, labels, start, recipe, validation, overwrite, progress, tell
        See :func:`vsgraph.training.train`. Crops do not apply.

    Returns
    -------
    trained : Trained
        The folder, and the figures of each epoch.
    """
    need("training", "encoders", "torch", "safetensors")
    job = Job(
        crawl, labels or web_labels(crawl), Path(out), recipe or Recipe(), validation,
        start or Start(),
    )  # fmt: skip
    job.check()
    if not job.start.pretrained:
        raise InputError("a network of random weights has nothing to freeze: leave --from-scratch")
    with held_folder(job.folder, is_first=True):
        claim_folder(job.folder, {**job.key(), "frozen": True}, overwrite=overwrite)
        working = dataclasses.replace(job, folder=working_folder(job.folder))
        if not is_checkpoint(working.folder):
            frozen = _Frozen(working, tell or (lambda _: None), progress=progress)
            frozen.train(frozen.encode(job.folder / FEATURES) if vectors is None else vectors)
        history = read_history(working.folder)
        replace_model(job.folder)
    best = [line.get("top_1", line.get("mAP", line["epoch"])) for line in history]
    return Trained(job.folder, history, history[-1]["unreadable"], int(np.argmax(best)) + 1)


@dataclasses.dataclass(frozen=True)
class _Frozen:
    """A training of a head."""

    job: Job
    tell: Callable[[str], None]
    progress: bool

    def encode(self, folder: Path) -> NDArray[np.floating]:
        """Encode the pictures of the crawl."""
        start = self.job.start
        encoder = image_encoder(start.network, size=start.size)
        return embed_images(
            self.job.crawl, encoder, folder, overwrite=True, progress=self.progress
        ).vectors

    def train(self, vectors: NDArray[np.floating]) -> None:
        """Train the head and write the model, with the head of the best epoch."""
        from vsgraph.training.heads import Head, train_head, usable_rows
        from vsgraph.training.trainer import say

        job = self.job
        several = job.recipe.settled(several=job.labels.several).loss == "sigmoid"
        architecture, body = self._body(vectors)
        judge = self._judge() if job.validation is not None else lambda _: {}
        n_lost = len(job.labels.rows) - len(usable_rows(vectors, job.labels))
        self.tell(
            f"{job.start.network}, frozen: {job.recipe.epochs} epochs of "
            f"{len(job.labels.rows) - n_lost:,} vectors"
        )
        history: list[dict[str, Any]] = []
        best: list[Any] = [-np.inf, None]

        def after_epoch(head: Head, line: dict[str, Any]) -> None:
            measures = judge(head)
            history.append({**line, **measures, "unreadable": n_lost})
            self.tell(say(history[-1]))
            score = next(iter(measures.values()), line["epoch"])
            if score > best[0]:
                best[:] = score, head

        train_head(vectors, job.labels, job.recipe, after_epoch=after_epoch, progress=self.progress)
        write_history(job.folder, history)
        Checkpoint(architecture, job.crawl.class_names, several=several).save(job.folder)
        _write(job.folder / WEIGHTS, body, best[1])

    def _body(self, vectors: NDArray[np.floating]) -> tuple[Any, Any]:
        """Return the network before its classifier; refuse vectors of another one."""
        from vsgraph.encoders.sources.networks import n_features
        from vsgraph.training.start_network import start_body

        architecture, body = start_body(self.job.start)
        n_dims = n_features(body, architecture)
        if vectors.shape != (len(self.job.crawl), n_dims):
            raise InputError(
                f"vectors must have shape {(len(self.job.crawl), n_dims)}, one row per image as "
                f"{self.job.start.network} makes them, got {vectors.shape}"
            )
        return architecture, body

    def _judge(self) -> Callable[[Any], dict[str, float]]:
        """Return a function that judges a head on the validation images, encoded once."""
        start, several = self.job.start, self.job.labels.several
        crawl = self.job.validation
        crawl = crawl.take(crawl.judgeable())  # type: ignore[union-attr]
        with tempfile.TemporaryDirectory() as folder:
            encoder = image_encoder(start.network, size=start.size)
            made = embed_images(crawl, encoder, Path(folder) / "v", progress=self.progress)
            vectors = np.array(made.vectors)
        truth = crawl.labels_matrix() if crawl.truth is None else crawl.truth

        def judge(head: Any) -> dict[str, float]:  # noqa: ANN401
            measures = judge_scores(head.probs(vectors), truth, several=several)
            return {name: round(value, 4) for name, value in measures.items()}

        return judge


def _write(path: Path, body: Any, head: Any) -> None:  # noqa: ANN401
    """Write network and head as the weights of one classifier."""
    import torch

    from vsgraph.training.resume_file import write_weights

    state = {f"body.{name}": value for name, value in body.state_dict().items()}
    state["head.weight"] = torch.from_numpy(np.ascontiguousarray(head.weights))
    state["head.bias"] = torch.from_numpy(np.ascontiguousarray(head.bias))
    write_weights(path, state)
