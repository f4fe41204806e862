"""What recall shards can reach that never see each other: ``sharded_recall.py VECTORS.npy``.

VECTORS are the vectors of a run's photos (``RUN/stages/pictures-*/vectors.npy``), grown to more
rows as in `real_features`. Rows are put into lists around centers, as the approximate search does;
lists that lie together make up a shard, all shards alike in size. A row belongs to the shard of its
own list and to those of its next nearest lists. A pair of neighbors can be found if both rows are
in one shard. Prints a row of a table for each number of rows, shards and lists: the share of true
neighbors that can be found, how many copies of a row there are, and the largest shard beside the
mean.
"""

import click
import numpy as np
from numpy.typing import NDArray

from real_features import grown_features
from vsgraph.neighbors.lists import _all_near_lists, _centers, true_neighbors
from vsgraph.neighbors.sketch import principal_axes, rows_to_search, sketch

N_NEIGHBORS = 5
N_SAMPLE = 1024
LISTS = (1, 2, 4, 8, 16)


def halves(centers: NDArray[np.float32], sizes: NDArray[np.intp], depth: int) -> NDArray[np.intp]:
    """Return the shard of each list: halved `depth` times across its widest direction."""
    shards = np.zeros(len(centers), np.intp)
    if depth == 0 or len(centers) < 2:
        return shards
    spread = centers - np.average(centers, axis=0, weights=sizes)
    along = spread @ np.linalg.svd(spread * np.sqrt(sizes)[:, None], full_matrices=False)[2][0]
    order = np.argsort(along)
    n_first = int(np.searchsorted(np.cumsum(sizes[order]), sizes.sum() / 2)) + 1
    for side, lists in enumerate((order[:n_first], order[n_first:])):
        shards[lists] = 2 ** (depth - 1) * side + halves(centers[lists], sizes[lists], depth - 1)
    return shards


def members(
    shard_of: NDArray[np.intp], near: NDArray[np.int32], n_shards: int
) -> NDArray[np.bool_]:
    """Return which shards each row belongs to, (n_rows, n_shards)."""
    there = np.zeros((len(near), n_shards), bool)
    np.put_along_axis(there, shard_of[near], values=True, axis=1)
    return there


def simulate(features: NDArray[np.float32], depths: tuple[int, ...]) -> None:
    """Print the recall of shards of one set of features."""
    rows = rows_to_search(features)
    sketches = sketch(rows, principal_axes(rows, 255), share=0.3)
    random = np.random.default_rng(0)
    centers = _centers(sketches, random)
    near = _all_near_lists(sketches, centers, max(LISTS))
    sizes = np.bincount(near[:, 0], minlength=len(centers))
    sample = np.sort(random.choice(len(sketches), N_SAMPLE, replace=False))
    truth, _ = true_neighbors(rows, sample, n_neighbors=N_NEIGHBORS)
    for depth in depths:
        shard_of = halves(centers, np.maximum(sizes, 1), depth)
        for n_lists in LISTS:
            there = members(shard_of, near[:, :n_lists], 2**depth)
            found = (there[sample][:, None] & there[truth]).any(axis=2).mean()
            counts = there.sum(axis=0)
            click.echo(
                f"| {len(features):,} | {len(centers)} | {2**depth} | {n_lists} | {found:.3f} | "
                f"{there.sum(axis=1).mean():.2f} | {counts.max() / counts.mean():.2f} |"
            )


@click.command()
@click.argument("vectors", type=click.Path(exists=True))
@click.option("--rows", "sizes", multiple=True, default=(25_000, 100_000), type=int)
@click.option("--shards", multiple=True, default=(16, 128), type=int, help="Powers of two.")
def main(vectors: str, sizes: tuple[int, ...], shards: tuple[int, ...]) -> None:
    """Simulate shards."""
    photos = np.load(vectors).astype(np.float32)
    photos /= np.linalg.norm(photos, axis=1, keepdims=True)
    click.echo("| rows | lists | shards | lists of a row | found | copies | largest shard |")
    click.echo("|---|---|---|---|---|---|---|")
    for n_rows in sizes:
        depths = tuple(int(np.log2(n)) for n in shards)
        simulate(grown_features(n_rows, photos=photos), depths)


if __name__ == "__main__":
    main()
