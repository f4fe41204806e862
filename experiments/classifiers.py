"""Whole networks on COCO-Web: ``python experiments/classifiers.py FOLDER --write docs/results.md``.

A network is trained on the web labels of four fifths of the photos (nine tenths of them, by seed),
then fine-tuned on the labels of each method, and judged on the fifth whose ids are divisible by 5,
by what people marked. p_c, p_g and p_f are the paper's: by the features and probabilities of that
network. All is kept in the cache folder: a run that was stopped goes on, seeds can be run side by
side (--seed), and the table is written after each network from those that are there. Networks whose
labels changed are trained again. heads.py asks the same of frozen networks in minutes.
"""

import dataclasses
import itertools
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

HEAD = ["learned from", "seeds", "top-1, %", "ambiguous", "top-5"]
METHODS = {
    "web": WEB,
    "again": "web labels, fine-tuned on them again",
    "p_f": "p_f, of the paper",
    "ours": OURS,
    "p_c": "p_c, of the paper",
    "p_g": "p_g, of the paper",
    "co": CO_TEACHING,
}
ROUNDS = (("web", "again"), ("p_f",), ("ours",), ("p_c",), ("p_g",), ("co",))  # over all seeds


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

    def run(self, method: str) -> dict[str, Any]:
        """Train a network, or go on with it, and judge it; the same labels are learned once."""
        labels, kept = self.labels(method), self.out / f"{method}.json"
        digest = labels.digest()[:8]
        if kept.exists() and (found := json.loads(kept.read_text()))["labels"] == digest:
            return found
        model = self.train(method, labels)
        found = {**self.judge(model), "labels": digest, "commit": commit()}
        kept.write_text(json.dumps(found))
        return found

    def labels(self, method: str) -> Labels:
        """Return what a method teaches."""
        trial, crawl = self.trial, photos(self.trial.data)
        if method == "ours":
            return corrected_labels(trial.correct(cnn=trial.probe, words=words_of(trial)))
        if method not in {"p_c", "p_g", "p_f"}:
            return web_labels(crawl)
        seen = embed_images(crawl, image_encoder(self.first), self.out / "seen", overwrite=True)
        paper = trial.correct(PAPER_50, seen.probs, features=seen.vectors, graph=None)
        return corrected_labels(paper, {"p_c": "cnn", "p_g": "gnn", "p_f": "believed"}[method])

    @property
    def first(self) -> Path:
        """The network that was trained on the web labels."""
        return self.out / "web"

    def train(self, method: str, labels: Labels) -> Path:
        """Train on the web labels, or fine-tune the network that was trained on them."""
        folder, start, recipe = self.out / method, Start("lite0", self.side), self.recipe
        if method == "co":
            wrong, both = float((~self.trial.data.clean).mean()), recipe.epochs + self.tune_epochs
            recipe = dataclasses.replace(
                recipe, forget_rate=wrong, epochs=both, forget_epochs=recipe.epochs
            )
        elif method != "web":
            folder, start = self.out / f"{method}-{labels.digest()[:8]}", Start(str(self.first))
            recipe = dataclasses.replace(recipe, epochs=self.tune_epochs).for_finetuning()
        click.echo(f"seed {recipe.random_state}, {METHODS[method]}")
        train(
            photos(self.trial.data), folder, labels=labels, start=start, recipe=recipe,
            save_seconds=120, tell=click.echo,
        )  # fmt: skip
        return folder

    def judge(self, model: Path) -> dict[str, float]:
        """Return how often a model is right: in-set photos, those of ambiguous queries, top-5."""
        made = embed_images(
            photos(self.test), image_encoder(model), self.out / "judged", overwrite=True
        )
        probs, rows = np.asarray(made.probs), np.flatnonzero(self.test.in_set)
        right, ambiguous = self.test.right(probs.argmax(axis=1))
        top_5 = top_k_accuracy(probs[rows], self.test.truth[rows], k=5)
        return {"top_1": right, "ambiguous": ambiguous, "top_5": top_5}


def table(one: Experiment) -> list[str]:
    """Return the table of all networks that are there, of one seed and of the others."""
    rows, commits = [], {}
    for method, name in METHODS.items():
        files = sorted(one.out.parent.glob(f"*/{method}.json"))
        found = [json.loads(file.read_text()) for file in files]
        commits |= {f["commit"]: None for f in found}
        cells = [spread([f[key] for f in found]) for key in ("top_1", "ambiguous", "top_5")]
        rows += [[name, str(len(found)), *cells]] if found else []
    recipe, test = one.recipe, one.test
    told = (
        f"*`python experiments/classifiers.py FOLDER --side {one.side} --epochs "
        f"{recipe.epochs} --tune-epochs {one.tune_epochs}` at {', '.join(commits)}; "
        f"EfficientNet-Lite0 from ImageNet weights, {len(test.images):,} photos to judge by.*"
    )
    return [*markdown_table(HEAD, rows).splitlines(), "", told]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--side", default=160, show_default=True, help="Of the pictures.")
@click.option("--epochs", default=10, show_default=True, help="On web labels.")
@click.option("--tune-epochs", default=5, show_default=True, help="On the labels of a method.")
@click.option("--seed", "seeds", default=(0, 1), multiple=True, help="Trials; by default 0 and 1.")
@click.option("--every", default=1, show_default=True, help="Take every so many-th photo.")
@click.option(
    "--method", "chosen", multiple=True, type=click.Choice([*METHODS]), help="Only these."
)
@click.option("--write", type=click.Path(path_type=Path), help="Page to put the table into.")
def main(
    folder: Path, *, side: int, epochs: int, tune_epochs: int, seeds: tuple[int, ...],
    every: int, chosen: tuple[str, ...], write: Path | None,
) -> None:  # fmt: skip
    """Train, fine-tune, judge, and write the table after each network."""
    warnings.simplefilter("ignore", VSGraphWarning)
    vectors = load_vectors(read_coco_web(folder, every=every))
    learn, held = learnt_from(vectors)
    out = cache_folder() / f"classifiers-{side}-{epochs}-{tune_epochs}-{every}"
    trials = [
        Experiment(
            draw(learn, seed=seed, kind=CAPTIONS), vectors.data.take(held),
            Recipe(epochs=epochs, random_state=seed), tune_epochs, side, out / str(seed),
        )
        for seed in seeds
    ]  # fmt: skip
    for methods, trial in itertools.product(ROUNDS, trials):
        for method in methods:
            if not chosen or method in chosen:
                trial.run(method)
                publish({"classifiers": table(trial)}, {}, write)


if __name__ == "__main__":
    main()
