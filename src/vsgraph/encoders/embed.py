"""A whole crawl to vectors: pictures, texts, and the list of problems."""

import contextlib
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.files import RECORD, refuse_file
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.images import image_encoder
from vsgraph.encoders.pipeline import embed_images, embed_texts
from vsgraph.encoders.protocol import ImageEncoder, TextEncoder
from vsgraph.encoders.runtimes.runners import BATCH
from vsgraph.encoders.sources.lsa import Lsa
from vsgraph.encoders.text import text_encoder
from vsgraph.encoders.vectors import Embedding
from vsgraph.errors import VSGraphWarning
from vsgraph.pictures.decode import Pixels, read_picture
from vsgraph.pictures.opener import PictureError

SAMPLES = 512


class Embedded(NamedTuple):
    """The vectors of a crawl, and the encoders they come from."""

    images: Embedding
    texts: Embedding
    image_encoder: ImageEncoder
    text_encoder: TextEncoder


def embed_crawl(
    crawl: Crawl,
    folder: str | Path,
    *,
    images: str = "lite0",
    texts: str = "minilm",
    long_texts: str = "truncate",
    runtime: str = "auto",
    precision: str = "auto",
    dtype: str = "float16",
    overwrite: bool = False,
    progress: bool = False,
) -> Embedded:
    """Encode the pictures and texts of a crawl into ``FOLDER/images`` and ``FOLDER/texts``.

    An interrupted run resumes. Pictures that cannot be used are counted in ``crawl.problems`` and
    listed in ``FOLDER/problems.tsv``.

    Parameters
    ----------
    crawl : Crawl
        What to encode.
    folder : str or Path
        Created if it does not exist.
    images, texts : str
        See :func:`image_encoder` and :func:`text_encoder`; ``lsa`` for texts needs no model.
    long_texts, runtime, precision
        See :func:`text_encoder`.
    dtype, overwrite, progress
        See :func:`embed_images`.

    Returns
    -------
    embedded : Embedded
        Vectors of pictures and texts, one row per image.
    """
    root = Path(folder)
    refuse_file(root)
    root.mkdir(parents=True, exist_ok=True)
    by_image = open_image_encoder(crawl, images, runtime, precision)
    by_text = open_text_encoder(crawl, texts, long_texts, runtime, precision)
    is_filled = (root / "images" / RECORD).exists()
    before = Embedding.load(root / "images").record["digest"] if is_filled else None
    options: Any = {"dtype": dtype, "overwrite": overwrite, "progress": progress}
    image_vectors = embed_images(crawl, by_image, root / "images", **options)
    text_vectors = embed_texts(crawl, by_text, root / "texts", **options)
    crawl.problems.save(root / "problems.tsv")
    if before not in {None, image_vectors.record["digest"]}:
        warnings.warn(
            f"{root} held vectors of another list of images, or of files that have changed since; "
            "they were replaced, so other arrays made for them no longer fit",
            VSGraphWarning,
            stacklevel=2,
        )
    return Embedded(image_vectors, text_vectors, by_image, by_text)


def open_image_encoder(crawl: Crawl, name: str, runtime: str, precision: str) -> ImageEncoder:
    """Open an image encoder; int8 is calibrated with pictures spread over the crawl."""
    if precision != "int8":
        return image_encoder(name, runtime=runtime, precision=precision)
    fp32 = image_encoder(name, runtime=runtime, precision="fp32")
    samples = picture_samples(crawl, fp32)
    return image_encoder(name, runtime=runtime, precision="int8", samples=samples)


def picture_samples(crawl: Crawl, encoder: ImageEncoder) -> list[Pixels]:
    """Return batches of prepared pictures spread over a crawl."""
    pixels = []
    for data in crawl.read_images(evenly_spread(len(crawl), SAMPLES)):
        with contextlib.suppress(PictureError):
            pixels.append(read_picture(data, encoder.preparation))
    return [np.stack(pixels[i : i + BATCH]) for i in range(0, len(pixels) - BATCH + 1, BATCH)]


def open_text_encoder(
    crawl: Crawl, name: str, long_texts: str, runtime: str, precision: str
) -> TextEncoder:
    """Open a text encoder; LSA learns from the crawl itself."""
    if name == "lsa":
        return Lsa.fit([*crawl.texts(), *crawl.class_names])
    samples = crawl.texts(evenly_spread(len(crawl), SAMPLES)) if precision == "int8" else ()
    return text_encoder(
        name, long_texts=long_texts, runtime=runtime, precision=precision,
        samples=[text for text in samples if text],
    )  # fmt: skip
