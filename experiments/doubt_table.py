"""How far the labels of finished runs can be believed, as a table: one column per run.

The runs are made by the command alone, for example

    vsgraph correct ../shared/data/coco-web-b -o run-b --meanings meanings-b.csv --no-report
    python experiments/doubt_table.py run-b

The meanings are the ids of `classes.json` (`--meanings-of FOLDER TABLE` writes such a table). The
truth of the crawl judges; a correction never sees it.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import vsgraph
from coco_web_data import AMBIGUOUS
from ranked import auroc, calibration_error, coverage_at
from vsgraph.common.formatting import markdown_table
from vsgraph.method.decisions import least_belief
from vsgraph.runs import Run


def measure(path: Path) -> dict[str, str]:
    """Return the measures of a run by name."""
    run = Run.open(path)
    correction, crawl = run.correction, run.outputs.crawl()
    if crawl.truth is None:
        raise SystemExit(f"{path}: the crawl has no truth")
    shown = crawl.truth.toarray().astype(bool)
    rows, web = np.arange(len(correction)), correction.web_labels
    likeliest, belief = correction.final_probs.argmax(), correction.final_probs.max()
    right, clean, in_set = shown[rows, likeliest], shown[rows, web], shown.any(axis=1)
    wrong_of_class = np.bincount(web, ~clean) / np.maximum(np.bincount(web), 1)
    ambiguous = in_set & (wrong_of_class > AMBIGUOUS)[web]
    left = correction.final_labels >= 0
    right_left = shown[rows, np.maximum(correction.final_labels, 0)][left].mean()
    estimate = correction.estimate or {"left": float("nan"), "web": float("nan")}
    return {
        "web labels right": f"{100 * clean.mean():.1f} %",
        "estimated": f"{100 * estimate['web']:.1f} %",
        "coverage at 90 % right, by confidence": f"{coverage_at(belief, right, 0.9):.2f}",
        "coverage at 95 % right": f"{coverage_at(belief, right, 0.95):.2f}",
        "AUROC, likeliest label right": f"{auroc(belief, right):.3f}",
        "AUROC, wrong web labels": f"{auroc(correction.label_quality, clean):.3f}",
        "likeliest right, in set / ambiguous": (
            f"{100 * right[in_set].mean():.1f} / {100 * right[ambiguous].mean():.1f}"
        ),
        "photos of none of the classes removed": f"{100 * (~left)[~in_set].mean():.0f} %",
        "calibration error of confidence": f"{calibration_error(belief, right):.3f}",
        "export: coverage, right": f"{100 * left.mean():.1f}, {100 * right_left:.1f}",
        "export: right, by estimate": f"{100 * estimate['left']:.1f}",
    } | {
        f"export --purity {purity}: coverage, right": _export(correction, shown, purity)
        for purity in (0.95, 0.97)
    }


def _export(correction: vsgraph.Correction, shown: NDArray[np.bool_], purity: float) -> str:
    """Return the share of images in an export of some purity, and how many labels are right."""
    left = correction.final_labels >= 0
    left &= correction.confidence >= least_belief(correction.confidence[left], purity)
    rows = np.flatnonzero(left)
    right = shown[rows, correction.final_labels[rows]].mean()
    return f"{100 * left.mean():.1f}, {100 * right:.1f}"


def write_meanings(folder: Path, table: Path) -> None:
    """Write the ids of a data set's classes as a table of meanings."""
    classes = json.loads((folder / "classes.json").read_text())
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("class", "wnid"), *((name, entry["wnid"]) for name, entry in classes.items())]
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--meanings-of", nargs=2, type=Path, metavar=("FOLDER", "TABLE"))
    options = parser.parse_args()
    if options.meanings_of:
        write_meanings(*options.meanings_of)
    columns = {path.name: measure(path) for path in options.runs}
    if columns:
        names = list(next(iter(columns.values())))
        rows = [[name, *(column[name] for column in columns.values())] for name in names]
        print(markdown_table(["measure", *columns], rows))


if __name__ == "__main__":
    main()
