"""A Ray cluster of three machines on this one, and crawls to correct there."""

import os
import warnings

import numpy as np
import pytest
from three_nodes import COCO_WEB, NODE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, model_cache):
    """Three machines with one processor each; this process is connected to them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip("ray", reason="needs vsgraph[cluster]")
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        for _ in range(2):
            made.add_node(**NODE)
        ray.init(address=made.address, log_to_driver=False, logging_level="CRITICAL")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A sample of COCO-Web."""
    if not COCO_WEB.exists():
        pytest.skip(f"needs COCO-Web in {COCO_WEB}; set VSGRAPH_COCO_WEB")
    folder = tmp_path_factory.mktemp("photos")
    (folder / "crawl").mkdir()
    lines = (COCO_WEB / "metadata.jsonl").read_text().splitlines(keepends=True)
    (folder / "crawl" / "metadata.jsonl").write_text("".join(lines[::48]))
    return folder / "crawl" / "metadata.jsonl"


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """A made-up crawl of 9,000 images as arrays: more than are compared all at once."""
    folder = tmp_path_factory.mktemp("arrays")
    random = np.random.default_rng(0)
    truth = random.integers(6, size=9000)
    web = np.where(random.uniform(size=9000) < 0.2, random.integers(6, size=9000), truth)
    meanings = random.normal(size=(6, 24))
    centers = random.normal(size=(60, 48))
    own = centers[truth * 10 + random.integers(10, size=9000)]
    texts = meanings[truth] + random.normal(size=(9000, 24))
    texts[random.uniform(size=9000) < 0.3] = 0
    np.save(folder / "web.npy", web)
    np.save(folder / "features.npy", (own + 0.8 * random.normal(size=own.shape)).astype(np.float16))
    np.save(folder / "texts.npy", texts.astype(np.float16))
    np.save(folder / "meanings.npy", meanings.astype(np.float32))
    return folder
