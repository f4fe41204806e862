"""Measure one way to load or train, end to end: ``training_speed.py KIND METHOD FOLDER``.

*load*: pictures read, decoded, cropped at random to 224 px and mirrored, in batches. *train*: the
same at 128 px, and steps of EfficientNet-Lite0 on them. Prints JSON.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from encoding import photos_of, print_rates
from vsgraph.crawls.crawl import Crawl

LOADED, TRAINED, BATCH, N_CLASSES = 768, 96, 32, 36


def our_loader(paths: list[Path], size: int) -> Callable[[], Iterator[Any]]:
    """Return our batches."""
    from vsgraph.pictures.decode import quiet_decoders
    from vsgraph.training.batches import cut_batches, read_batches
    from vsgraph.training.crops import RandomCrop

    crawl = crawl_of(paths)

    def crop(row: int) -> RandomCrop:
        return RandomCrop.draw(size, size, smallest=0.08, seed=(0, 0, row))

    def run() -> Iterator[Any]:
        with quiet_decoders():
            batches = cut_batches(np.arange(len(paths)), BATCH)
            for batch in read_batches(crawl, batches, crop):
                yield batch.pixels

    return run


def crawl_of(paths: list[Path]) -> Crawl:
    """Return photos as a crawl with any labels."""
    labels = pa.array([i % N_CLASSES for i in range(len(paths))], pa.int32())
    table = pa.table({"image": [path.name for path in paths], "web_labels": labels})
    names = tuple(f"class {i}" for i in range(N_CLASSES))
    return Crawl("photos", paths[0].parent, table, names)


def plain_loader(paths: list[Path], size: int, workers: int) -> Callable[[], Iterator[Any]]:
    """Return the loader most people write: DataLoader and Pillow."""
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    random = np.random.default_rng(0)

    class Photos(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
            with Image.open(paths[row]) as image:
                whole = image.convert("RGB")
            area = random.uniform(0.08, 1) * whole.width * whole.height
            ratio = np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
            wide = min(whole.width, int(np.sqrt(area * ratio)))
            tall = min(whole.height, int(np.sqrt(area / ratio)))
            left = random.integers(whole.width - wide + 1)
            top = random.integers(whole.height - tall + 1)
            part = whole.crop((left, top, left + wide, top + tall))
            small = np.array(part.resize((size, size), Image.Resampling.BILINEAR))
            if random.uniform() < 0.5:
                small = np.ascontiguousarray(small[:, ::-1])
            pixels = torch.from_numpy(small).permute(2, 0, 1).float()
            return (pixels - 127) / 128, row % N_CLASSES

    return lambda: iter(DataLoader(Photos(), BATCH, num_workers=workers, drop_last=True))


def timm_loader(paths: list[Path], size: int, workers: int) -> Callable[[], Iterator[Any]]:
    """Return timm's loader, without the augmentations that we do not have."""
    import torch

    own = torch.library.Library("torchvision", "DEF")  # operators of a build for another device
    own.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    own.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from timm.data import ImageDataset, create_loader

    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            (Path(folder) / "any").mkdir(exist_ok=True)
            (Path(folder) / "any" / path.name).symlink_to(path)
        data = ImageDataset(folder)
    data.reader.samples = [(str(path), 0) for path in paths]
    data.reader.root = ""
    loader = create_loader(
        data, (3, size, size), BATCH, is_training=True, use_prefetcher=False, num_workers=workers,
        color_jitter=0, auto_augment=None, scale=(0.08, 1.0), hflip=0.5, persistent_workers=False,
    )  # fmt: skip
    return lambda: iter(loader)


def load(method: str, folder: Path) -> tuple[Callable[[], int], int]:
    """Return loading alone."""
    paths = photos_of(folder, LOADED)
    workers = 2 if "workers" in method else 0
    makers: dict[str, Any] = {"plain": plain_loader, "timm": timm_loader}
    made = makers.get(method.partition(",")[0])
    batches = our_loader(paths, 224) if made is None else made(paths, 224, workers)
    return lambda: sum(len(batch) for batch in batches()), len(paths)


def train(method: str, folder: Path) -> tuple[Callable[[], int], int]:
    """Return whole steps of training."""
    paths = photos_of(folder, TRAINED)
    if method.startswith("plain"):
        return plain_training(paths, 2 if "workers" in method else 0), len(paths)
    return our_training(paths), len(paths)


def our_training(paths: list[Path]) -> Callable[[], int]:
    """Return the steps of our loop."""
    os.environ["THP_MEM_ALLOC_ENABLE"] = "1"  # as vsgraph.training.train does
    import torch

    from vsgraph.training import Recipe, Start
    from vsgraph.training.learner import Learner
    from vsgraph.training.processes import Processes
    from vsgraph.training.start_network import start_networks

    names = [f"class {i}" for i in range(N_CLASSES)]
    (network,), _ = start_networks(Start("lite0", 128), names, Recipe())
    learner = Learner(network, Recipe(), Processes(0, 1, "cpu"))
    batches, labels = our_loader(paths, 128), torch.eye(N_CLASSES)

    def run() -> int:
        for pixels in batches():
            losses, _ = learner.losses(torch.from_numpy(pixels), labels[: len(pixels)])
            losses.mean().backward()
            learner.step(0.01)
        return len(paths)

    return run


def plain_training(paths: list[Path], workers: int) -> Callable[[], int]:
    """Return the training loop most people write."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0", num_classes=N_CLASSES)
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    batches = plain_loader(paths, 128, workers)

    def run() -> int:
        network.train()
        for pixels, labels in batches():
            loss = torch.nn.functional.cross_entropy(network(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return len(paths)

    return run


def main() -> None:
    """Measure one method."""
    kind, method, folder = sys.argv[1:]
    print_rates(*(load if kind == "load" else train)(method, Path(folder)))


if __name__ == "__main__":
    main()
