"""``vsgraph train``, ``finetune``, ``predict``, ``test``, ``classify`` and ``export-model``."""

import dataclasses
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import click
import numpy as np

from vsgraph.cli.group import main
from vsgraph.cli.options import (
    CRAWL,
    FOLDER,
    JSON,
    NEW,
    QUIET,
    all_options,
    crawl_options,
    read_change,
    reading,
)
from vsgraph.crawls import Crawl, read_crawl
from vsgraph.crawls.truth_table import truth_as_label
from vsgraph.encoders import embed_images, image_encoder
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.result.correction import Correction
from vsgraph.runs import Run
from vsgraph.training import (
    Labels,
    Recipe,
    Start,
    classify,
    corrected_labels,
    judge_model,
    predict,
    train,
    train_frozen,
)
from vsgraph.training.export_model import export_model
from vsgraph.training.forget_rate import estimate_forget_rate
from vsgraph.training.labels import KINDS
from vsgraph.training.recipe import PRESETS, network_to_finetune
from vsgraph.training.validation_set import read_validation, some_names

MODEL = click.argument("model", type=FOLDER)
OUT = click.option("-o", "--out", type=NEW, required=True, help="Folder for the results.")
training_options = all_options([
    OUT,
    click.option("--size", type=click.IntRange(16), help="Side of the pictures in pixels."),
    click.option("--from-scratch", is_flag=True, help="Start from random weights."),
    click.option("--freeze", is_flag=True,
                 help="Keep the network as it is and train a linear head on its vectors."),
    click.option("--preset", type=click.Choice(list(PRESETS)), default="small", show_default=True,
                 help="The recipe to start from; all but small are the paper's."),
    click.option("--epochs", type=click.IntRange(1), help="How often every image is seen."),
    click.option("--set", "changes", multiple=True, metavar="NAME=VALUE",
                 help="Change the recipe, as in batch_size=32 (see docs/training.md)."),
    click.option("--val", type=CRAWL, help="Images of known classes, to judge each epoch."),
    click.option("--co-teaching", is_flag=True, help="Train two networks that teach each other."),
    click.option("--forget-rate", type=click.FloatRange(0, 1, max_open=True),
                 help="Co-teaching, leaving out this share of labels.  [default: an estimate]"),
    click.option("--overwrite", is_flag=True, help="Replace another training in the folder."),
    QUIET,
])  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Options:
    """The options of a training, as they were given."""

    out: Path
    size: int | None
    from_scratch: bool
    freeze: bool
    preset: str
    epochs: int | None
    changes: tuple[str, ...]
    val: Path | None
    co_teaching: bool
    forget_rate: float | None
    overwrite: bool
    quiet: bool

    @classmethod
    def take(cls, options: dict[str, Any]) -> Self:
        """Take the options of a training out of all options of a command."""
        return cls(**{field.name: options.pop(field.name) for field in dataclasses.fields(cls)})

    @property
    def two_networks(self) -> bool:
        """Whether this is Co-teaching."""
        return self.co_teaching or self.forget_rate is not None

    def start(self, network: str) -> Start:
        """Return the network to start from."""
        return Start(network, self.size, pretrained=not self.from_scratch)

    def echo(self, text: str) -> None:
        """Print a line, unless --quiet was given."""
        if not self.quiet:
            click.echo(text)


@main.command("train")
@click.argument("path", metavar="CRAWL", type=CRAWL)
@click.option("--network", default="lite0", show_default=True,
              help="lite0, lite1, lite2, resnet50, a folder or hub name (transformers), timm:NAME, "
              "or a trained model.")  # fmt: skip
@training_options
@crawl_options
def train_command(path: Path, *, network: str, **options: Any) -> None:  # noqa: ANN401
    """Train a network on the labels of CRAWL as they are.

    The result is an image encoder that knows your classes: pass its folder to vsgraph correct as
    --image-encoder. Started again, training resumes. For several processes, start it with
    torchrun -m vsgraph train.
    """
    training = _Options.take(options)
    crawl = read_crawl(path, **reading(**options))
    _train(crawl, training.start(network), _recipe(training, crawl), training)


@main.command("finetune")
@click.argument("path", metavar="RUN", type=FOLDER)
@click.option("--labels", type=click.Choice(KINDS), default="believed", show_default=True,
              help="p_f of all images, p_f without rejected ones (final), p_g, p_c as soft labels, "
              "the web labels, or the decided ones.")  # fmt: skip
@click.option("--network",
              help="The network to fine-tune.  [default: the run's, if trained, or "
              "lite0]")  # fmt: skip
@training_options
def finetune_command(path: Path, *, labels: str, network: str | None, **options: Any) -> None:  # noqa: ANN401
    """Train a network on the corrected labels of RUN.

    The loss is that of Eq. 9 in the paper. A network that is already trained gets half the rate
    and no warm-up, as in the paper. With --freeze, a head is trained on the vectors that RUN keeps
    of its image encoder: minutes for 100,000 images, without a GPU.
    """
    run, training = Run.open(path), _Options.take(options)
    encoder = run.choices.image_encoder
    start = training.start(
        network or network_to_finetune(encoder, co_teaching=training.two_networks)
    )
    recipe = _recipe(training, run.crawl, run.correction)
    chosen = corrected_labels(run.correction, labels)
    if training.freeze:
        start = training.start(network or encoder)
        own = start == Start(encoder) and not run.choices.features
        vectors = run.features if own else None
        _train(run.crawl, start, recipe, training, labels=chosen, vectors=vectors)
        return
    if start.is_trained_model:
        recipe = recipe.for_finetuning()
    _train(run.crawl, start, recipe, training, labels=chosen)


