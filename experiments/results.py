"""Results on COCO-Web: ``python experiments/results.py A B --write docs/results.md``.

Runs every experiment for every seed and kind of text, and puts its tables and figures at their
marks in the page. The first folder is for all experiments; how far labels can be believed is
measured on each. Every result is kept: a run that was stopped goes on, and one after a change of
code makes anew what the change touches. `make results` also runs the other tables of the page.
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
import doubted_labels
import progressive_rounds
import setting_sweeps
import several_labels
from coco_web_data import read_coco_web
from keeping import keep
from pages import publish
from trials import TEXTS, Vectors, draw, load_vectors, spread
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table

EXPERIMENTS = (anchor_quality, several_labels, setting_sweeps, progressive_rounds)
README_ROWS = (
    "web labels",
    "cleanlab, flagged photos removed",
    "**vsgraph**",
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

    def add_doubted(self, name: str, vectors: Vectors, *, seeds: int) -> None:
        """Measure how far labels of a crawl can be believed."""
        for kind in TEXTS:
            kept = [run_trial(doubted_labels, vectors, kind, seed) for seed in range(seeds)]
            found = [trial["found"] for trial in kept]
            self.found.setdefault(name, {})[kind] = found
            how = stamp(doubted_labels, {kind: kept})
            self.tables[f"doubted labels, {name}, {kind}"] = [
                *doubted_labels.table(found), "", how
            ]  # fmt: skip


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
    """Return the short table: what is exported and how right it is, for each crawl and text."""
    head = ["crawl, text", "labels", "exported, %", "of them right, %",
            "coverage at 90 / 95 % right"]  # fmt: skip
    rows = []
    for crawl, by_kind in found.items():
        for kind, trials in by_kind.items():
            for name in README_ROWS:
                of = [trial[name] for trial in trials]
                coverage = [
                    spread([f[f"coverage {share}"] for f in of], digits=2, scale=1)
                    for share in (90, 95)
                ]
                cells = [spread([f[key] for f in of]) for key in ("left", "right of left")]
                cells.append("-" if "-" in coverage else " / ".join(coverage))
                bold = "**" if name.startswith("**") else ""
                rows.append([f"{crawl}, {kind}", name, *(f"{bold}{cell}{bold}" for cell in cells)])
    return markdown_table(head, rows).splitlines()


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--every", default=1, show_default=True, help="Use every so many-th photo only.")
@click.option("--seeds", default=5, show_default=True, help="Trials of each experiment.")
@click.option("--only", multiple=True, help="Run these experiments only, by name.")
@click.option("--write", multiple=True, type=click.Path(exists=True, path_type=Path),
              help="Put tables at their marks in these pages.")  # fmt: skip
def main(
    folders: tuple[Path, ...], every: int, seeds: int, only: tuple[str, ...],
    write: tuple[Path, ...],
) -> None:  # fmt: skip
    """Run the experiments on the data sets in FOLDERS."""
    warnings.simplefilter("ignore", VSGraphWarning)  # classes of a few photos have few anchors
    crawls = {folder.name: load_vectors(read_coco_web(folder, every=every)) for folder in folders}
    results = Results()
    for module in EXPERIMENTS:
        if not only or module.__name__ in only:
            results.add(module, next(iter(crawls.values())), seeds=seeds)
    if not only or doubted_labels.__name__ in only:
        for name, vectors in crawls.items():
            results.add_doubted(name, vectors, seeds=seeds)
        results.tables["short table"] = readme_table({name: results.found[name] for name in crawls})
    for page in write or (None,):
        publish(results.tables, results.figures, page)


if __name__ == "__main__":
    main()
