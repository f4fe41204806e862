"""Batches of a crawl: read and encoded in threads, saved in order."""

import dataclasses
import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import n_threads
from vsgraph.common.progress import bar
from vsgraph.encoders.store import NOTHING, VectorStore
from vsgraph.encoders.vectors import Batch, Embedding, Problem

Span = tuple[int, int]
NO_VALUES = np.zeros((0, 1), np.float32)


class Loaded(NamedTuple):
    """A batch before it is encoded."""

    keys: list[bytes]  # one per row
    contents: list[Any]  # one per row; not used where the content is known or there is none
    problems: list[Problem]


class Work(NamedTuple):
    """The contents to encode, and how to load and encode them."""

    title: str  # of the progress bar
    unit: str
    n_rows: int
    batch_size: int
    digest: Callable[[Span], str]  # of what rows refer to
    load: Callable[[Span], Loaded]  # called in threads
    encode: Callable[[list[Any]], NDArray[np.floating]]  # n contents to (n, width)
    n_at_once: int  # batches that are encoded at the same time


def fill_store(store: VectorStore, work: Work, *, progress: bool) -> Embedding:
    """Encode the batches that are missing in the store, then join all of them."""
    starts = range(0, work.n_rows, work.batch_size)
    plan = [(start, min(start + work.batch_size, work.n_rows)) for start in starts]
    with bar(work.n_rows, work.title, work.unit, progress=progress) as steps:
        digests = [work.digest(span) for span in plan]
        digest_of_all = hashlib.sha256("\0".join(digests).encode()).hexdigest()
        finished = store.finished(digest_of_all)
        if finished is not None:
            return finished
        store.check_room(work.n_rows)
        pending = []
        for span, digest in zip(plan, digests, strict=True):
            if store.has_batch(*span, digest):
                steps.update(span[1] - span[0])
            else:
                pending.append((span, digest))
        steps.unpause()
        for batch in _encoded(store, pending, work):
            store.append(batch)
            steps.update(batch.stop - batch.start)
    return store.finish(plan, digest_of_all)


def _encoded(store: VectorStore, pending: list[tuple[Span, str]], work: Work) -> Iterator[Batch]:
    """Yield encoded batches in order; only a few are read or encoded ahead."""
    rest = iter(pending)
    claimed: set[bytes] = set()  # contents that are being encoded
    reading: deque[tuple[Span, str, Future[Loaded]]] = deque()
    encoding: deque[tuple[Batch, Future[NDArray[np.floating]]]] = deque()
    with ThreadPoolExecutor(n_threads()) as pool:

        def read_ahead() -> None:
            for span, digest in islice(rest, 2 * n_threads() - len(reading)):
                reading.append((span, digest, pool.submit(work.load, span)))

        def encode(contents: list[Any]) -> NDArray[np.floating]:
            return work.encode(contents) if contents else NO_VALUES

        read_ahead()
        while reading or encoding:
            if reading:
                span, digest, future = reading.popleft()
                keys, contents, problems = future.result()
                read_ahead()
                new = _new_places(keys, store, claimed)
                claimed.update(keys[place] for place in new)
                values = pool.submit(encode, [contents[place] for place in new])
                encoding.append((Batch(*span, digest, keys, new, NO_VALUES, problems), values))
            while len(encoding) >= (work.n_at_once if reading else 1):
                batch, values = encoding.popleft()
                claimed.difference_update(batch.keys)
                yield dataclasses.replace(batch, values=values.result())


def _new_places(keys: list[bytes], store: VectorStore, claimed: set[bytes]) -> list[int]:
    """Return the first place of each content that is neither encoded nor being encoded."""
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    return sorted(
        place
        for key, place in first.items()
        if key != NOTHING and key not in store and key not in claimed
    )
