"""The classifier on COCO-Web: ``python experiments/classifiers.py FOLDER --write docs/results.md``.

A network is trained on the web labels of four fifths of the photos, then fine-tuned on the labels
of each method, and judged on the fifth whose ids are divisible by 5, by what people marked. All is
kept below --out: a run that was stopped goes on.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import vsgraph
from coco_web_data import CocoWeb, read_coco_web, web_like
from encode import describe, text_vectors
from keeping import cache_folder
from pages import put
from vsgraph import Settings
from vsgraph.common.formatting import markdown_table, percent
from vsgraph.crawls import Crawl
from vsgraph.encoders import Embedding, embed_images, image_encoder
from vsgraph.training import Labels, Recipe, Start, corrected_labels, train, web_labels

PAPER = Settings(
    text_evidence=False, anchors_per_class=50, weight_decay=1e-6, solver="adam", epochs=500,
    learning_rate=0.01,
)  # fmt: skip
TEXTS = ("captions as they are", "web-like text")
NOISE = 0.191  # true share of wrong labels, which Co-teaching may know


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    side: int
    epochs: int
    tune_epochs: int

    def recipe(self, **changes: Any) -> Recipe:  # noqa: ANN401
        """Return the recipe of the first training."""
        few_steps = {"learning_rate": 0.015, "batch_size": 32, "warmup_epochs": 0.5}
        return Recipe(epochs=self.epochs, **few_steps, smallest_crop=0.35, **changes)


def photos(data: CocoWeb, rows: NDArray[np.intp], folder: Path) -> Crawl:
    """Return some photos as a crawl: web labels, and what they show."""
    truth = [np.flatnonzero(data.truth[row]).tolist() for row in rows]
    table = pa.table(
        {
            "image": [f"images/{data.images[row].name}" for row in rows],
            "web_labels": pa.array(data.web_labels[rows], pa.int32()),
            "truth": pa.array(truth, pa.list_(pa.int32())),
        }
    )
    return Crawl("COCO-Web", folder, table, tuple(data.class_names))


def judge(model: Path, test: Crawl, ambiguous: NDArray[np.bool_], out: Path) -> dict[str, float]:
    """Return how often a model is right: in-set photos, those of ambiguous queries, top-5."""
    made = embed_images(test, image_encoder(model), out, overwrite=True)
    probs, shown = np.asarray(made.probs), np.asarray(test.truth.toarray())
    in_set = shown.any(axis=1)
    right = shown[np.arange(len(shown)), probs.argmax(axis=1)]
    return {
        "all": float(right[in_set].mean()),
        "ambiguous": float(right[in_set & ambiguous].mean()),
        "top_5": vsgraph.judge.metrics.top_k_accuracy(probs[in_set], shown[in_set], k=5),
    }


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What all trainings have in common."""

    data: CocoWeb
    learn: Crawl
    rows: NDArray[np.intp]
    size: Size
    out: Path

    def pretrain(self) -> Path:
        """Train on the web labels as they are."""
        start = Start("lite0", self.size.side)
        train(self.learn, self.out / "web", start=start, recipe=self.size.recipe(), tell=click.echo)
        return self.out / "web"

    def co_teach(self) -> Path:
        """Train two networks that teach each other, as long as the others in all."""
        recipe = self.size.recipe(forget_rate=NOISE, forget_epochs=self.size.epochs)
        recipe = dataclasses.replace(recipe, epochs=self.size.epochs + self.size.tune_epochs)
        start = Start("lite0", self.size.side)
        train(self.learn, self.out / "co", start=start, recipe=recipe, tell=click.echo)
        return self.out / "co"

    def tune(self, name: str, labels: Labels) -> Path:
        """Fine-tune the first network on other labels."""
        recipe = dataclasses.replace(self.size.recipe(), epochs=self.size.tune_epochs)
        train(
            self.learn, self.out / name, labels=labels, start=Start(str(self.out / "web")),
            recipe=recipe.for_finetuning(), tell=click.echo,
        )  # fmt: skip
        return self.out / name

    def labels(self, text: NDArray[Any]) -> dict[str, Labels]:
        """Return what each method would have the network learn."""
        seen = Embedding.load(self.out / "seen")
        meaning = text_vectors(describe(self.data.wnids))
        given = (text, meaning, self.data.web_labels[self.rows])
        paper = vsgraph.correct(seen.vectors, *given, seen.probs, settings=PAPER)
        general = embed_images(self.learn, image_encoder(), self.out / "general")
        probe = vsgraph.linear_probe(general.vectors, given[2], n_classes=len(meaning), n_kept=36)
        ours = vsgraph.correct(general.vectors, *given, probe)
        return {
            "p_c": corrected_labels(paper, "cnn"),
            "p_g": corrected_labels(paper, "gnn"),
            "p_f": corrected_labels(paper, "final"),
            "vsgraph default": corrected_labels(ours, "final"),
        }


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path), help="Where everything is kept.")
@click.option("--side", default=96, show_default=True, help="Of the pictures.")
@click.option("--epochs", default=3, show_default=True, help="On web labels.")
@click.option("--tune-epochs", default=2, show_default=True, help="On the labels of a method.")
@click.option("--every", default=1, show_default=True, help="Take every so many-th photo.")
@click.option("--write", type=click.Path(path_type=Path), help="Page to put the table into.")
def main(
    folder: Path, *, out: Path | None, side: int, epochs: int, tune_epochs: int, every: int,
    write: Path | None,
) -> None:  # fmt: skip
    """Train, fine-tune, judge, and write the table."""
    started = time.monotonic()
    data = read_coco_web(folder, every=every)
    out = out or cache_folder() / f"classifiers-{side}-{epochs}-{tune_epochs}-{every}"
    ids = np.array([int(path.stem) for path in data.images])
    rows, held = np.flatnonzero(ids % 5), np.flatnonzero(ids % 5 == 0)
    made = Experiment(data, photos(data, rows, folder), rows, Size(side, epochs, tune_epochs), out)
    lines = run(made, photos(data, held, folder), data.ambiguous[held])
    hours = (time.monotonic() - started) / 3600
    table = markdown_table(["learned from", "top-1, all / ambiguous", "top-5"], lines)
    told = (
        f"EfficientNet-Lite0 from ImageNet weights at {side} px, {epochs} epochs on web labels (32 "
        f"a step, rate 0.015), then {tune_epochs} at half the rate; {len(rows):,} photos to learn "
        f"from, {len(held):,} to judge by; one seed. `python experiments/classifiers.py FOLDER "
        f"--side {side} --epochs {epochs} --tune-epochs {tune_epochs}`, {hours:.1f} h on 2 cores."
    )
    click.echo(f"{told}\n\n{table}")
    if write is not None:
        page = put(write.read_text(encoding="utf-8"), "classifiers", [told, "", table])
        write.write_text(page, encoding="utf-8")


