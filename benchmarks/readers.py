"""One reader of crawls, timed alone in its process: ``readers.py WHO FORMAT FOLDER``.

``WHO`` is ``vsgraph`` or the library that a user would take instead. Prints a line of JSON: rows,
seconds, rows a second and memory.
"""

import io
import json
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from memory import Memory

ROWS = {"csv": 1_000_000, "jsonl": 1_000_000, "parquet": 1_000_000, "shards": 50_000,
        "folder": 50_000, "webvision": 200_000, "nus-wide": 50_000, "coco": 50_000}  # fmt: skip
WORDS = np.array(["crane", "bird", "marsh", "wings", "steel", "tower", "lake", "photo", "blue",
                  "old", "big", "feeding", "flying"])  # fmt: skip
PIXEL = b"\xff\xd8\xff\xd9"


def made_up_rows(n_rows: int) -> list[dict[str, str]]:
    """Return rows as tables of crawls have them."""
    random = np.random.default_rng(0)
    words = WORDS[random.integers(len(WORDS), size=(n_rows, 12))]
    return [
        {"path": f"q{i % 1000:04d}/{i:07d}.jpg", "label": f"class {i % 1000}",
         "title": " ".join(w[:5]), "tags": " ".join(w[5:9]), "description": " ".join(w)}
        for i, w in enumerate(words)
    ]  # fmt: skip


def write_data(folder: Path, kind: str) -> Path:
    """Write what is read, once, and return where it is."""
    where = folder / f"readers-{kind}"
    if not (where / "done").exists():
        where.mkdir(parents=True, exist_ok=True)
        WRITERS[kind](where, made_up_rows(ROWS[kind]))
        (where / "done").touch()
    names = {"csv": "crawl.csv", "jsonl": "crawl.jsonl", "parquet": "crawl.parquet"}
    return where / names.get(kind, "data")


