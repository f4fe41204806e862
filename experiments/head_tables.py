"""What corrected labels are worth: all trials of heads.py, their tables and figures.

    python experiments/head_tables.py ../shared/data/coco-web ../shared/data/coco-web-b \
        --write docs/results.md

Means and deviations are over seeds, differences by a paired bootstrap over the test photos. Every
trial is kept: a run that was stopped goes on.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bars import draw_bars
from heads import NETWORKS, PURITIES, Split, run
from lessons import CNN, OURS
from pages import publish
from trials import CAPTIONS, TEXTS, spread
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines

N_DRAWS = 2000
CURVES = ("cleanlab, flagged photos removed", "p_f, of the paper", CNN, OURS)
LABELS = ["labels", "likeliest right, in set / ambiguous, %", "wrong web labels found, AUROC",
          "coverage at 90 % right", "at 95 %", "left to learn from, %",
          "right of those, %"]  # fmt: skip
HEADS = ["learned from", "top-1, %", "ambiguous", "top-5", "C-F1", "vsgraph ahead by, points"]
Made = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


def tables(made: Made) -> dict[str, list[str]]:
    """Return the tables by the mark that they stand at."""
    parts = {}
    for (crawl, kind), trials in made.items():
        found = [trial["found"] for trial in trials]
        parts[f"method labels, {crawl}, {kind}"] = [*label_table(found), "", stamp(trials)]
        for network in NETWORKS:
            name = f"heads, {network}, {crawl}, {kind}"
            parts[name] = [*head_table(found, network), "", stamp(trials)]
    return parts


def label_table(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one row per method: how right its labels are."""

    def cell(name: str, key: str, **how: Any) -> str:  # noqa: ANN401
        return spread([trial[name]["labels"][key] for trial in found], **how)

    rows = [
        [
            name,
            f"{cell(name, 'in set')} / {cell(name, 'ambiguous')}",
            *(cell(name, key, digits=d, scale=1)
              for key, d in (("wrong", 3), ("coverage 90", 2), ("coverage 95", 2))),
            *(cell(name, key) for key in ("left", "right of left")),
        ]
        for name in found[0]
    ]  # fmt: skip
    return markdown_table(LABELS, rows).splitlines()


def head_table(found: Sequence[Mapping[str, Any]], network: str) -> list[str]:
    """Return one row per method: how right a head on a network is that learned its labels."""
    rows = []
    for name in (name for name in found[0] if network in found[0][name]):
        of = [trial[name][network] for trial in found]
        cells = [spread([f[key] for f in of]) for key in ("top_1", "ambiguous", "top_5", "c_f1")]
        ahead, reach = difference(found, OURS, name, network)
        rows.append([name, *cells, "-" if name == OURS else f"{ahead:+.1f} ± {reach:.1f}"])
    return markdown_table(HEADS, rows).splitlines()


def hits(found: Sequence[Mapping[str, Any]], name: str, network: str) -> NDArray[np.float64]:
    """Return how often each test photo is right, over the seeds."""
    judged = [trial[name][network] for trial in found]
    packed = [np.frombuffer(bytes.fromhex(of["hits"]), np.uint8) for of in judged]
    n = judged[0]["n"]
    return np.mean([np.unpackbits(bits, count=n) for bits in packed], axis=0)


def difference(
    found: Sequence[Mapping[str, Any]], one: str, other: str, network: str
) -> tuple[float, float]:
    """Return by how many points one method is ahead, and half of the 95 % interval.

    By a paired bootstrap: test photos are drawn again, and both are judged on the same ones.
    """
    apart = hits(found, one, network) - hits(found, other, network)
    n = len(apart)
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=N_DRAWS)
    means = 100 * counts @ apart / n
    low, high = np.percentile(means, [2.5, 97.5])
    return 100 * float(apart.mean()), (high - low) / 2


def stamp(trials: Sequence[Mapping[str, Any]]) -> str:
    """Say how a table was made."""
    commits = ", ".join(dict.fromkeys(c for trial in trials for c in trial["commits"]))
    minutes = sum(trial["seconds"] for trial in trials) / 60
    return (
        f"*`python experiments/head_tables.py` at {commits}; seeds 0 to {len(trials) - 1}; "
        f"{minutes:.0f} min on one thread.*"
    )


def figures(made: Made) -> dict[str, str]:
    """Draw the top-1 of heads on ResNet50 as bars, and what can be left at a share of right labels.

    A panel for each crawl.
    """
    drawn = {"purity": draw_covered(made)}
    for kind in dict.fromkeys(kind for _, kind in made):
        panels = {}
        for (crawl, own), trials in made.items():
            if own == kind:
                found = [trial["found"] for trial in trials]
                panels[crawl] = {
                    name: _bar(found, name, "resnet50")
                    for name in found[0]
                    if "resnet50" in found[0][name]
                }
        title = f"Top-1 of heads on ResNet50, in percent, with 95 % intervals; {kind}"
        drawn[f"heads-{kind.split()[0]}"] = draw_bars(panels, title=title, strong=OURS)
    return drawn


def draw_covered(made: Made) -> str:
    """Draw the share of the photos over the share of right labels, captions as they are."""
    panels = {
        crawl: {
            name: list(zip(
                PURITIES,
                np.mean([t["found"][name]["labels"]["covered"] for t in trials], axis=0).tolist(),
                strict=True,
            ))
            for name in CURVES
        }
        for (crawl, kind), trials in made.items()
        if kind == CAPTIONS
    }  # fmt: skip
    title = "Photos that can be left at a share of right labels"
    return draw_lines(
        panels, title=title, x_name="share of right labels", y_name="share of the photos"
    )


def _bar(found: Sequence[Mapping[str, Any]], name: str, network: str) -> tuple[float, float]:
    """Return the mean top-1 and half of its interval, over test photos and seeds."""
    top = [100 * trial[name][network]["top_1"] for trial in found]
    spreads = hits(found, name, network).std() / np.sqrt(len(hits(found, name, network)))
    return float(np.mean(top)), 1.96 * 100 * float(spreads)


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seeds", default=5, show_default=True, help="Trials of each table.")
@click.option("--write", type=click.Path(exists=True, path_type=Path), help="Page for the tables.")
def main(folders: tuple[Path, ...], seeds: int, write: Path | None) -> None:
    """Train heads on the data sets in FOLDERS, with captions and with web-like text."""
    warnings.simplefilter("ignore", VSGraphWarning)
    splits = [Split.of(folder) for folder in folders]
    made: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for seed in range(seeds):
        for split in splits:
            for kind in TEXTS:
                made.setdefault((split.name, kind), []).append(run(split, seed, kind))
    publish(tables(made), figures(made), write)


if __name__ == "__main__":
    main()
