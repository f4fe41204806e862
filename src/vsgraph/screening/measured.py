"""The measures of a crawl's pictures on disk: each content is measured once, and runs resume."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.batches import Work, fill_store
from vsgraph.encoders.pipeline import load_pictures
from vsgraph.encoders.places import look
from vsgraph.encoders.store import VectorStore
from vsgraph.encoders.vectors import Embedding
from vsgraph.pictures.decode import quiet_decoders
from vsgraph.pictures.measures import VERSION, WIDTH, measure_picture

BATCH = 256


def measure_pictures(
    crawl: Crawl, folder: Path, *, known: Iterable[Path] = (), progress: bool = False
) -> Embedding:
    """Measure the pictures of a crawl, see :mod:`vsgraph.pictures.measures`.

    A picture that cannot be read is a row of zeros and a problem. Pictures that were measured
    before, in the folders `known`, are not measured again.
    """
    fingerprint = hashlib.sha256(VERSION.encode()).hexdigest()
    store = VectorStore(
        folder, name="measures", fingerprint=fingerprint, widths={"vectors": WIDTH},
        dtype="float32", known=known,
    )  # fmt: skip
    work = Work(
        title="measures",
        unit="image",
        n_rows=len(crawl),
        batch_size=BATCH,
        look=lambda span: look(crawl, span),
        load=lambda span, *known: load_pictures(crawl, span, measure_picture, *known),
        encode=np.stack,
        n_at_once=1,
        stands_alone=True,
    )
    with store, quiet_decoders():
        return fill_store(store, work, progress=progress)
