"""Copies made on purpose, found by vsgraph and by other tools: precision, recall, processor time.

    python experiments/copies.py make COCO-WEB PHOTOS      # photos and copies, in a new folder
    python experiments/copies.py vsgraph PHOTOS            # then cleanvision, datalab, imagededup
    python experiments/copies.py table PHOTOS              # what was found, as a table

Each tool runs in an environment of its own; only `vsgraph` needs this package. The vectors that
Datalab is given are those of vsgraph, ``PHOTOS/vectors``.
"""

import collections
import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np

Pairs = set[tuple[int, int]]


def processor_seconds() -> float:
    """Return the time that this process and those it waited for have computed."""
    return sum(os.times()[:4])


def read(photos: Path) -> list[dict]:
    """Return what each file is."""
    return [json.loads(line) for line in (photos / "truth.jsonl").read_text().splitlines()]


def groups_to_pairs(groups: list[list[int]]) -> Pairs:
    """Return all pairs within groups."""
    return {pair for group in groups for pair in itertools.combinations(sorted(group), 2)}


def by_vsgraph(photos: Path) -> tuple[Pairs, float]:
    """Measure, search and compare as a run does."""
    from vsgraph.crawls import read_crawl
    from vsgraph.encoders import embed_images, image_encoder
    from vsgraph.method.graph import visual_graph
    from vsgraph.pictures.measures import MEASURES
    from vsgraph.screening import find_copies, measure_pictures, screen

    crawl = read_crawl(photos / "crawl.csv")
    vectors = embed_images(crawl, image_encoder("lite0"), photos / "vectors").vectors
    graph = visual_graph(vectors, n_neighbors=5)  # a run has both anyway
    started = processor_seconds()
    measured = measure_pictures(crawl, photos / "measures")
    squares = measured.vectors[:, len(MEASURES) :]
    groups = find_copies(measured.keys, squares, graph).groups
    took = processor_seconds() - started
    screening = screen(measured, groups, crawl.labels_matrix())
    print(*screening.lines(crawl), sep="\n")
    return groups_to_pairs([rows.tolist() for rows in screening.members()]), took


def by_vectors(photos: Path) -> tuple[Pairs, float]:
    """Compare vectors alone, as for a crawl without pictures."""
    from vsgraph.encoders import Embedding
    from vsgraph.method.graph import visual_graph
    from vsgraph.screening import find_copies

    vectors = Embedding.load(photos / "vectors").vectors
    graph = visual_graph(vectors, n_neighbors=5)
    started = processor_seconds()
    groups = find_copies(None, None, graph).groups
    took = processor_seconds() - started
    rows = collections.defaultdict(list)
    for row, group in enumerate(groups.tolist()):
        rows[group].append(row)
    return groups_to_pairs(list(rows.values())), took


def by_cleanvision(photos: Path) -> tuple[Pairs, float]:
    """Ask cleanvision for exact and near duplicates (perceptual hash)."""
    from cleanvision import Imagelab

    rows = read(photos)
    number = {str((photos / row["file"]).resolve()): i for i, row in enumerate(rows)}
    started = processor_seconds()
    lab = Imagelab(filepaths=list(number), verbose=False)
    lab.find_issues({"exact_duplicates": {}, "near_duplicates": {}}, verbose=False, n_jobs=1)
    took = processor_seconds() - started
    sets = [s for name in ("exact_duplicates", "near_duplicates") for s in lab.info[name]["sets"]]
    return groups_to_pairs([[number[path] for path in group] for group in sets]), took


def by_datalab(photos: Path) -> tuple[Pairs, float]:
    """Ask cleanlab's Datalab for near duplicates by the vectors."""
    from cleanlab import Datalab

    vectors = np.load(photos / "vectors" / "vectors.npy").astype(np.float32)
    started = processor_seconds()
    lab = Datalab({"image": [row["file"] for row in read(photos)]}, verbosity=0)
    lab.find_issues(features=vectors, issue_types={"near_duplicate": {}})
    took = processor_seconds() - started
    issues = lab.get_issues("near_duplicate")
    sets = zip(issues.index, issues["near_duplicate_sets"], strict=True)
    return {tuple(sorted((int(i), int(j)))) for i, near in sets for j in near if i != j}, took


def by_imagededup(photos: Path) -> tuple[Pairs, float]:
    """Ask imagededup's perceptual hash, at its default of ten bits."""
    from imagededup.methods import PHash

    number = {Path(row["file"]).name: i for i, row in enumerate(read(photos))}
    started = processor_seconds()
    found = PHash(verbose=False).find_duplicates(
        image_dir=str(photos / "images"), num_enc_workers=0, num_dist_workers=0
    )
    took = processor_seconds() - started
    pairs = {(number[a], number[b]) for a, near in found.items() for b in near}
    return {(min(pair), max(pair)) for pair in pairs}, took


def by_fastdup(photos: Path) -> tuple[Pairs, float]:
    """Ask fastdup for pairs above its default similarity of 0.9."""
    import tempfile

    import fastdup

    number = {Path(row["file"]).name: i for i, row in enumerate(read(photos))}
    with tempfile.TemporaryDirectory() as folder:
        started = processor_seconds()
        work = fastdup.create(input_dir=str(photos / "images"), work_dir=folder)
        work.run(overwrite=True, print_summary=False)
        took = processor_seconds() - started
        table = work.similarity()
    names = zip(table["filename_from"], table["filename_to"], strict=True)
    pairs = {(number[Path(a).name], number[Path(b).name]) for a, b in names}
    return {(min(p), max(p)) for p in pairs if p[0] != p[1]}, took


TOOLS = {
    "vsgraph": by_vsgraph, "vectors": by_vectors, "cleanvision": by_cleanvision,
    "datalab": by_datalab, "imagededup": by_imagededup, "fastdup": by_fastdup,
}  # fmt: skip


def judge(photos: Path, pairs: Pairs) -> dict[str, float]:
    """Return recall by kind of copy, recall of all, and precision, all in percent."""
    rows = read(photos)
    first = {row["photo"]: i for i, row in enumerate(rows) if row["kind"] == "photo"}
    found = collections.defaultdict(list)
    for i, row in enumerate(rows):
        if row["kind"] != "photo":
            found[row["kind"]].append((first[row["photo"]], i) in pairs)
    right = [rows[a]["photo"] == rows[b]["photo"] for a, b in pairs]
    values = {kind: float(np.mean(hits)) for kind, hits in found.items()}
    values["all"] = float(np.mean([hit for hits in found.values() for hit in hits]))
    values["precision"] = float(np.mean(right)) if right else float("nan")
    return {name: round(100 * value, 1) for name, value in values.items()}


def main(what: str, *paths: str) -> None:
    """Do what is asked."""
    if what == "make":
        from copied_photos import make_copies

        make_copies(Path(paths[0]), Path(paths[1]), every=3, each=100)
        return
    photos = Path(paths[0])
    results = photos / "found.json"
    table = json.loads(results.read_text()) if results.exists() else {}
    if what != "table":
        pairs, took = TOOLS[what](photos)
        wrong = [p for p in pairs if read(photos)[p[0]]["photo"] != read(photos)[p[1]]["photo"]]
        print("of other photos:", wrong[:20])
        table[what] = judge(photos, pairs) | {"seconds": round(took, 1)}
        results.write_text(json.dumps(table, indent=1))
    columns = list(next(iter(table.values())))
    print("| tool |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1), "|", sep="")
    for tool, values in table.items():
        print("|", tool, "|", " | ".join(str(values[c]) for c in columns), "|")


if __name__ == "__main__":
    main(*sys.argv[1:])
