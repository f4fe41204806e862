"""A small crawl and tiny networks to train in tests; run as a script, it trains and stops."""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

COLORS = {"ant": (200, 60, 60), "bee": (60, 200, 60), "cat": (60, 60, 200)}
SIDE = 32


def write_photos(root, *, per_class=12, seed=0, spread=40, colors=COLORS):
    """Write noisy pictures of one color a class as folders."""
    random = np.random.default_rng(seed)
    for name, color in colors.items():
        (root / name).mkdir(parents=True)
        for i in range(per_class):
            pixels = np.array(color) + random.normal(0, spread, (40, 52, 3))
            picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
            picture.save(root / name / f"{i:02}.jpg")
    return root


def tiny_network(folder, kind="resnet"):
    """Write a tiny network in the transformers format: batch norms, or layer norms."""
    import torch
    import transformers

    torch.manual_seed(0)
    if kind == "resnet":
        config = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
        )
        network = transformers.ResNetModel(config)
    else:
        config = transformers.ViTConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            image_size=SIDE, patch_size=8, hidden_dropout_prob=0.1 if kind == "dropout" else 0.0,
        )  # fmt: skip
        network = transformers.ViTModel(config)
    network.save_pretrained(folder)
    size = {"size": {"height": SIDE, "width": SIDE}}
    (folder / "preprocessor_config.json").write_text(json.dumps(size))
    return str(folder)


def main(crawl, network, out, recipe):
    """Train, keeping all after every step."""
    from vsgraph.crawls import read_crawl
    from vsgraph.training import Recipe, Start, train

    train(
        read_crawl(crawl), out, start=Start(network), recipe=Recipe(**json.loads(recipe)),
        save_seconds=0,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4])