def _recipe(training: _Options, crawl: Crawl, correction: Correction | None = None) -> Recipe:
    """Return the recipe asked for, with an estimate of the forget rate if none was given."""
    changes = dict(read_change(change, "batch_size=32") for change in training.changes)
    if training.epochs is not None:
        changes["epochs"] = training.epochs
    recipe = Recipe.preset(training.preset, **changes)
    rate = training.forget_rate
    if training.co_teaching and rate is None:
        rate = estimate_forget_rate(crawl, correction, progress=not training.quiet)
        training.echo(f"estimate: about {rate:.1%} of the labels are wrong")
    return recipe if rate is None else dataclasses.replace(recipe, forget_rate=rate)


def _train(
    crawl: Crawl,
    start: Start,
    recipe: Recipe,
    training: _Options,
    *,
    labels: Labels | None = None,
    vectors: Any = None,  # noqa: ANN401
) -> None:
    """Train, and print where the model is."""
    started = time.monotonic()
    validation = None
    if training.val is not None:
        validation, others = read_validation(training.val, crawl.class_names)
        if others:
            click.echo(f"left out, not classes of the crawl: {some_names(others)}", err=True)
    how: Any = {"labels": labels, "start": start, "recipe": recipe, "validation": validation,
                "overwrite": training.overwrite, "progress": not training.quiet,
                "tell": training.echo}  # fmt: skip
    if training.freeze:
        trained = train_frozen(crawl, training.out, vectors=vectors, **how)
    else:
        trained = train(crawl, training.out, **how)
    if os.environ.get("RANK", "0") != "0":  # another process of torchrun prints
        return
    for line in crawl.problems.lines():
        training.echo(f"problem: {line}")
    seconds = time.monotonic() - started
    training.echo(f"finished in {seconds:.0f} s; {trained}")


@main.command("predict")
@MODEL
@click.argument("path", metavar="CRAWL", type=CRAWL)
@OUT
@click.option("--runtime", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--precision", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--overwrite", is_flag=True, help="Replace what another model wrote there.")
@crawl_options
def predict_command(
    model: Path, path: Path, out: Path, *, runtime: str, precision: str, overwrite: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Write features and probabilities of CRAWL's images by MODEL, in one pass.

    OUT gets vectors.npy and probs.npy (one row per image, zeros if it cannot be read), and
    labels.csv.
    """
    crawl = read_crawl(path, **reading(**options))
    predict(
        model, crawl, out, runtime=runtime, precision=precision, overwrite=overwrite, progress=True
    )
    for line in crawl.problems.lines():
        click.echo(f"problem: {line}")
    click.echo(f"{len(crawl):,} images; saved in {out.resolve()}")


@main.command("test")
@MODEL
@click.option("--data", type=CRAWL, required=True, help="Images of known classes.")
@click.option("--open-set", is_flag=True, help="Allow other classes; they should get no label.")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.2, show_default=True,
              help="Open set: give a label above this probability.")  # fmt: skip
@JSON
@crawl_options
def test_command(
    model: Path, *, data: Path, open_set: bool, threshold: float, as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Judge MODEL on images of known classes: top-1 and top-5, or mAP, C-F1 and O-F1.

    (To judge the labels of a run, see vsgraph evaluate.) The classes are the truth if the data has
    it, else its labels. With --json, also the figures of each class.
    """
    checkpoint = Checkpoint.load(model)
    read = reading(**options)
    crawl = read_crawl(data, **read | {"columns": read["columns"] or truth_as_label(data) or None})
    with tempfile.TemporaryDirectory() as folder:
        embedding = embed_images(
            crawl, image_encoder(model), Path(folder) / "vectors", progress=True
        )
        probs = np.asarray(embedding.probs)
        tested = judge_model(checkpoint, probs, crawl, with_unknown=open_set, threshold=threshold)
    click.echo(json.dumps(tested.to_dict(), indent=2) if as_json else str(tested))


@main.command("classify")
@MODEL
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="Classes shown.")
@JSON
def classify_command(model: Path, images: tuple[Path, ...], *, top: int, as_json: bool) -> None:
    """Print the likeliest classes of IMAGES, files or folders, by MODEL."""
    for picture in classify(model, images, top=top):
        click.echo(json.dumps(picture.to_dict()) if as_json else str(picture))


@main.command("export-model")
@MODEL
@click.option("-o", "--out", type=NEW, required=True, help="File: .onnx, or .pt2 (torch.export).")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def export_model_command(model: Path, out: Path, *, overwrite: bool) -> None:
    """Write MODEL as a file that loads without vsgraph."""
    click.echo(f"written to {export_model(model, out, overwrite=overwrite).resolve()}")
