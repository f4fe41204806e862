"""Good texts, many of them missing: how many labels are left with text and without, and right.

    python experiments/missing_texts.py DATA meanings.csv runs

Two texts of five of COCO-Web are removed, the others stay as they are.
"""

import json
import random
from pathlib import Path

import click
import numpy as np

import vsgraph
from vsgraph.common.formatting import markdown_table

REMOVED = 0.4


@click.command(help=__doc__)
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@click.argument("meanings", type=click.Path(path_type=Path, exists=True))
@click.argument("runs", type=click.Path(path_type=Path))
def main(data: Path, meanings: Path, runs: Path) -> None:
    """Run and print the table."""
    runs.mkdir(parents=True, exist_ok=True)
    lines = (data / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["file"]: row for row in map(json.loads, lines)}
    draw = random.Random(0)  # noqa: S311
    for row in rows.values():
        if draw.random() < REMOVED:
            row |= {"title": "", "description": []}
    crawl = runs / "missing-texts.jsonl"
    crawl.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), encoding="utf-8")
    run = vsgraph.run(
        crawl, runs / "missing-texts", images=data, meanings=meanings, with_report=False
    )
    found = run.to_arrow().to_pylist()
    table = []
    for name, has_text in (("with text", True), ("without", False)):
        some = [row for row in found if bool(rows[row["image"]]["title"]) == has_text]
        left = [row for row in some if row["final_label"]]
        right = [row["final_label"] in rows[row["image"]]["truth_in_set"] for row in left]
        sure = [row["confidence"] for row in left]
        shares = len(left) / len(some), np.mean(right), np.mean(sure)
        table.append([name, len(some), *(f"{100 * share:.1f}" for share in shares)])
    head = ["images", "number", "left, %", "of them right, %", "by their confidence, %"]
    click.echo(markdown_table(head, table))


if __name__ == "__main__":
    main()
