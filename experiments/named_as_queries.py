"""A crawl of eight classes of COCO-Web named as their queries, most of their noise of other senses.

    python experiments/named_as_queries.py ../shared/data/coco-web crawl-8 meanings-8.csv
    vsgraph correct crawl-8 -o run-8 --meanings meanings-8.csv --no-report

'board' finds surfboards, but also skateboards and cutting boards. The photos are copied.
"""

import argparse
import csv
import json
import shutil
from pathlib import Path

NAMES = {
    "bear": "bear", "orange": "orange", "wine glass": "glass", "dog": "dog",
    "surfboard": "board", "apple": "apple", "handbag": "bag", "mouse": "mouse",
}  # fmt: skip
KEYS = ("id", "file", "web_label", "title", "description", "truth")


def write(source: Path, crawl: Path, table: Path) -> None:
    """Write the photos of the eight classes, and the ids of their meanings."""
    classes = json.loads((source / "classes.json").read_text())
    lines = []
    for line in (source / "metadata.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["web_label"] in NAMES:
            truth = [NAMES[name] for name in row["truth"] if name in NAMES]
            row |= {"web_label": NAMES[row["web_label"]], "truth": truth}
            lines.append(json.dumps({key: row[key] for key in KEYS}))
            (crawl / row["file"]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / row["file"], crawl / row["file"])
    (crawl / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    named = {NAMES[name]: entry for name, entry in classes.items() if name in NAMES}
    (crawl / "classes.json").write_text(json.dumps(named))
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("class", "wnid"), *((name, entry["wnid"]) for name, entry in named.items())]
        )


def main() -> None:
    """Write the crawl."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("source", "crawl", "table"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    write(options.source, options.crawl, options.table)


if __name__ == "__main__":
    main()
