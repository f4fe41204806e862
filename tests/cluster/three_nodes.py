"""What the tests of clusters share."""

import os
from pathlib import Path

COCO_WEB = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[3] / "shared" / "data" / "coco-web")
)
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
