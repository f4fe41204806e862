"""Vectors for experiments: EfficientNet-Lite0 for photos, MiniLM for text, WordNet for labels.

All weights come from installed packages; nothing is downloaded. Results are kept in a cache folder
under a name made from the inputs, so that a change of data or model never meets old vectors.
"""

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from keeping import cache_folder
from resnet50 import resnet50_folder
from vsgraph.encoders import image_encoder, read_picture, text_encoder
from vsgraph.meanings.wordnet import WordNet

BATCH = 32
Array = NDArray[np.float32]


def cached(kind: str, items: Sequence[str], make: Callable[[], Array]) -> Array:
    """Return vectors from the cache, or make and keep them."""
    name = hashlib.sha256("\0".join([kind, *items]).encode()).hexdigest()[:16]
    path = cache_folder() / f"{kind}-{name}.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)
    vectors = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part.npy")
    np.save(unfinished, vectors, allow_pickle=False)
    unfinished.replace(path)
    return vectors


def photo_features(paths: Sequence[Path], network: str = "lite0") -> Array:
    """Return features of photos before the classifier, 1280-d of EfficientNet-Lite0.

    The other network is ``resnet50``, 2048-d, see resnet50.py.
    """
    stamps = [f"{path.resolve()} {path.stat().st_size}" for path in paths]
    precision = "fp32" if network == "lite0" else "auto"
    return cached(
        f"{network}-{precision}", stamps, lambda: _encode_photos(paths, network, precision)
    )


def _encode_photos(paths: Sequence[Path], network: str, precision: str) -> Array:
    place = network if network == "lite0" else resnet50_folder()
    encoder = image_encoder(place, precision=precision)
    parts = []
    for start in tqdm(range(0, len(paths), BATCH), "photos", unit="batch"):
        batch = [read_picture(p.read_bytes(), encoder.preparation) for p in paths[start:][:BATCH]]
        parts.append(encoder.encode(np.stack(batch)).vectors)
    return np.concatenate(parts)


def text_vectors(texts: Sequence[str]) -> Array:
    """Return 384-d unit vectors of texts from all-MiniLM-L6-v2."""
    encoder = text_encoder(precision="fp32")
    return cached("minilm-fp32", list(texts), lambda: np.asarray(encoder.encode(list(texts))))


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed; run: make install")
    return Path(spec.origin).parent


def describe(wnids: Sequence[str]) -> list[str]:
    """Return for each synset its lemmas and definition, and those of hyponyms and holonyms."""
    return [WordNet.open().describe(wnid) for wnid in wnids]
