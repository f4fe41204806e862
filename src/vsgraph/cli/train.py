"""``vsgraph train``, ``finetune``, ``predict``, ``test``, ``classify`` and ``export-model``."""

import csv
import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from vsgraph.cli.group import main
from vsgraph.cli.options import CRAWL, FOLDER, crawl_options, read_change, reading
from vsgraph.common.files import write_whole
from vsgraph.crawls import Crawl, read_crawl
from vsgraph.encoders import Embedding, embed_images, encode_pictures, image_encoder
from vsgraph.encoders.sources.checkpoints import Checkpoint, is_checkpoint
from vsgraph.errors import InputError
from vsgraph.judge.noise import noise_rate, wrong_share
from vsgraph.method.probe import linear_probe
from vsgraph.runs import Run
from vsgraph.training import Recipe, Start, Trained, corrected_labels, judge_model, train
from vsgraph.training.export_model import export_model
from vsgraph.training.labels import KINDS
from vsgraph.training.recipe import PRESETS

MODEL = click.argument("model", type=FOLDER)
OUT = click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_TRAINING = (
    click.option("--preset", type=click.Choice(list(PRESETS)), default="small", show_default=True,
                 help="The recipe to start from; the others are the paper's."),
    click.option("--epochs", type=click.IntRange(1), help="Times every image is seen."),
    click.option("--set", "changes", multiple=True, metavar="NAME=VALUE",
                 help="Change the recipe, as in batch_size=32 (see docs/training.md)."),
    click.option("--val", type=CRAWL, help="Images of known classes, to judge each epoch by."),
    click.option("--co-teaching", is_flag=True, help="Two networks that teach each other."),
    click.option("--forget-rate", type=click.FloatRange(0, 1, max_open=True),
                 help="Co-teaching, leaving out this share of labels.  [default: an estimate]"),
    click.option("--save-minutes", type=click.FloatRange(0), default=10, show_default=True,
                 help="How often all is kept within an epoch."),
    click.option("--tensorboard", is_flag=True, help="Write for TensorBoard, too."),
    click.option("--overwrite", is_flag=True, help="Replace another training in the folder."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors."),
)  # fmt: skip


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a training."""
    for option in reversed(_TRAINING):
        command = option(command)
    return command


@main.command("train")
@click.argument("path", metavar="CRAWL", type=CRAWL)
@OUT
@click.option("--network", default="lite0", show_default=True,
              help="lite0, lite1, lite2, resnet50, a folder or hub name (transformers), timm:NAME, "
              "or a trained model.")  # fmt: skip
@click.option("--size", type=click.IntRange(16), help="Side of the pictures.")
@click.option("--from-scratch", is_flag=True, help="Start from random weights.")
@training_options
@crawl_options
def train_command(
    path: Path,
    out: Path,
    *,
    network: str,
    size: int | None,
    from_scratch: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Train a network on the labels of CRAWL as they are.

    The result is an image encoder that knows your classes: give its folder to vsgraph correct as
    --image-encoder. Started again, it goes on where it was. For several processes start it by
    torchrun -m vsgraph train.
    """
    given = _taken(options)
    crawl = read_crawl(path, **reading(**options))
    _train(crawl, out, Start(network, size, pretrained=not from_scratch), given)


@main.command("finetune")
@click.argument("run", type=FOLDER)
@OUT
@click.option("--labels", type=click.Choice(KINDS), default="final", show_default=True,
              help="p_f, p_g, p_c as soft labels, web labels, or the decided ones.")  # fmt: skip
@click.option("--network", help="What to fine-tune.  [default: the run's, if trained, or lite0]")
@click.option("--size", type=click.IntRange(16), help="Side of the pictures.")
@click.option("--from-scratch", is_flag=True, help="Start from random weights.")
@training_options
def finetune_command(
    run: Path,
    out: Path,
    *,
    labels: str,
    network: str | None,
    size: int | None,
    from_scratch: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Train a network on the corrected labels of RUN.

    The loss is that of Eq. 9 in the paper. A network that is trained already is given half the rate
    and no warm-up, as there.
    """
    found = Run.open(run)
    given = _taken(options)
    encoder = str(found.record["choices"]["image_encoder"])
    two = given["co_teaching"] or given["forget_rate"] is not None
    trained = is_checkpoint(Path(encoder)) and not two
    chosen = network or (encoder if trained else "lite0")
    start = Start(chosen, size, pretrained=not from_scratch)
    made = corrected_labels(found.correction, labels)
    if given["co_teaching"] and given["forget_rate"] is None:
        given["forget_rate"] = round(wrong_share(found.correction), 3)
    _train(found.crawl, out, start, given, labels=made, finetune=is_checkpoint(Path(chosen)))


def _taken(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a training out of all options."""
    names = ("preset", "epochs", "changes", "val", "co_teaching", "forget_rate", "save_minutes",
             "tensorboard", "overwrite", "quiet")  # fmt: skip
    return {name: options.pop(name) for name in names}


def _train(
    crawl: Crawl, out: Path, start: Start, given: dict[str, Any], *, labels: Any = None,  # noqa: ANN401
    finetune: bool = False,
) -> None:  # fmt: skip
    """Train, and say what came of it."""
    started = time.monotonic()
    tell: Any = None if given["quiet"] else click.echo
    recipe = _recipe(crawl, given, tell)
    made = train(
        crawl, out, labels=labels, start=start,
        recipe=recipe.for_finetuning() if finetune else recipe,
        validation=_validation(crawl, given["val"]), save_seconds=60 * given["save_minutes"],
        tensorboard=given["tensorboard"], overwrite=given["overwrite"],
        progress=not given["quiet"], tell=tell,
    )  # fmt: skip
    if tell and os.environ.get("RANK", "0") == "0":
        _say_end(made, crawl, time.monotonic() - started)


def _say_end(made: Trained, crawl: Crawl, seconds: float) -> None:
    """Say what a training left."""
    kept = made.history[made.kept_epoch - 1]
    judged = next((f"{name} {kept[name]:.1%}" for name in ("top_1", "mAP") if name in kept), None)
    best = f", kept epoch {made.kept_epoch} ({judged.replace('_', ' ')})" if judged else ""
    for line in crawl.problems.lines():
        click.echo(f"problem: {line}")
    click.echo(f"finished in {seconds:.0f} s{best}; the model is {made.path.resolve()}")


def _validation(crawl: Crawl, path: Path | None) -> Crawl | None:
    """Read the images to judge by, in the classes of the crawl."""
    if path is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "classes.txt"
        names.write_text("\n".join(crawl.class_names), encoding="utf-8")
        found = read_crawl(path, classes=names)
    others = sorted(set(read_crawl(path).class_names) - set(crawl.class_names))
    told = f"{', '.join(map(repr, others[:3]))}{' ...' * (len(others) > 3)}"
    if not len(found):
        raise InputError(f"{path} has no image of the crawl's classes to judge by, only of {told}")
    if others:
        click.echo(f"left out of {path.name}, for the crawl has no such class: {told}", err=True)
    return found


def _recipe(crawl: Crawl, given: dict[str, Any], tell: Any) -> Recipe:  # noqa: ANN401
    """Put a recipe together; without a rate to forget at, estimate it."""
    changes = dict(read_change(change, "batch_size=32") for change in given["changes"])
    if given["epochs"] is not None:
        changes["epochs"] = given["epochs"]
    if given["co_teaching"] or given["forget_rate"] is not None:
        rate = given["forget_rate"]
        changes["forget_rate"] = estimate_noise(crawl) if rate is None else rate
        if rate is None and tell:
            tell(f"about {changes['forget_rate']:.1%} of the labels are wrong, by estimate")
    known = Recipe.from_dict(changes)  # refuses names and values before anything else
    preset = PRESETS[given["preset"]]()
    return Recipe.from_dict({**vars(preset), **{name: getattr(known, name) for name in changes}})


def estimate_noise(crawl: Crawl) -> float:
    """Estimate how many labels are wrong by a linear probe of the default features."""
    if crawl.has_several_labels:
        raise InputError("with several labels an image the share to forget must be given")
    with tempfile.TemporaryDirectory() as folder:
        made = embed_images(crawl, image_encoder(), Path(folder) / "features", progress=True)
        probs = linear_probe(
            made.vectors, crawl.web_labels, n_classes=len(crawl.class_names), n_kept=32
        )
        return round(min(noise_rate(probs, crawl.web_labels), 0.9), 3)


@main.command("predict")
@MODEL
@click.argument("path", metavar="CRAWL", type=CRAWL)
@OUT
@click.option("--runtime", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--precision", default="auto", show_default=True, help="See vsgraph embed.")
@click.option("--overwrite", is_flag=True, help="Replace what another model left there.")
@crawl_options
def predict_command(
    model: Path, path: Path, out: Path, *, runtime: str, precision: str, overwrite: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Write features and probabilities of CRAWL's images by MODEL, in one pass.

    OUT/vectors.npy, OUT/probs.npy (a row an image, zeros where it cannot be read), OUT/labels.csv.
    """
    kept = Checkpoint.load(model)
    crawl = read_crawl(path, **reading(**options))
    encoder = image_encoder(model, runtime=runtime, precision=precision)
    made = embed_images(crawl, encoder, out, overwrite=overwrite, progress=True)
    write_whole(out / "labels.csv", _label_table(crawl, made, kept.class_names))
    for line in crawl.problems.lines():
        click.echo(f"problem: {line}")
    click.echo(f"{len(crawl):,} images; saved in {out.resolve()}")


def _label_table(crawl: Crawl, made: Embedding, class_names: tuple[str, ...]) -> str:
    """Return the likeliest class of each image as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["image", "label", "probability"])
    names = crawl.table["image"].to_pylist()
    for name, probs in zip(names, np.asarray(made.probs), strict=True):
        best = int(np.argmax(probs))
        known = probs[best] > 0
        table.writerow(
            [name, class_names[best] if known else "", f"{probs[best]:.4f}" if known else ""]
        )
    return text.getvalue()


@main.command("test")
@MODEL
@click.option("--data", type=CRAWL, required=True, help="Images of known classes.")
@click.option("--open-set", is_flag=True, help="Other classes are there: they should get no label.")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.2, show_default=True,
              help="Open set: give a label beyond this probability.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write a Markdown page.")
@JSON
@crawl_options
def test_command(
    model: Path, *, data: Path, open_set: bool, threshold: float, out: Path | None, as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Judge MODEL on images of known classes: top-1 and top-5, or mAP, C-F1 and O-F1."""
    kept = Checkpoint.load(model)
    crawl = read_crawl(data, **reading(**options))
    with tempfile.TemporaryDirectory() as folder:
        made = embed_images(crawl, image_encoder(model), Path(folder) / "made", progress=True)
        found = judge_model(
            kept, np.asarray(made.probs), crawl, with_unknown=open_set,
            threshold=threshold,
        )  # fmt: skip
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
    if out is not None:
        write_whole(out, found.to_markdown())


@main.command("classify")
@MODEL
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="Classes shown.")
@JSON
def classify_command(model: Path, images: tuple[Path, ...], *, top: int, as_json: bool) -> None:
    """Say what IMAGES show, by MODEL."""
    files = [one for image in images for one in _files(image)]
    names = Checkpoint.load(model).class_names
    found, reasons = encode_pictures(image_encoder(model), files)
    if found.probs is None:
        raise InputError(f"{model} gives no probabilities")
    for file, probs, reason in zip(files, found.probs, reasons, strict=True):
        best: Any = [] if reason else np.argsort(-probs, kind="stable")[:top]
        shown = {names[i]: round(float(probs[i]), 4) for i in best}
        told = ", ".join(f"{name} {value:.1%}" for name, value in shown.items()) or reason
        line = {"image": str(file), "classes": shown, **({"problem": reason} if reason else {})}
        click.echo(json.dumps(line) if as_json else f"{file}: {told}")


def _files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder."""
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


@main.command("export-model")
@MODEL
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True,
              help="File: .onnx, or .pt2 (torch.export).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def export_model_command(model: Path, out: Path, *, overwrite: bool) -> None:
    """Write MODEL as a file that loads without vsgraph."""
    click.echo(f"written to {export_model(model, out, overwrite=overwrite).resolve()}")
