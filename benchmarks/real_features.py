"""Features of real photographs, as many as asked for.

COCO-Web has 8,631 photos. More are grown from them: a photo's features plus the difference of two
of its neighbors'. So new rows lie where real ones do and differ as real ones differ, rather than
being copies with noise in all directions.
"""

import os
import sys
from pathlib import Path

import numpy as np

from vsgraph.neighbors.search import nearest_neighbors

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "experiments"))

NEAR = 20


def real_features() -> np.ndarray:
    """Return the features of COCO-Web's photos, of length one."""
    from coco_web_data import read_coco_web
    from encode import photo_features

    folder = Path(os.environ.get("VSGRAPH_COCO_WEB", ROOT / "../shared/data/coco-web"))
    features = photo_features(read_coco_web(folder).images)
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def grown_features(
    n_rows: int, *, photos: np.ndarray | None = None, size: float = 1.0, seed: int = 0
) -> np.ndarray:
    """Return `n_rows` features, not negative, as the encoder's are; `photos` if encoded before."""
    photos = real_features() if photos is None else photos
    near = nearest_neighbors(photos, n_neighbors=NEAR).rows
    random = np.random.default_rng(seed)
    grown = np.empty((n_rows, photos.shape[1]), np.float32)
    for start in range(0, n_rows, 2**14):
        rows = slice(start, min(start + 2**14, n_rows))
        n = rows.stop - rows.start
        photo = random.integers(len(photos), size=n)
        one, two = near[photo, random.integers(NEAR, size=(2, n))]
        grown[rows] = np.maximum(photos[photo] + size * (photos[one] - photos[two]), 0)
    return grown / np.linalg.norm(grown, axis=1, keepdims=True)
