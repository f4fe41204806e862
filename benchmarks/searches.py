"""One search for neighbors, timed alone in its process: ``searches.py METHOD FEATURES.npy``.

Prints a line of JSON: seconds, recall of the true 10 nearest on a sample, memory beyond the
features. Methods that end in ``-pca`` get what helps them most: 256 principal components, and
their candidates ranked by the full features.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import vsgraph
from memory import Memory
from vsgraph.common.blocks import do_in_threads, n_threads
from vsgraph.neighbors import kernels
from vsgraph.neighbors.lists import true_neighbors
from vsgraph.neighbors.search import nearest_neighbors
from vsgraph.neighbors.sketch import Rows, principal_axes, rows_to_search

K = 10
RANKED = 48
PCA = 256
Array = np.ndarray


def faiss_index(features: Array, index: object, n_found: int = K + 1) -> Array:
    """Add and search, as its users do."""
    index.add(features)
    return index.search(features, n_found)[1]


def faiss_flat(features: Array, n_found: int = K + 1) -> Array:
    """Exact, all pairs."""
    import faiss

    return faiss_index(features, faiss.IndexFlatIP(features.shape[1]), n_found)


def faiss_hnsw(features: Array, n_found: int = K + 1) -> Array:
    """Search a hierarchy of small worlds."""
    import faiss

    index = faiss.IndexHNSWFlat(features.shape[1], 24, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 120, 120
    return faiss_index(features, index, n_found)


def faiss_ivf(features: Array, n_found: int = K + 1) -> Array:
    """Inverted lists."""
    import faiss

    n_lists = int(2 ** round(np.log2(3 * np.sqrt(len(features)))))
    flat = faiss.IndexFlatIP(features.shape[1])
    index = faiss.IndexIVFFlat(flat, features.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
    index.train(features[:: max(1, len(features) // (40 * n_lists))])
    index.nprobe = 64
    return faiss_index(features, index, n_found)


def faiss_nndescent(features: Array, n_found: int = K + 1) -> Array:
    """Neighbors of neighbors, by turns; its graph is the answer, there is nothing to search for."""
    import faiss

    index = faiss.IndexNNDescentFlat(features.shape[1], 64)
    index.nndescent.iter = 12
    index.add(features)
    graph = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(features), -1)
    return graph[:, :n_found]


def hnswlib_search(features: Array, n_found: int = K + 1) -> Array:
    """Search a hierarchy of small worlds."""
    import hnswlib

    index = hnswlib.Index("ip", features.shape[1])
    index.init_index(len(features), M=16, ef_construction=100)
    index.set_num_threads(n_threads())
    index.add_items(features)
    index.set_ef(100)
    return index.knn_query(features, k=n_found)[0].astype(np.int64)


def pynndescent_search(features: Array, n_found: int = K + 1) -> Array:
    """Neighbors of neighbors, compiled by numba."""
    import pynndescent

    index = pynndescent.NNDescent(features, metric="cosine", n_neighbors=max(n_found, 30))
    return index.neighbor_graph[0]


def naive_dense(features: Array, n_found: int = K + 1) -> Array:
    """All cosines at once, sorted whole."""
    return np.argsort(-(features @ features.T), axis=1)[:, :n_found]


def sklearn_search(features: Array, n_found: int = K + 1) -> Array:
    """Exact, all pairs."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=n_found, metric="cosine", algorithm="brute", n_jobs=-1)
    return index.fit(features).kneighbors(features[:: asked_part(features)])[1]


def asked_part(features: Array) -> int:
    """Return how many times fewer rows scikit-learn is asked for, its time growing with them."""
    return 10 if len(features) > 50_000 else 1


def ours(search: str) -> Callable[[Array], Array]:
    """Search by this package, set-up and measured recall included."""
    return lambda features: nearest_neighbors(features, n_neighbors=K, search=search).rows


def with_pca(search: Callable[[Array, int], Array]) -> Callable[[Array], Array]:
    """Search among principal components and rank the candidates by the full features."""

    def searched(features: Array) -> Array:
        rows = rows_to_search(features)
        axes = principal_axes(rows, PCA)
        short = np.concatenate([rows.unit(b) @ axes for b in _blocks(len(features), 8192)])
        found = search(short, RANKED + 1)[:, : RANKED + 1].astype(np.int32)
        found[found == np.arange(len(found))[:, None]] = -1
        neighbors = np.full((len(found), K), -1, np.int32)
        similarities = np.full(neighbors.shape, -np.inf, np.float32)

        def rank(b: slice) -> None:
            own = np.arange(b.start, b.stop)
            kernels.rank(features, rows.scale, own, found[b], similarities, neighbors)

        do_in_threads(rank, _blocks(len(found), 2048))
        return neighbors

    return searched


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


METHODS: dict[str, Callable[[Array], Array]] = {
    "vsgraph-exact": ours("exact"),
    "vsgraph-approximate": ours("approximate"),
    "faiss-flat": faiss_flat,
    "sklearn": sklearn_search,
    "naive-dense": naive_dense,
    "hnswlib": hnswlib_search,
    "hnswlib-pca": with_pca(hnswlib_search),
    "faiss-hnsw-pca": with_pca(faiss_hnsw),
    "faiss-ivf-pca": with_pca(faiss_ivf),
    "faiss-nndescent-pca": with_pca(faiss_nndescent),
    "pynndescent": pynndescent_search,
    "pynndescent-pca": with_pca(pynndescent_search),
}


def recall_of(rows: Rows, asked: Array, found: Array) -> float:
    """Return the share of neighbors as near as the last true one; ties count, itself does not."""
    last = true_neighbors(rows, asked, n_neighbors=K)[1][:, -1]
    own = rows.unit(asked)
    near = np.einsum("ij,ikj->ik", own, rows.unit(found.ravel()).reshape(*found.shape, -1))
    near[(found == asked[:, None]) | (found < 0)] = -np.inf
    right = (near >= last[:, None] - 1e-6).sum(axis=1)
    return float(np.minimum(right, K).mean() / K)


@click.command()
@click.argument("method", type=click.Choice(list(METHODS)))
@click.argument("path", type=click.Path(path_type=Path, exists=True))
def main(method: str, path: Path) -> None:
    """Time one search."""
    stored = np.load(path, mmap_mode="r")
    own = method.startswith("vsgraph")
    features = stored if own else stored.astype(np.float32)
    if not own:
        features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    if own or method.endswith("-pca") or method == "pynndescent":
        METHODS[method](np.array(features[:9000]))  # compiles
    memory = Memory()
    time.sleep(0.2)
    before = memory.held
    started = time.perf_counter(), time.process_time()
    found = METHODS[method](features)
    part = asked_part(features) if method == "sklearn" else 1
    took = part * (time.perf_counter() - started[0]), part * (time.process_time() - started[1])
    peak = memory.held - before
    rows = rows_to_search(stored)
    asked = part * np.sort(np.random.default_rng(9).choice(len(stored) // part, 512, replace=False))
    print(json.dumps({
        "seconds": took[0], "cpu_seconds": took[1], "memory_gb": peak,
        "recall": recall_of(rows, asked, found[asked // part]), "version": vsgraph.__version__,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
