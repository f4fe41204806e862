"""Labels for new images beside those of a run that has them: every fifth image of COCO-Web is new.

    python experiments/newcomers.py DATA meanings.csv runs --write docs/growing.md

One run corrects all images, another one those whose id is not divisible by five. The latter then
labels the others: once without labels and texts, once with texts, once with both.
"""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

import vsgraph
from pages import put
from vsgraph.common.formatting import markdown_table

FIELDS = {
    "neither": ("id", "file"),
    "text": ("id", "file", "title", "description"),
    "web label": ("id", "file", "web_label"),
    "both": ("id", "file", "title", "description", "web_label"),
}
HEAD = ["what is known of new images", "labeled, %", "of them right, %", "by their confidence, %",
        "likeliest right, %", "as a run on all labels them, %"]  # fmt: skip


def write_table(path: Path, rows: list[dict[str, Any]], fields: tuple[str, ...] = ()) -> Path:
    """Write rows as JSON lines, with some fields or all."""
    kept = [{name: row[name] for name in fields or row} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    return path


def measures(
    likeliest: list, final: list, confidence: list, truth: list[set], of_run: list
) -> list[float]:
    """Return shares in percent: labeled, right of these, and so on, see the head of the table."""
    labeled = [label is not None for label in final]
    right = [label in shown for label, shown in zip(final, truth, strict=True)]
    guessed = [label in shown for label, shown in zip(likeliest, truth, strict=True) if shown]
    same = [one == other for one, other in zip(final, of_run, strict=True)]
    right_share = sum(right) / max(sum(labeled), 1)
    sure = np.mean(np.array(confidence)[labeled])
    shares = np.mean(labeled), right_share, sure, np.mean(guessed), np.mean(same)
    return [100 * float(share) for share in shares]


@click.command(help=__doc__)
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@click.argument("meanings", type=click.Path(path_type=Path, exists=True))
@click.argument("runs", type=click.Path(path_type=Path))
@click.option("--write", type=click.Path(path_type=Path), multiple=True)
def main(data: Path, meanings: Path, runs: Path, write: tuple[Path, ...]) -> None:
    """Run, label and print the table."""
    runs.mkdir(parents=True, exist_ok=True)
    lines = (data / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    new = [row for row in rows if row["id"] % 5 == 0]
    known = [row for row in rows if row["id"] % 5]
    options: Any = {"images": data, "meanings": meanings, "with_report": False, "progress": True}
    whole = vsgraph.run(write_table(runs / "all.jsonl", rows), runs / "all", **options)
    part = vsgraph.run(write_table(runs / "known.jsonl", known), runs / "known", **options)
    of_all = {row["image"]: row for row in whole.to_arrow().to_pylist()}
    mine = [of_all[row["file"]] for row in new]
    truth = [set(row["truth_in_set"]) for row in new]
    final = [row["final_label"] for row in mine]
    names = whole.correction.class_names
    number = {image: place for place, image in enumerate(of_all)}
    best = whole.correction.final_probs.argmax()
    likeliest = [names[best[number[row["file"]]]] for row in new]
    sure = [row["confidence"] for row in mine]
    table = [["a run on all images", *measures(likeliest, final, sure, truth, final)]]
    for name, fields in FIELDS.items():
        path = write_table(runs / f"new-{fields[-1]}.jsonl", new, fields)
        found = part.label(path, images=data, progress=True).table
        said = [found[column].to_pylist() for column in ("likeliest", "label", "confidence")]
        table.append([name, *measures(*said, truth, final)])
        click.echo(table[-1])
    text = markdown_table(HEAD, [[row[0], *(f"{share:.1f}" for share in row[1:])] for row in table])
    click.echo(text)
    for path in write:
        page = path.read_text(encoding="utf-8")
        path.write_text(put(page, "labels of new images", [text]), encoding="utf-8")


if __name__ == "__main__":
    main()
