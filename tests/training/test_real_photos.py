"""Training on real photos; skipped if COCO-Web is not there."""

import os
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from vsgraph.crawls import read_crawl
from vsgraph.training import Recipe, Start, train

FOLDER = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[3] / "shared" / "data" / "coco-web")
)

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (FOLDER / "metadata.jsonl").exists(), reason=f"COCO-Web is not in {FOLDER}"
    ),
]


def test_a_network_learns_from_real_photos_and_resumes(tmp_path):
    table = tmp_path / "photos.jsonl"
    lines = (FOLDER / "metadata.jsonl").read_text().splitlines()[::24]
    table.write_text("\n".join(lines) + "\n")
    crawl = read_crawl(table, images=FOLDER, columns={"truth": "truth_in_set"})
    recipe = Recipe(epochs=3, batch_size=36, learning_rate=0.05, smallest_crop=0.5)
    whole = train(crawl, tmp_path / "whole", start=Start("lite0", 64), recipe=recipe)
    assert whole.history[-1]["loss"] < 0.9 * whole.history[0]["loss"]
    assert whole.n_unreadable == 0

    def stop(line):
        if line.startswith("epoch 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train(crawl, tmp_path / "two", start=Start("lite0", 64), recipe=recipe, tell=stop)
    train(crawl, tmp_path / "two", start=Start("lite0", 64), recipe=recipe)
    one, two = (load_file(tmp_path / n / "model.safetensors") for n in ("whole", "two"))
    assert all((one[name] == two[name]).all() for name in one)