def write_table(where: Path, rows: list[dict[str, str]]) -> None:
    """Write all three kinds of tables."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.Table.from_pylist(rows)
    csv.write_csv(table, where / "crawl.csv")
    parquet.write_table(table, where / "crawl.parquet")
    with (where / "crawl.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_shards(where: Path, rows: list[dict[str, str]]) -> None:
    """Write ten tar shards."""
    (where / "data").mkdir()
    for shard in range(10):
        with tarfile.open(where / "data" / f"{shard:05d}.tar", "w") as tar:
            for i, row in enumerate(rows[shard::10]):
                for ending, content in (("jpg", PIXEL), ("json", json.dumps(row).encode())):
                    member = tarfile.TarInfo(f"{i:07d}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def write_folder(where: Path, rows: list[dict[str, str]]) -> None:
    """Write one folder per class."""
    for row in rows:
        path = where / "data" / row["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PIXEL)


def write_webvision(where: Path, rows: list[dict[str, str]]) -> None:
    """Write the official layout, without pictures."""
    info = where / "data" / "info"
    info.mkdir(parents=True)
    (info / "synsets.txt").write_text("\n".join(f"n{i:08d} name" for i in range(1000)))
    rows = sorted(rows, key=lambda row: row["path"])
    queries: dict[str, list[dict[str, str]]] = {}
    images, metas = [], []
    for row in rows:
        query = row["path"].partition("/")[0]
        entries = queries.setdefault(query, [])
        entries.append({"id": Path(row["path"]).stem, **row})
        images.append(f"google/{row['path']} {int(query[1:])}")
        metas.append(f"google/{query}.json {len(entries)}")
    (info / "train_filelist_google.txt").write_text("\n".join(images))
    (info / "train_meta_list_google.txt").write_text("\n".join(metas))
    (where / "data" / "google").mkdir()
    for query, entries in queries.items():
        (where / "data" / "google" / f"{query}.json").write_text(json.dumps(entries))


def write_nus_wide(where: Path, rows: list[dict[str, str]]) -> None:
    """Write the official layout, without photos."""
    root, concepts = where / "data", [f"c{i:02d}" for i in range(81)]
    for folder in ("ConceptsList", "ImageList", "NUS_WID_Tags", "Groundtruth/TrainTestLabels"):
        (root / folder).mkdir(parents=True)
    (root / "ConceptsList" / "Concepts81.txt").write_text("\n".join(concepts))
    names = [f"a\\{i:04d}_{i}.jpg" for i in range(len(rows))]
    (root / "ImageList" / "TrainImagelist.txt").write_text("\n".join(names))
    hits = (np.random.default_rng(0).random((len(rows), 81)) < 0.03).astype(int)
    np.savetxt(root / "NUS_WID_Tags" / "Train_Tags81.txt", hits, "%d", newline=" \n")
    lines = [f"{i}      {row['description']}" for i, row in enumerate(rows)]
    (root / "NUS_WID_Tags" / "All_Tags.txt").write_text("\n".join(lines))
    for c, concept in enumerate(concepts):
        path = root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_Train.txt"
        np.savetxt(path, hits[:, c], "%d")


def write_coco(where: Path, rows: list[dict[str, str]]) -> None:
    """Write official annotation files."""
    root = where / "data"
    root.mkdir()
    images = [{"id": i, "file_name": f"{i:012d}.jpg"} for i in range(len(rows))]
    notes = [{"id": 5 * i + n, "image_id": i, "caption": row["description"]}
             for i, row in enumerate(rows) for n in range(5)]  # fmt: skip
    marks = [{"id": i, "image_id": i, "category_id": i % len(WORDS)} for i in range(len(rows))]
    names = [{"id": i, "name": str(word)} for i, word in enumerate(WORDS)]
    (root / "captions_x.json").write_text(json.dumps({"images": images, "annotations": notes}))
    (root / "instances_x.json").write_text(
        json.dumps({"images": images, "annotations": marks, "categories": names})
    )


WRITERS: dict[str, Callable[[Path, list[dict[str, str]]], None]] = {
    "csv": write_table, "jsonl": write_table, "parquet": write_table, "shards": write_shards,
    "folder": write_folder, "webvision": write_webvision, "nus-wide": write_nus_wide,
    "coco": write_coco,
}  # fmt: skip


def read_ours(path: Path) -> int:
    """Read by this package."""
    from vsgraph.crawls import read_crawl

    return len(read_crawl(path))


def inspect_ours(path: Path) -> int:
    """Read and inspect; there are no pictures, so each is looked for and counted as missing."""
    from vsgraph.crawls import inspect_crawl, read_crawl

    return inspect_crawl(read_crawl(path)).n_images


def read_pandas(path: Path) -> int:
    """Read a table as pandas' users do."""
    import pandas as pd

    readers = {
        ".csv": pd.read_csv,
        ".parquet": pd.read_parquet,
        ".jsonl": lambda file: pd.read_json(file, lines=True),
    }
    return len(readers[path.suffix](path))


def read_webdataset(path: Path) -> int:
    """Read samples by the format's own library."""
    import webdataset

    shards = sorted(map(str, path.glob("*.tar")))
    return sum(1 for sample in webdataset.WebDataset(shards, shardshuffle=False) if sample["json"])


def read_datasets(path: Path) -> int:
    """Read a folder of class folders by Hugging Face's library, nothing cached."""
    import tempfile

    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as cache:
        return len(load_dataset("imagefolder", data_dir=str(path), cache_dir=cache)["train"])


def read_pycocotools(path: Path) -> int:
    """Read both annotation files by the format's own library."""
    from pycocotools.coco import COCO

    return len(next(COCO(str(path / f"{kind}_x.json")).imgs for kind in ("instances", "captions")))


READERS = {
    "vsgraph": read_ours, "vsgraph-inspect": inspect_ours, "pandas": read_pandas,
    "webdataset": read_webdataset, "datasets": read_datasets, "pycocotools": read_pycocotools,
}  # fmt: skip


@click.command()
@click.argument("who", type=click.Choice(list(READERS)))
@click.argument("kind", type=click.Choice(list(ROWS)))
@click.argument("folder", type=click.Path(path_type=Path))
def main(who: str, kind: str, folder: Path) -> None:
    """Read and print what it took."""
    path = write_data(folder, kind)
    memory = Memory()
    started = time.perf_counter()
    n_rows = READERS[who](path)
    seconds = time.perf_counter() - started
    print(json.dumps({"rows": n_rows, "seconds": seconds, "rows_a_second": n_rows / seconds,
                      "memory_gb": memory.held}))  # fmt: skip


if __name__ == "__main__":
    main()
