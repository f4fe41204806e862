"""What labels are worth: a network fine-tuned on them and judged by average accuracy.

The paper fine-tunes the whole network for every point of its curves. That is ``network`` here; as
it takes a training a point, ``head`` fine-tunes the last layer alone, on the features of the
pretrained network. The two give different numbers and are never mixed in one curve.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
import torch
from numpy.typing import NDArray

from cost import HEAD_EPOCHS
from vsgraph.common.files import write_whole
from vsgraph.encoders.sources.checkpoints import Checkpoint, load_weights
from vsgraph.judge.metrics import average_accuracy
from vsgraph.result.correction import Correction
from vsgraph.training import Labels, Recipe, corrected_labels, judge_model
from vsgraph.training.batches import cut_batches, epoch_order, label_rows
from vsgraph.training.losses import class_weights, image_losses, image_weights
from vsgraph.training.trainer import learning_rate
from work import Work

How = Literal["head", "network"]
HEAD_BATCH = 1024
TUNED = click.option(
    "--tune", "how", type=click.Choice(["head", "network"]), default="head", show_default=True,
    help="Fine-tune the last layer alone, or as in the paper the network, a training a point.",
)  # fmt: skip


@dataclasses.dataclass
class Points:
    """Average accuracies by name, kept as they are found."""

    work: Work
    how: How
    folder: Path

    def __post_init__(self) -> None:
        key = self.work.corrected().record["stages"]["decisions"]["key"]
        self.file = self.folder / f"points-{self.how}-{key[:8]}.json"
        kept = self.file.read_text() if self.file.exists() else "{}"
        self.known: dict[str, dict[str, Any]] = json.loads(kept)

    def find(self, name: str, make: Callable[[], tuple[Correction, dict[str, Any]]]) -> Any:  # noqa: ANN401
        """Return what a point is worth, from the file or found now."""
        if name not in self.known:
            correction, facts = make()
            found = worth(self.work, correction, self.folder / name, self.how)
            self.known[name] = found | facts
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, json.dumps(self.known, indent=1) + "\n")
            self.work.tell(f"{name}: average accuracy {found['average']:.2%}")
        return self.known[name]


def worth(work: Work, correction: Correction, place: Path, how: How) -> dict[str, Any]:
    """Return the accuracies of a network fine-tuned on p_f of a correction, and their average."""
    if how == "network":
        correction.save(place / "correction", overwrite=True)
        model = work.finetuned(place / "model", place / "correction", "final")
        found = {name: work.tested(model, name).measures for name in work.study.tests}
    else:
        found = _worth_by_head(work, corrected_labels(correction))
    pairs = [(one["top_1"], one["top_5"]) for one in found.values()]
    return {"average": average_accuracy(*pairs), "accuracy": found}


def pretrained_worth(work: Work) -> float:
    """Return the average accuracy before any fine-tuning."""
    tested = [work.tested(work.model("pretrained"), name).measures for name in work.study.tests]
    return average_accuracy(*((one["top_1"], one["top_5"]) for one in tested))


def _worth_by_head(work: Work, labels: Labels) -> dict[str, dict[str, float]]:
    """Fine-tune the last layer and judge it."""
    model = work.model("pretrained")
    recipe = dataclasses.replace(
        work.study.recipe.for_finetuning(), epochs=HEAD_EPOCHS, batch_size=HEAD_BATCH
    )
    head = tune_head(model, work.corrected().features, labels, recipe)
    found = {}
    for name in work.study.tests:
        crawl = work.test_set(name)
        made = work.predicted(model, crawl, name)
        probs = head(np.asarray(made.vectors, np.float32))
        probs[~np.asarray(made.vectors).any(axis=1)] = 0  # a picture that cannot be read
        found[name] = judge_model(Checkpoint.load(model), probs, crawl).measures
    return found


def tune_head(
    model: Path, features: NDArray[Any], labels: Labels, recipe: Recipe
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Fine-tune the last layer of a model on its own features.

    Parameters
    ----------
    model : Path
        A trained model, where the layer starts.
    features : array of shape (n_images, d)
        Its features; read a batch at a time.
    labels : Labels
        Soft labels (Eq. 9).
    recipe : Recipe
        Rate, length and the rest, as for a whole network.

    Returns
    -------
    head : callable
        Turns features into probabilities.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kept = load_weights(model / "model.safetensors")
    layer = torch.nn.Linear(*reversed(kept["head.weight"].shape)).to(device)
    layer.load_state_dict({name: kept[f"head.{name}"] for name in ("weight", "bias")})
    weights = torch.from_numpy(class_weights(labels.counts())).to(device)
    sgd = torch.optim.SGD(
        layer.parameters(), momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    n_steps = max(1, len(labels.rows) // recipe.batch_size)
    for epoch in range(recipe.epochs):
        order = epoch_order(labels.rows, epoch, recipe.random_state)
        for step, rows in enumerate(cut_batches(order, recipe.batch_size)):
            sgd.param_groups[0]["lr"] = learning_rate(recipe, epoch * n_steps + step, n_steps)
            given = torch.from_numpy(np.asarray(features[np.sort(rows)], np.float32)).to(device)
            wanted = torch.from_numpy(label_rows(labels.table, np.sort(rows))).to(device)
            losses = image_losses(layer(given), wanted, "softmax")
            sgd.zero_grad()
            (losses * image_weights(wanted, weights)).mean().backward()
            sgd.step()

    def head(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            return layer(torch.from_numpy(vectors).to(device)).softmax(1).cpu().numpy()

    return head
