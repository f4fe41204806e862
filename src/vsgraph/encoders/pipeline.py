"""From a crawl to vectors on disk: its pictures, or its texts."""

import hashlib
import platform
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import n_threads
from vsgraph.common.files import file_errors
from vsgraph.common.stores import is_stored
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.picture_check import image_name
from vsgraph.encoders.batches import Loaded, Span, Work, fill_store
from vsgraph.encoders.places import Look, look
from vsgraph.encoders.protocol import ImageEncoder, TextEncoder
from vsgraph.encoders.store import VectorStore, content_key
from vsgraph.encoders.vectors import NOTHING, Embedding
from vsgraph.errors import InputError
from vsgraph.pictures.decode import quiet_decoders, read_picture
from vsgraph.pictures.opener import PictureError

IMAGE_BATCH = 64
TEXT_BATCH = 1024


@file_errors()
def embed_images(
    crawl: Crawl,
    encoder: ImageEncoder,
    folder: str | Path,
    *,
    dtype: str = "float16",
    overwrite: bool = False,
    known: Iterable[Path] = (),
    progress: bool = False,
) -> Embedding:
    """Encode the pictures of a crawl; an interrupted run resumes.

    A picture that cannot be used becomes a row of zeros, and the reason is counted in
    ``crawl.problems``. The same picture is encoded once, wherever it occurs. About 250 bytes of
    memory are used per picture, whatever its size.

    Parameters
    ----------
    crawl : Crawl
        From folders or tar shards.
    encoder : ImageEncoder
        See :func:`image_encoder`.
    folder : str or Path
        Where the vectors go; it appears when they are complete.
    dtype : str
        ``float16`` or ``float32``.
    overwrite : bool
        Whether vectors of another encoder in the folder are replaced.
    known : iterable of Path
        Folders with vectors of other crawls: what they hold is not encoded again.
    progress : bool
        Show a progress bar, on a terminal.

    Returns
    -------
    embedding : Embedding
        Vectors of shape (n_images, n_dims), one row per image.
    """
    widths = {"vectors": encoder.n_dims, "probs": encoder.n_classes}
    store = VectorStore(
        Path(folder), name=encoder.name, fingerprint=encoder.fingerprint, widths=widths,
        dtype=dtype, overwrite=overwrite, known=known,
    )  # fmt: skip

    def read(data: bytes) -> NDArray[Any]:
        return read_picture(data, encoder.preparation)

    def encode(pixels: list[Any]) -> NDArray[np.floating]:
        vectors, probs = encoder.encode(np.stack(pixels))
        return vectors if probs is None else np.hstack([vectors, probs])

    work = Work(
        title="pictures",
        unit="image",
        n_rows=len(crawl),
        batch_size=IMAGE_BATCH,
        look=lambda span: look(crawl, span),
        load=lambda span, *known: load_pictures(crawl, span, read, *known),
        encode=encode,
        n_at_once=n_threads() + 1,
        stands_alone=True,
    )
    with store, quiet_decoders():
        embedding = fill_store(store, work, progress=progress)
    for row, kind, detail in embedding.problems():
        crawl.problems.add(kind, image_name(crawl, row), detail)
    return embedding


def load_pictures(
    crawl: Crawl,
    span: Span,
    read: Callable[[bytes], NDArray[Any]],
    keys: Sequence[bytes],
    known: Container[bytes],
) -> Loaded:
    """Hash the pictures of a batch whose keys are not known yet, and `read` what is in them.

    Known contents are not read again.
    """
    if not is_stored(crawl.root) and not crawl.root.exists():  # not each of them is missing
        raise InputError(f"{platform.node()} does not see {crawl.root}, where the pictures are")
    loaded = Loaded(list(keys), [None] * len(keys), [])
    rows = np.array([row for row, key in enumerate(keys) if key == NOTHING], np.intp)
    pictures = crawl.take(slice(*span)).read_images(rows)
    for row, data in zip(rows.tolist(), pictures, strict=True):
        key = content_key(data)
        if key not in known:
            try:
                loaded.contents[row] = read(data)
            except PictureError as error:
                key = NOTHING
                loaded.problems.append((span[0] + row, error.reason, error.detail))
        loaded.keys[row] = key
    return loaded


@file_errors()
def embed_texts(
    texts: Crawl | Sequence[str],
    encoder: TextEncoder,
    folder: str | Path,
    *,
    fields: Sequence[str] | None = None,
    dtype: str = "float16",
    overwrite: bool = False,
    known: Iterable[Path] = (),
    progress: bool = False,
) -> Embedding:
    """Encode the texts of a crawl or of a list; an interrupted run resumes.

    A row without text becomes a row of zeros.

    Parameters
    ----------
    texts : Crawl or sequence of str
        A crawl's texts, or texts such as the descriptions of labels.
    encoder : TextEncoder
        See :func:`text_encoder`.
    folder : str or Path
        Where the vectors go.
    fields : sequence of str, optional
        The crawl's text fields to read; all of them if not given.
    dtype, overwrite, known, progress
        As for :func:`embed_images`.

    Returns
    -------
    embedding : Embedding
        Vectors of shape (n_texts, n_dims), one row per text.
    """
    store = VectorStore(
        Path(folder), name=encoder.name, fingerprint=encoder.fingerprint,
        widths={"vectors": encoder.n_dims}, dtype=dtype, overwrite=overwrite, known=known,
    )  # fmt: skip

    def read(span: Span) -> list[str]:
        if isinstance(texts, Crawl):
            return texts.texts(slice(*span), fields=fields)
        return [text.strip() for text in texts[span[0] : span[1]]]

    def load(span: Span, _keys: Sequence[bytes], _known: Container[bytes]) -> Loaded:
        batch = read(span)
        keys = [content_key(text.encode()) if text else NOTHING for text in batch]
        return Loaded(keys, batch, [])

    work = Work(
        title="texts",
        unit="text",
        n_rows=len(texts),
        batch_size=TEXT_BATCH,
        look=lambda span: Look(hashlib.sha256("\0".join(read(span)).encode()).hexdigest()),
        load=load,
        encode=encoder.encode,
        n_at_once=1,  # text encoders use all cores themselves
        stands_alone=False,  # lengths are evened out within a batch
    )
    with store:
        return fill_store(store, work, progress=progress)
