"""Tables and figures of head_cases.py.

    python experiments/case_tables.py ../shared/data/coco-web ../shared/data/coco-web-b \
        --write docs/results.md

Every trial is kept: a run that was stopped goes on.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import head_cases
from head_cases import FLIPPED
from heads import Split
from keeping import keep
from lessons import CNN, CO_TEACHING, OURS, WEB
from pages import publish
from trials import spread
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines

OPEN = {"C-P": "c_p", "C-R": "c_r", "C-F1": "c_f1"}
Found = Sequence[Mapping[str, Any]]


def trials(case: Callable[..., dict[str, Any]], split: Split, seeds: int, *more: Any) -> Found:  # noqa: ANN401
    """Run a case for every seed, or find it done; say how it was made at the end."""
    kept = []
    for seed in range(seeds):
        about = {"case": case.__name__, "crawl": split.name, "seed": seed, "more": list(more)}
        kept.append(keep(head_cases, about, lambda s=seed: case(split, s, *more)))
        click.echo(f"{about}: {kept[-1]['seconds']:.0f} s", err=True)
    commits = ", ".join(dict.fromkeys(trial["commit"] for trial in kept))
    minutes = sum(trial["seconds"] for trial in kept) / 60
    how = (
        f"*`python experiments/case_tables.py` at {commits}; seeds 0 to {seeds - 1}; "
        f"{minutes:.0f} min on one thread.*"
    )
    return [*(trial["found"] for trial in kept), {"how": how}]


def rows_of(found: Found, keys: Sequence[str]) -> list[list[str]]:
    """Return one row per method, means and deviations over the seeds."""
    return [[name, *(spread([t[name][key] for t in found]) for key in keys)] for name in found[0]]


def open_table(split: Split, seeds: int) -> list[str]:
    """Return the paper's table 4: half of the classes are unknown."""
    *found, last = trials(head_cases.unknown_classes, split, seeds)
    columns = {f"{reading}: {name}": f"{reading} {key}" for reading in ("highest", "every")
               for name, key in OPEN.items()}  # fmt: skip
    columns["unknown photos without a label"] = "silent"
    rows = rows_of(found, list(columns.values()))
    return [*markdown_table(["learned from", *columns], rows).splitlines(), "", last["how"]]


def several_table(split: Split, seeds: int) -> list[str]:
    """Return the paper's table 3: several labels an image."""
    *found, last = trials(head_cases.several, split, seeds)
    rows = rows_of(found, ["c_f1", "o_f1", "map"])
    head = ["learned from", "C-F1, K = 3", "O-F1, K = 3", "mAP"]
    return [*markdown_table(head, rows).splitlines(), "", last["how"]]


def flip_table(by_share: Mapping[float, Found]) -> list[str]:
    """Return top-1 for each share of flipped labels."""
    names = by_share[FLIPPED[0]][0]
    rows = [
        [name, *(spread([t[name]["top_1"] for t in found[:-1]]) for found in by_share.values())]
        for name in names
    ]
    head = ["learned from", *(f"{share:.0%} wrong" for share in by_share)]
    last = by_share[FLIPPED[0]][-1]["how"]
    return [*markdown_table(head, rows).splitlines(), "", last]


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seeds", default=5, show_default=True, help="Trials of each table.")
@click.option("--write", type=click.Path(exists=True, path_type=Path), help="Page for the tables.")
def main(folders: tuple[Path, ...], seeds: int, write: Path | None) -> None:
    """Run all cases on the data sets in FOLDERS."""
    warnings.simplefilter("ignore", VSGraphWarning)
    tables: dict[str, list[str]] = {}
    flips: dict[str, dict[str, Any]] = {}
    for split in (Split.of(folder, ["lite0"]) for folder in folders):
        tables[f"heads, open set, {split.name}"] = open_table(split, seeds)
        if split.learn.data.query_hits.any():  # which queries hit is not recorded of every crawl
            tables[f"heads, several labels, {split.name}"] = several_table(split, seeds)
        by_share = {s: trials(head_cases.flipped, split, seeds, s) for s in FLIPPED}
        tables[f"flipped, {split.name}"] = flip_table(by_share)
        flips[split.name] = flip_curves(by_share)
    title = "Top-1 of heads on Lite0 after flipping labels"
    drawn = draw_lines(flips, title=title, x_name="share of wrong labels", y_name="top-1")
    publish(tables, {"flipped": drawn}, write)


def flip_curves(by_share: Mapping[float, Found]) -> dict[str, list[tuple[float, float]]]:
    """Return a line for each method: top-1 over the share of flipped labels."""
    names = (WEB, CO_TEACHING, "CurriculumNet", "self-learning by prototypes", CNN, OURS)
    return {
        name: [(s, float(np.mean([t[name]["top_1"] for t in found[:-1]])))
               for s, found in by_share.items()]
        for name in names
    }  # fmt: skip


if __name__ == "__main__":
    main()
