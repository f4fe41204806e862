"""What the commands of this folder have in common: options, checks before, results after."""

import dataclasses
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import vsgraph
from cost import Plan, tell_cost
from smoke_trees import small_study
from study import Study
from vsgraph.common.files import write_whole
from vsgraph.common.formatting import markdown_table, number, plain
from vsgraph.errors import InputError, VSGraphError
from vsgraph.training import Start
from work import XLNET, Work, n_epochs

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
TOLERANCE = 0.03  # of a half of the classes that is not the paper's
STARTED = time.time()
_OPTIONS = (
    click.argument("root", type=FOLDER, required=False),
    click.option("-o", "--out", type=FOLDER, required=True,
                 help="Folder of the data set's models and results; the commands share it."),
    click.option("--imagenet", type=FOLDER,
                 help="ImageNet's validation images, one folder per class.  [ROOT/imagenet/val]"),
    click.option("--classes", type=FILE, help="Google-500: file of its wnids.  [a half, drawn]"),
    click.option("--network", help="The network, see vsgraph train.  [the paper's ResNet50]"),
    click.option("--text-encoder", default=XLNET, show_default=True, help="Or minilm, or another."),
    click.option("--raw-text", is_flag=True, help="Encode texts as they are, not cleaned."),
    click.option("--runtime", default="auto", show_default=True, help="See vsgraph embed."),
    click.option("--processes", "n_processes", type=click.IntRange(1), default=1,
                 show_default=True, help="Processes of a training, one a GPU."),
    click.option("--forget-rate", type=click.FloatRange(0, 1, max_open=True),
                 help="Co-teaching: share of labels to leave out.  [estimated]"),
    click.option("--anyway", is_flag=True, help="Go on with other counts than the paper's."),
    click.option("--dry-run", is_flag=True, help="Check the data and say what it takes."),
    click.option("--smoke", is_flag=True, help="Do it on a small made-up tree, with tiny models."),
)  # fmt: skip


def paper_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, and its errors one line."""

    @functools.wraps(command)
    def said(**given: Any) -> None:  # noqa: ANN401
        try:
            command(**given)
        except VSGraphError as error:
            raise click.ClickException(str(error)) from error

    for option in reversed(_OPTIONS):
        said = option(said)
    return said


def open_work(study: Study, given: Mapping[str, Any]) -> Work:
    """Return the data and the folder of a command, made up for a smoke run."""
    choices = dict(given)
    smoke, network = choices.pop("smoke"), choices.pop("network")
    choices.pop("dry_run")
    if smoke:
        study, made = small_study(study, choices["out"] / "smoke")
        if choices["text_encoder"] != XLNET:
            made.pop("text_encoder")
        choices |= made
    if choices["root"] is None or not choices["root"].is_dir():
        raise InputError("give ROOT, the folder of the data set, or say --smoke")
    if network is not None:
        start = Start(network, pretrained=study.start.pretrained)
        study = dataclasses.replace(study, start=start)
    imagenet = choices.pop("imagenet") or choices["root"] / "imagenet" / "val"
    choices |= {name: choices[name].resolve() for name in ("root", "out")}
    return Work(study=study, imagenet=imagenet.resolve(), tell=click.echo, **choices)


def begin(
    work: Work, models: Sequence[str], given: Mapping[str, Any], *, open_set: bool = False,
    points: int = 0, tuned: str = "",
) -> bool:  # fmt: skip
    """Check the data, say what it takes; return whether to go on."""
    work.tell(f"{work.study.name}: {work.root}")
    check_counts(work, open_set=open_set)
    epochs = work.study.recipe.epochs
    plan = Plan(
        len(work.crawl), len(work.crawl.class_names),
        sum(len(work.test_set(name, all_classes=open_set)) for name in work.study.tests),
        {name: max(0, epochs - n_epochs(work.place(name))) for name in models}, points, tuned,
    )  # fmt: skip
    for line in tell_cost(work.study, plan, work.out):
        work.tell(line)
    return not given["dry_run"]


def count(work: Work) -> dict[str, int]:
    """Count what the data set holds."""
    found = {"classes": len(work.crawl.class_names), "training images": len(work.crawl)}
    for name, pattern in work.study.lists.items():
        path = next(work.root.glob(pattern), None)
        found[name] = len(path.read_text().split()) if path else 0
    for name in work.study.tests:
        found[f"{name} test images"] = len(work.test_set(name))
    return found


def check_counts(work: Work, *, open_set: bool = False) -> None:
    """Refuse a data set with other counts than the paper's, unless that is wanted."""
    found, wanted = count(work), dict(work.study.counts)
    if open_set:
        for name in work.study.tests:
            other = len(work.test_set(name, all_classes=True)) - found[f"{name} test images"]
            found[f"{name} images of other classes"] = other
            wanted[f"{name} images of other classes"] = wanted[f"{name} test images"]
    if work.study.half and work.classes is None:
        low, high = wanted["training images"]
        wanted["training images"] = int(low * (1 - TOLERANCE)), int(high * (1 + TOLERANCE))
        work.tell("the paper does not print its half of the classes: one is drawn (--classes FILE)")
    wrong = [
        f"{found[name]:,} {name}, not {_told(*limits)}"
        for name, limits in wanted.items()
        if not limits[0] <= found[name] <= limits[1]
    ]
    for name, many in found.items():
        work.tell(f"{many:,} {name}")
    if wrong and not work.anyway:
        raise InputError(f"{work.root} is not the paper's: {'; '.join(wrong)}; --anyway goes on")
    for line in wrong:
        work.tell(f"not the paper's: {line}")


def _told(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def paper_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return measures beside the paper's, in percent.

    >>> print(paper_table([{"method": "p_f", "found": {"top-1": 0.5}, "paper": {"top-1": 68.14}}]))
    | method | top-1 | paper |
    |---|---|---|
    | p_f | 50.00 | 68.14 |
    """
    names = list(rows[0]["found"])
    head = ["method", *(part for name in names for part in (name, "paper"))]
    lines = [
        [row["method"], *(part for name in names for part in _pair(row, name))] for row in rows
    ]
    return markdown_table(head, lines)


def _pair(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    return number(100 * row["found"][name], ".2f"), number(row["paper"].get(name), ".2f")


def finish(
    work: Work, name: str, title: str, page: str, values: Mapping[str, Any], *,
    given: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write the result as JSON and as Markdown, with what it was made by."""
    made = {
        "data": work.study.name,
        "smoke": given["smoke"],
        "command": f"python {' '.join(sys.argv)}",
        "commit": _commit(),
        "version": vsgraph.__version__,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds of this call": round(time.time() - STARTED, 1),
        "counts": count(work),
        "text encoder": work.text_encoder,
        "texts cleaned": not work.raw_text,
        "start": dataclasses.asdict(work.study.start),
        "recipe": dataclasses.asdict(work.study.recipe),
        "settings": dataclasses.asdict(work.study.settings),
    }
    folder = work.by_text
    write_whole(folder / f"{name}.json", json.dumps(plain({**values, "made": made}), indent=1))
    note = "Made-up data (`--smoke`): the figures mean nothing.\n\n" if given["smoke"] else ""
    foot = f"{work.study.name}, {work.text_encoder}, seed {work.study.recipe.random_state}, "
    foot += f"commit {made['commit']}, {made['finished']}; `{made['command']}`"
    write_whole(folder / f"{name}.md", f"# {title}\n\n{note}{page}\n\n{foot}\n")
    work.tell(f"\n{page}\n\nwritten to {folder / name}.md and .json")


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    return told.stdout.strip() or "unknown"
