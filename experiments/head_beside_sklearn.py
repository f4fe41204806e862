"""A frozen network's head beside scikit-learn's logistic regression, on the same vectors.

    python experiments/head_beside_sklearn.py COCO-WEB ... --large 100000 --write docs/training.md

Learned from the web labels of four fifths of the photos, judged by what people marked in the rest.
`--large` times both on made-up vectors, and is judged by the class that they were made for.
"""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coco_web_data import read_coco_web
from encode import photo_features
from keeping import commit
from pages import put
from vsgraph.common.formatting import markdown_table
from vsgraph.training import Labels
from vsgraph.training.heads import train_head

N_DIMS, N_CLASSES = 1280, 100
MANY = 50_000
STANDARD = "the same on standardized vectors"
Array = NDArray[np.floating]
Integers = NDArray[np.intp]


def by_head(vectors: Array, labels: Integers, test: Array) -> Integers:
    """Train the head of ``--freeze`` with its default recipe."""
    from scipy.sparse import csr_array

    table = csr_array(np.eye(labels.max() + 1, dtype=bool)[labels])
    return train_head(vectors, Labels(table, several=False)).probs(test).argmax(axis=1)


def by_sklearn(vectors: Array, labels: Integers, test: Array, *, scaled: bool) -> Integers:
    """Fit a logistic regression, as it comes, or on standardized vectors."""
    model: Any = LogisticRegression(class_weight="balanced", max_iter=200)
    model = make_pipeline(StandardScaler(), model) if scaled else model
    return model.fit(np.asarray(vectors, np.float32), labels).predict(test)


WAYS: dict[str, Callable[[Array, Integers, Array], Integers]] = {
    "vsgraph, --freeze": by_head,
    "scikit-learn, LogisticRegression": lambda *a: by_sklearn(*a, scaled=False),
    STANDARD: lambda *a: by_sklearn(*a, scaled=True),
}


def compare(name: str, parts: tuple[Array, Integers, Array], right: Callable[[Integers], float]
            ) -> list[list[str]]:  # fmt: skip
    """Return a row for each way: the time, and how many are right."""
    rows = []
    for way, run in WAYS.items():
        if way == STANDARD and len(parts[0]) > MANY:
            continue  # a second copy of the vectors, for the same time
        started = time.perf_counter()
        labels = run(*parts)
        seconds = time.perf_counter() - started
        rows.append([name, way, f"{seconds:.1f}", f"{100 * right(labels):.1f}"])
        click.echo(rows[-1], err=True)
    return rows


def made_up(n: int) -> tuple[tuple[Array, Integers, Array], Integers]:
    """Return vectors in overlapping clouds with a fifth of their labels wrong, and test classes."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(N_CLASSES, N_DIMS)).astype(np.float32)
    classes = random.integers(N_CLASSES, size=n + 5000)
    vectors = np.empty((n + 5000, N_DIMS), np.float16)
    for start in range(0, len(vectors), 10_000):
        rows = slice(start, start + 10_000)
        noise = random.normal(size=vectors[rows].shape, scale=9).astype(np.float32)
        vectors[rows] = np.maximum(centers[classes[rows]] + noise, 0)
    labels = np.where(random.random(n) < 0.2, random.integers(N_CLASSES, size=n), classes[:n])
    return (vectors[:n], labels, vectors[n:].astype(np.float32)), classes[n:]


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--large", default=0, help="Also time so many made-up vectors.")
@click.option("--write", type=click.Path(exists=True, path_type=Path), help="Page for the table.")
def main(folders: tuple[Path, ...], large: int, write: Path | None) -> None:
    """Train both, and print time and share of right classes."""
    rows = []
    for folder in folders:
        data = read_coco_web(folder)
        features = photo_features(data.images)
        held = np.array([int(path.stem) % 5 == 0 for path in data.images])
        parts = (features[~held], data.web_labels[~held], features[held])
        test = data.take(np.flatnonzero(held))
        rows += compare(folder.name, parts, lambda labels, test=test: test.right(labels)[0])
    if large:
        parts, shown = made_up(large)
        rows += compare(f"{large:,} made-up vectors", parts, lambda found: (found == shown).mean())
    table = markdown_table(["vectors", "way", "seconds", "right, %"], rows).splitlines()
    cores = f"{os.cpu_count()} shared cores, {platform.machine()}"
    lines = [*table, "", f"*`python experiments/head_beside_sklearn.py` at {commit()}; {cores}.*"]
    click.echo("\n".join(lines))
    if write:
        text = put(write.read_text(encoding="utf-8"), "head beside sklearn", lines)
        write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
