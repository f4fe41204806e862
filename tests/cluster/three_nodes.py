"""What the tests of clusters share."""

import os
from pathlib import Path

from vsgraph.runs import Run

COCO_WEB = Path(
    os.environ.get("VSGRAPH_COCO_WEB", Path(__file__).parents[3] / "shared" / "data" / "coco-web")
)
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def files_of(finished: Run) -> dict[str, bytes]:
    """Return the bytes of all arrays of a result, by stage and name."""
    return {
        f"{name}/{path.name}": path.read_bytes()
        for name in finished.keys
        for path in sorted(finished.outputs[name].glob("*.npy"))
    }
