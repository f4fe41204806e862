"""From a crawl to vectors on disk: read and decode in threads, keep batches as they come."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from vsgraph.common.blocks import n_threads
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.picture_batches import (
    Loaded,
    Span,
    load_pictures,
    quiet_decoders,
    references,
    where,
)
from vsgraph.encoders.protocol import ImageEncoder, TextEncoder
from vsgraph.encoders.store import NOTHING, Batch, VectorStore, content_key
from vsgraph.encoders.vectors import Embedding

IMAGE_BATCH = 64
TEXT_BATCH = 1024


class Work(NamedTuple):
    """What differs between pictures and texts."""

    digest: Callable[[Span], str]
    load: Callable[[Span], Loaded]
    encode: Callable[[list[Any]], NDArray[np.floating]]
    in_pool: bool


def embed_images(
    crawl: Crawl,
    encoder: ImageEncoder,
    folder: str | Path,
    *,
    dtype: str = "float16",
    overwrite: bool = False,
    progress: bool = False,
) -> Embedding:
    """Encode the pictures of a crawl, going on where an earlier run ended.

    A picture that cannot be used becomes a row of zeros, and its reason is counted in
    ``crawl.problems``. The same picture is encoded once, wherever it occurs. Memory does not grow
    with the pictures; some 200 bytes a picture are held.

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
        Replace vectors of another encoder.
    progress : bool
        Show images a second and the time left, on a terminal.
    """
    widths = {"vectors": encoder.n_dims}
    if encoder.n_classes:
        widths["probs"] = encoder.n_classes
    store = VectorStore(
        Path(folder), name=encoder.name, fingerprint=encoder.fingerprint, widths=widths,
        dtype=dtype, overwrite=overwrite,
    )  # fmt: skip

    def encode(pixels: list[Any]) -> NDArray[np.floating]:
        found = encoder.encode(np.stack(pixels))
        return found.vectors if found.probs is None else np.hstack([found.vectors, found.probs])

    work = Work(
        digest=lambda span: references(crawl, span),
        load=lambda span: load_pictures(crawl, span, encoder, store),
        encode=encode,
        in_pool=True,
    )
    with store, quiet_decoders():
        plan = [*_spans(len(crawl), IMAGE_BATCH)]
        made = _run(store, plan, work, _bar(len(crawl), "pictures", "image", progress))
    for row, kind, detail in made.problems():
        crawl.problems.add(kind, where(crawl, row), detail)
    return made


def embed_texts(
    texts: Crawl | Sequence[str],
    encoder: TextEncoder,
    folder: str | Path,
    *,
    fields: Sequence[str] | None = None,
    dtype: str = "float16",
    overwrite: bool = False,
    progress: bool = False,
) -> Embedding:
    """Encode the texts of a crawl or of a list, going on where an earlier run ended.

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
    dtype, overwrite, progress
        As for :func:`embed_images`.
    """
    store = VectorStore(
        Path(folder), name=encoder.name, fingerprint=encoder.fingerprint,
        widths={"vectors": encoder.n_dims}, dtype=dtype, overwrite=overwrite,
    )  # fmt: skip

    def read(span: Span) -> list[str]:
        if isinstance(texts, Crawl):
            return texts.texts(slice(*span), fields=fields)
        return [text.strip() for text in texts[span[0] : span[1]]]

    def load(span: Span) -> Loaded:
        found = read(span)
        keys = [content_key(text.encode()) if text else NOTHING for text in found]
        return Loaded(
            keys, [None if key in store else t for key, t in zip(keys, found, strict=True)], []
        )

    def digest(span: Span) -> str:
        return hashlib.sha256("\0".join(read(span)).encode()).hexdigest()

    work = Work(digest, load, encoder.encode, in_pool=False)
    with store:
        plan = [*_spans(len(texts), TEXT_BATCH)]
        return _run(store, plan, work, _bar(len(texts), "texts", "text", progress))


def _spans(n_rows: int, size: int) -> Iterator[Span]:
    """Cut rows into batches."""
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def _bar(total: int, title: str, unit: str, progress: bool) -> "tqdm[Any]":  # noqa: FBT001
    return tqdm(total=total, desc=title, unit=unit, disable=None if progress else True, leave=False)


def _run(store: VectorStore, plan: list[Span], work: Work, bar: "tqdm[Any]") -> Embedding:
    """Do the batches that are not there yet, then put all together."""
    with bar:
        digests = [work.digest(span) for span in plan]
        whole = hashlib.sha256("\0".join(digests).encode()).hexdigest()
        done = store.finished(whole)
        if done is not None:
            return done
        store.check_room(plan[-1][1] if plan else 0)
        pending = []
        for span, digest in zip(plan, digests, strict=True):
            if store.has_batch(*span, digest):
                bar.update(span[1] - span[0])
            else:
                pending.append((span, digest))
        bar.unpause()
        for batch in _encoded(store, pending, work):
            store.append(batch)
            bar.update(batch.stop - batch.start)
    return store.finish(plan, whole)


def _encoded(store: VectorStore, pending: list[tuple[Span, str]], work: Work) -> Iterator[Batch]:
    """Yield batches in order; reading and encoding go on in threads, few batches ahead."""
    claimed: set[bytes] = set()
    rest = iter(pending)
    loading: deque[tuple[Span, str, Future[Loaded]]] = deque()
    encoding: deque[tuple[Span, str, Loaded, list[int], Future[NDArray[np.floating]]]] = deque()
    with ThreadPoolExecutor(n_threads()) as pool:

        def fill() -> None:
            for span, digest in islice(rest, 2 * n_threads() - len(loading)):
                loading.append((span, digest, pool.submit(work.load, span)))

        def batch() -> Batch:
            span, digest, loaded, new, future = encoding.popleft()
            claimed.difference_update(loaded.keys)
            return Batch(*span, digest, loaded.keys, new, future.result(), loaded.problems)

        fill()
        while loading:
            span, digest, read = loading.popleft()
            loaded = read.result()
            fill()
            new = _first_seen(loaded, store, claimed)
            claimed.update(loaded.keys[i] for i in new)
            contents = [loaded.contents[i] for i in new]
            slim = loaded._replace(contents=[])
            future = _submit(pool if work.in_pool else None, work.encode, contents)
            encoding.append((span, digest, slim, new, future))
            while len(encoding) > (n_threads() if work.in_pool else 0):
                yield batch()
        while encoding:
            yield batch()


def _submit(
    pool: ThreadPoolExecutor | None, encode: Callable[[list[Any]], Any], contents: list[Any]
) -> Future[NDArray[np.floating]]:
    """Encode in the pool, or at once."""
    if pool is not None and contents:
        return pool.submit(encode, contents)
    future: Future[NDArray[np.floating]] = Future()
    future.set_result(encode(contents) if contents else np.zeros((0, 1), np.float32))
    return future


def _first_seen(loaded: Loaded, store: VectorStore, claimed: set[bytes]) -> list[int]:
    """Return the rows whose content nobody has encoded or is about to."""
    seen: set[bytes] = set()
    new = []
    for i, key in enumerate(loaded.keys):
        if key != NOTHING and key not in seen and key not in store and key not in claimed:
            new.append(i)
            seen.add(key)
    return new
