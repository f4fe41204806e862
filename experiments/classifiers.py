"""Whole networks on COCO-Web: ``python experiments/classifiers.py FOLDER --write docs/results.md``.

A network is trained on the web labels of four fifths of the photos (nine tenths of them, by seed),
then fine-tuned on the labels of each method, and judged on the fifth whose ids are divisible by 5,
by what people marked. p_c, p_g and p_f are the paper's: by the features and probabilities of that
network. All is kept below --out: a run that was stopped goes on. Two seeds at 160 pixels take a
night on two cores; heads.py asks the same of frozen networks in minutes.
"""

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from coco_web_data import CocoWeb, read_coco_web
from doubted_labels import words_of
from keeping import cache_folder, commit
from lessons import CO_TEACHING, OURS, PAPER_50, WEB, learnt_from
from pages import publish
from trials import CAPTIONS, Trial, draw, load_vectors, spread
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table
from vsgraph.crawls import Crawl
from vsgraph.encoders import embed_images, image_encoder
from vsgraph.judge.metrics import top_k_accuracy
from vsgraph.training import Labels, Recipe, Start, corrected_labels, train, web_labels

HEAD = ["learned from", "top-1, %", "ambiguous", "top-5"]


def photos(data: CocoWeb) -> Crawl:
    """Return photos as a crawl: web labels, and what they show."""
    truth = [np.flatnonzero(row).tolist() for row in data.truth]
    table = pa.table(
        {
            "image": [f"images/{path.name}" for path in data.images],
            "web_labels": pa.array(data.web_labels, pa.int32()),
            "truth": pa.array(truth, pa.list_(pa.int32())),
        }
    )
    return Crawl("COCO-Web", data.images[0].parent.parent, table, tuple(data.class_names))


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The trainings of one seed."""

    trial: Trial
    test: CocoWeb
    recipe: Recipe  # of the first training
    tune_epochs: int
    side: int
    out: Path

    def train(self, name: str, labels: Labels | None = None, **changes: Any) -> Path:  # noqa: ANN401
        """Train on the web labels, or fine-tune the network that was trained on them."""
        start, recipe = Start("lite0", self.side), dataclasses.replace(self.recipe, **changes)
        if labels is not None:
            start = Start(str(self.out / "web"))
            recipe = dataclasses.replace(recipe, epochs=self.tune_epochs).for_finetuning()
        train(
            photos(self.trial.data), self.out / name, labels=labels, start=start, recipe=recipe,
            tell=click.echo,
        )  # fmt: skip
        return self.out / name

    def run(self) -> dict[str, dict[str, float]]:
        """Train every network that is not there yet, and judge it."""
        trial, crawl = self.trial, photos(self.trial.data)
        first = self.train("web")
        found = {WEB: self.judge(first)}
        again = self.train("again", web_labels(crawl))
        found["web labels, fine-tuned on them again"] = self.judge(again)
        wrong = float((~trial.data.clean).mean())
        both = self.recipe.epochs + self.tune_epochs
        co = self.train("co", forget_rate=wrong, epochs=both, forget_epochs=self.recipe.epochs)
        found[CO_TEACHING] = self.judge(co)
        seen = embed_images(crawl, image_encoder(first), self.out / "seen", overwrite=True)
        paper = trial.correct(PAPER_50, seen.probs, features=seen.vectors, graph=None)
        ours = trial.correct(cnn=trial.probe, words=words_of(trial))
        kinds = {"p_c": "cnn", "p_g": "gnn", "p_f": "believed"}
        taught = {f"{name}, of the paper": corrected_labels(paper, k) for name, k in kinds.items()}
        for name, labels in (taught | {OURS: corrected_labels(ours)}).items():
            folder = name.strip("*").split(",")[0]
            found[name] = self.judge(self.train(folder, labels))
        return found

    def judge(self, model: Path) -> dict[str, float]:
        """Return how often a model is right: in-set photos, those of ambiguous queries, top-5."""
        kept = self.out / f"{model.name}.json"
        if not kept.exists():
            made = embed_images(
                photos(self.test), image_encoder(model), self.out / "judged", overwrite=True
            )
            probs, rows = np.asarray(made.probs), np.flatnonzero(self.test.in_set)
            right, ambiguous = self.test.right(probs.argmax(axis=1))
            top_5 = top_k_accuracy(probs[rows], self.test.truth[rows], k=5)
            kept.write_text(json.dumps({"top_1": right, "ambiguous": ambiguous, "top_5": top_5}))
        return json.loads(kept.read_text())


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path), help="Where everything is kept.")
@click.option("--side", default=160, show_default=True, help="Of the pictures.")
@click.option("--epochs", default=10, show_default=True, help="On web labels.")
@click.option("--tune-epochs", default=5, show_default=True, help="On the labels of a method.")
@click.option("--seeds", default=2, show_default=True, help="Trials.")
@click.option("--every", default=1, show_default=True, help="Take every so many-th photo.")
@click.option("--write", type=click.Path(path_type=Path), help="Page to put the table into.")
def main(
    folder: Path, *, out: Path | None, side: int, epochs: int, tune_epochs: int, seeds: int,
    every: int, write: Path | None,
) -> None:  # fmt: skip
    """Train, fine-tune, judge, and write the table."""
    warnings.simplefilter("ignore", VSGraphWarning)
    vectors = load_vectors(read_coco_web(folder, every=every))
    learn, held = learnt_from(vectors)
    out = out or cache_folder() / f"classifiers-{side}-{epochs}-{tune_epochs}-{every}"
    found = [
        Experiment(
            draw(learn, seed=seed, kind=CAPTIONS), vectors.data.take(held),
            Recipe(epochs=epochs, random_state=seed), tune_epochs, side, out / str(seed),
        ).run()
        for seed in range(seeds)
    ]  # fmt: skip
    rows = [[name, *(spread([f[name][key] for f in found]) for key in found[0][name])]
            for name in found[0]]  # fmt: skip
    told = (
        f"*`python experiments/classifiers.py FOLDER --side {side} --epochs {epochs} --tune-epochs "
        f"{tune_epochs}` at {commit()}; seeds 0 to {seeds - 1}; EfficientNet-Lite0 from ImageNet "
        f"weights, {len(held):,} photos to judge by.*"
    )
    publish({"classifiers": [*markdown_table(HEAD, rows).splitlines(), "", told]}, {}, write)


if __name__ == "__main__":
    main()
