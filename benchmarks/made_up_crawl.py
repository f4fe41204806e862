"""Large made-up crawls on disk, for measuring: clustered features, noisy labels, texts, a CNN."""

import json
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from tqdm import tqdm

BLOCK = 2**14
CLUSTERS_PER_CLASS = 4


def write_crawl(
    folder: Path,
    *,
    n_images: int,
    n_dims: int,
    n_classes: int,
    n_text_dims: int = 384,
    with_cnn: bool = True,
    noise: float = 0.3,
    seed: int = 0,
) -> Path:
    """Write ``features``, ``texts``, ``cnn_probs`` (fp16), ``meanings`` and labels to a folder.

    Features are not negative, lie around a few centers a class and are spread most along some
    hundred directions, as those of real encoders are. A share `noise` of the images was found by
    another class's query; a third of the texts is missing.
    """
    shape = {"n_images": n_images, "n_dims": n_dims, "n_classes": n_classes, "seed": seed}
    done = folder / "made.json"
    if done.exists() and json.loads(done.read_text()) == shape:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    n_centers = CLUSTERS_PER_CLASS * n_classes
    width = (1 + np.arange(n_dims)) ** -0.5
    turn = np.linalg.qr(random.normal(size=(n_dims, n_dims)))[0].astype(np.float32)
    centers = (random.normal(size=(n_centers, n_dims)) * width).astype(np.float32) @ turn
    meanings = random.normal(size=(n_classes, n_text_dims)).astype(np.float32)
    truth = random.integers(n_classes, size=n_images)
    wrong = random.uniform(size=n_images) < noise
    web = np.where(wrong, random.integers(n_classes, size=n_images), truth)
    sizes = {"features": n_dims, "texts": n_text_dims}
    sizes |= {"cnn_probs": n_classes} if with_cnn else {}
    files = {
        name: open_memmap(folder / f"{name}.npy", "w+", np.float16, (n_images, size))
        for name, size in sizes.items()
    }
    for start in tqdm(range(0, n_images, BLOCK), "made-up crawl", leave=False):
        rows = slice(start, min(start + BLOCK, n_images))
        n = rows.stop - rows.start
        center = truth[rows] * CLUSTERS_PER_CLASS + random.integers(CLUSTERS_PER_CLASS, size=n)
        spread = (random.normal(size=(n, n_dims)) * width).astype(np.float32) @ turn
        files["features"][rows] = np.maximum(centers[center] + 0.9 * spread + 0.1, 0)
        text = meanings[truth[rows]] + 1.5 * random.normal(size=(n, n_text_dims))
        text[random.uniform(size=n) < 1 / 3] = 0
        files["texts"][rows] = text
        if not with_cnn:
            continue
        logits = random.normal(size=(n, n_classes))
        logits[np.arange(n), truth[rows]] += 4
        logits[np.arange(n), web[rows]] += 3
        shares = np.exp(logits)
        files["cnn_probs"][rows] = shares / shares.sum(axis=1, keepdims=True)
    for mapped in files.values():
        mapped.flush()
    np.save(folder / "meanings.npy", meanings)
    np.save(folder / "web_labels.npy", web)
    np.save(folder / "truth.npy", truth)
    done.write_text(json.dumps(shape))
    return folder


def read_crawl(folder: Path) -> dict[str, np.ndarray]:
    """Map the arrays of a crawl from disk."""
    return {path.stem: np.load(path, mmap_mode="r") for path in sorted(folder.glob("*.npy"))}
