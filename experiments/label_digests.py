"""Digests of our labels, to see whether two versions of the code give the same ones.

    python experiments/label_digests.py ../shared/data/coco-web ../shared/data/coco-web-b

Prints one line per crawl, kind of text and seed: digests of the probabilities, of the labels and of
the decisions, by the trials that the tables of docs/results.md are made of. Run it at two commits
on one machine: where the lines are the same, tables made at one of them hold for the other.
Processors of different kinds may round differently.
"""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from coco_web_data import read_coco_web
from doubted_labels import words_of
from trials import TEXTS, Trial, draw, load_vectors
from vsgraph import VSGraphWarning


def digest(array: NDArray[Any]) -> str:
    """Return a short digest of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()[:12]


def digests(trial: Trial) -> list[str]:
    """Return digests of what a trial's correction says: probabilities, labels, decisions."""
    made = trial.correct(cnn=trial.probe, words=words_of(trial))
    parts = (np.asarray(made.final_probs), made.final_labels, made.decisions)
    return list(map(digest, parts))


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seeds", default=1, show_default=True, help="Trials of each crawl and text.")
def main(folders: tuple[Path, ...], seeds: int) -> None:
    """Correct the data sets in FOLDERS, and print the digests."""
    warnings.simplefilter("ignore", VSGraphWarning)
    for folder in folders:
        vectors = load_vectors(read_coco_web(folder))
        for kind in TEXTS:
            for seed in range(seeds):
                found = digests(draw(vectors, seed=seed, kind=kind))
                click.echo(f"{folder.name}, {kind}, seed {seed}: {' '.join(found)}")


if __name__ == "__main__":
    main()