def run(made: Experiment, test: Crawl, ambiguous: NDArray[np.bool_]) -> list[list[str]]:
    """Train every network that is not there yet, and judge it."""
    lines: list[list[str]] = []

    def tell(name: str, model: Path) -> None:
        kept = made.out / f"{model.name}.json"
        if not kept.exists():
            found = judge(model, test, ambiguous, made.out / "judged")
            kept.write_text(json.dumps(found))
        found = json.loads(kept.read_text())
        cell = f"{percent(found['all'])} / {percent(found['ambiguous'])}"
        lines.append([name, cell, percent(found["top_5"])])
        click.echo(f"{name}: {cell}")

    first = made.pretrain()
    tell("web labels", first)
    embed_images(made.learn, image_encoder(first), made.out / "seen", overwrite=True)
    tell("web labels, fine-tuned on them again", made.tune("again", web_labels(made.learn)))
    for kind in TEXTS:
        text = text_vectors(made.data.texts)[made.rows]
        text = text if kind == TEXTS[0] else web_like(text, seed=0)
        for name, labels in made.labels(text).items():
            if kind == TEXTS[1] and name in {"p_c", "p_g"}:
                continue
            short = f"{name} {kind}".replace(" ", "-").replace(",", "")
            tell(f"{name}, {kind}", made.tune(short, labels))
    tell(f"Co-teaching, forget rate {NOISE}", made.co_teach())
    return lines


if __name__ == "__main__":
    main()
