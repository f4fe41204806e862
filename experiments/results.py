"""Results on COCO-Web: ``python experiments/results.py FOLDER --write docs/results.md``.

Runs every experiment for every seed and kind of text, and puts its tables and figures at their
marks in the page. Each result is kept: a run that was stopped goes on, and one after a change of
code makes anew what the change touches.
"""

import dataclasses
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import anchor_quality
import labels_with_text
import labels_without_text
import open_set
import progressive_rounds
import setting_sweeps
import several_labels
from answers import right_cell
from coco_web_data import read_coco_web
from keeping import keep
from pages import put
from trials import TEXTS, Vectors, draw, load_vectors
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table

EXPERIMENTS = (
    labels_without_text,
    labels_with_text,
    anchor_quality,
    several_labels,
    open_set,
    setting_sweeps,
    progressive_rounds,
)
README_ROWS = (
    "web labels",
    "cleanlab: flagged labels replaced by p_c's",
    "text alone: nearest label meaning",
    "label propagation from our anchors",
    "p_f printed, m = 10",
    "p_f released, m = 50",
    "vsgraph default, no p_c",
    labels_with_text.DEFAULT,
)

Kept = Mapping[str, Any]


@dataclasses.dataclass
class Results:
    """What the experiments found, by name and kind of text, and what is made of it for the page."""

    found: dict[str, dict[str, list[Mapping[str, Any]]]] = dataclasses.field(default_factory=dict)
    tables: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    figures: dict[str, str] = dataclasses.field(default_factory=dict)

    def add(self, module: Any, vectors: Vectors, *, seeds: int) -> None:  # noqa: ANN401
        """Run an experiment for every kind of text and seed, or find it done."""
        kept = {
            kind: [run_trial(module, vectors, kind, seed) for seed in range(seeds)]
            for kind in module.KINDS
        }
        found = {kind: [trial["found"] for trial in trials] for kind, trials in kept.items()}
        how = stamp(module, kept)
        self.found[module.__name__] = found
        self.tables |= {name: [*t, "", how] for name, t in module.tables(found).items()}
        drawn = module.figures(found) if hasattr(module, "figures") else {}
        self.figures |= drawn
        self.tables |= {f"figure {name}": [f"![{name}](images/{name}.svg)"] for name in drawn}


def run_trial(module: Any, vectors: Vectors, kind: str, seed: int) -> Kept:  # noqa: ANN401
    """Run one trial, or find it done."""
    trial = draw(vectors, seed=seed, kind=kind)
    found = keep(module, trial.about, lambda: module.run(trial))
    click.echo(f"{module.__name__}, {kind}, seed {seed}: {found['seconds']:.0f} s", err=True)
    return found


def stamp(module: Any, kept: Mapping[str, Sequence[Kept]]) -> str:  # noqa: ANN401
    """Say how a table was made."""
    trials = [trial for of_kind in kept.values() for trial in of_kind]
    commits = ", ".join(dict.fromkeys(trial["commit"] for trial in trials))
    seeds = len(next(iter(kept.values())))
    minutes = sum(trial["seconds"] for trial in trials) / 60
    return (
        f"*`make results` (experiments/{module.__name__}.py) at {commits}; seeds 0 to {seeds - 1}; "
        f"{minutes:.0f} min on {os.cpu_count()} shared cores, {platform.machine()}.*"
    )


def readme_table(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[str]:
    """Return the short table: right labels of some methods, a column a kind of text."""
    (blind,) = found[labels_without_text.__name__].values()
    rows = []
    for name in README_ROWS:
        columns = [found[labels_with_text.__name__][kind] for kind in TEXTS]
        columns = [blind, blind] if name in blind[0]["labels"] else columns
        cells = [right_cell([trial["labels"][name] for trial in trials]) for trials in columns]
        bold = "**" if name.startswith("**") else ""
        rows.append([name, *(f"{bold}{cell}{bold}" for cell in cells)])
    return markdown_table(["labels", *TEXTS], rows).splitlines()


def write_page(page: Path, results: Results) -> None:
    """Put tables at their marks, and figures into the folder of images beside the page."""
    text = page.read_text(encoding="utf-8")
    for name, lines in results.tables.items():
        text = put(text, name, lines)
    page.write_text(text, encoding="utf-8")
    for name, svg in results.figures.items():
        if f"images/{name}.svg" in text:
            (page.parent / "images" / f"{name}.svg").write_text(svg, encoding="utf-8")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--every", default=1, show_default=True, help="Use every so many-th photo only.")
@click.option("--seeds", default=5, show_default=True, help="Trials of each experiment.")
@click.option("--only", multiple=True, help="Run these experiments only, by name.")
@click.option("--write", multiple=True, type=click.Path(exists=True, path_type=Path),
              help="Put tables at their marks in these pages.")  # fmt: skip
def main(
    folder: Path, every: int, seeds: int, only: tuple[str, ...], write: tuple[Path, ...]
) -> None:
    """Run the experiments on COCO-Web in FOLDER."""
    warnings.simplefilter("ignore", VSGraphWarning)  # classes of a few photos have few anchors
    vectors = load_vectors(read_coco_web(folder, every=every))
    results = Results()
    for module in EXPERIMENTS:
        if not only or module.__name__ in only:
            results.add(module, vectors, seeds=seeds)
    if {labels_without_text.__name__, labels_with_text.__name__} <= set(results.found):
        results.tables["short table"] = readme_table(results.found)
    for page in write:
        write_page(page, results)
    if not write:
        for name, lines in results.tables.items():
            click.echo("\n".join(["", f"## {name}", "", *lines]))


if __name__ == "__main__":
    main()
