"""How many labels Co-teaching should forget, estimated."""

import tempfile
from pathlib import Path

from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders import embed_images, image_encoder
from vsgraph.errors import InputError
from vsgraph.judge.noise import noise_rate, wrong_share
from vsgraph.method.probe import linear_probe
from vsgraph.result.correction import Correction

HIGHEST = 0.9


def estimate_forget_rate(
    crawl: Crawl, correction: Correction | None = None, *, progress: bool = False
) -> float:
    """Estimate the share of wrong web labels, for Co-teaching to forget.

    A correction of the crawl gives the better estimate. Without it, a linear probe of the default
    features is trained.
    """
    if crawl.has_several_labels:
        raise InputError(
            "with several labels per image the share to forget cannot be estimated; pass it "
            "(--forget-rate)"
        )
    if correction is not None:
        return round(min(wrong_share(correction), HIGHEST), 3)
    with tempfile.TemporaryDirectory() as folder:
        embedding = embed_images(
            crawl, image_encoder(), Path(folder) / "features", progress=progress
        )
        probs = linear_probe(
            embedding.vectors, crawl.web_labels, n_classes=len(crawl.class_names), n_kept=32
        )
        return round(min(noise_rate(probs, crawl.web_labels), HIGHEST), 3)
