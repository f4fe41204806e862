"""A whole crawl to vectors: pictures, texts, and the list of what was wrong."""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vsgraph.common.files import RECORD, refuse_file
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.images import BATCH, image_encoder
from vsgraph.encoders.pipeline import embed_images, embed_texts
from vsgraph.encoders.protocol import ImageEncoder, Pixels, TextEncoder
from vsgraph.encoders.sources.lsa import Lsa
from vsgraph.encoders.text import text_encoder
from vsgraph.encoders.vectors import Embedding
from vsgraph.errors import VSGraphWarning
from vsgraph.pictures.decode import PictureError, read_picture

SAMPLES = 512


class Embedded(NamedTuple):
    """What :func:`embed_crawl` leaves."""

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

    Interrupted and called again, it goes on where it ended. What was wrong with pictures is counted
    in ``crawl.problems`` and listed in ``FOLDER/problems.tsv``.

    Parameters
    ----------
    crawl : Crawl
        What to encode.
    folder : str or Path
        Made if it is not there.
    images, texts : str
        See :func:`image_encoder` and :func:`text_encoder`; ``lsa`` for texts needs no model.
    long_texts, runtime, precision
        See :func:`text_encoder`.
    dtype, overwrite, progress
        See :func:`embed_images`.
    """
    root = Path(folder)
    refuse_file(root)
    root.mkdir(parents=True, exist_ok=True)
    by_image = open_image_encoder(crawl, images, runtime, precision)
    by_text = open_text_encoder(crawl, texts, long_texts, runtime, precision)
    before = _digest(root / "images")
    keep = {"dtype": dtype, "overwrite": overwrite, "progress": progress}
    found = Embedded(
        embed_images(crawl, by_image, root / "images", **keep),  # type: ignore[arg-type]
        embed_texts(crawl, by_text, root / "texts", **keep),  # type: ignore[arg-type]
        by_image,
        by_text,
    )
    crawl.problems.save(root / "problems.tsv")
    if before not in {None, found.images.record["digest"]}:
        warnings.warn(
            f"{root} held vectors of another list of images, or of files that changed since; they "
            "were replaced, so arrays made beside them fit no more",
            VSGraphWarning,
            stacklevel=2,
        )
    return found


def _digest(folder: Path) -> str | None:
    """Return which pictures a folder holds vectors of."""
    return Embedding.load(folder).record["digest"] if (folder / RECORD).exists() else None


def _spread(n_rows: int) -> list[int]:
    """Return rows spread over a crawl."""
    return sorted(set(np.linspace(0, n_rows - 1, min(SAMPLES, n_rows)).astype(int).tolist()))


def open_image_encoder(crawl: Crawl, name: str, runtime: str, precision: str) -> ImageEncoder:
    """Open an image encoder; int8 is given pictures spread over the crawl."""
    if precision != "int8":
        return image_encoder(name, runtime=runtime, precision=precision)
    whole = image_encoder(name, runtime=runtime, precision="fp32")
    samples = picture_samples(crawl, whole)
    return image_encoder(name, runtime=runtime, precision="int8", samples=samples)


def picture_samples(crawl: Crawl, encoder: ImageEncoder) -> list[Pixels]:
    """Return batches of prepared pictures spread over a crawl."""
    pixels = []
    for data in crawl.read_images(np.array(_spread(len(crawl)))):
        try:
            pixels.append(read_picture(data, encoder.preparation))
        except PictureError:
            continue
    return [np.stack(pixels[i : i + BATCH]) for i in range(0, len(pixels) - BATCH + 1, BATCH)]


def open_text_encoder(
    crawl: Crawl, name: str, long_texts: str, runtime: str, precision: str
) -> TextEncoder:
    """Open a text encoder; LSA learns from the crawl itself."""
    if name == "lsa":
        return Lsa.fit([*crawl.texts(), *crawl.class_names])
    samples = crawl.texts(np.array(_spread(len(crawl)))) if precision == "int8" else ()
    return text_encoder(
        name, long_texts=long_texts, runtime=runtime, precision=precision,
        samples=[text for text in samples if text],
    )  # fmt: skip
