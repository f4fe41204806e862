"""Batches of a crawl: read and encoded in threads, saved in order; or on other machines."""

import dataclasses
import functools
import hashlib
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import Machines, current_machines, n_threads
from vsgraph.common.progress import bar
from vsgraph.encoders.known import KnownKeys
from vsgraph.encoders.places import Look
from vsgraph.encoders.store import Form, VectorStore
from vsgraph.encoders.vectors import NOTHING, Batch, Embedding, Problem
from vsgraph.pictures.decode import quiet_decoders

Span = tuple[int, int]
NO_VALUES = np.zeros((0, 1), np.float32)
MOST_TOGETHER = 128  # batches that wait for each other


class Loaded(NamedTuple):
    """A batch before it is encoded."""

    keys: list[bytes]  # one per row
    contents: list[Any]  # one per row; not used where the content is known or there is none
    problems: list[Problem]


# Loads a span, given the keys of its rows, `NOTHING` where they must be read, and all known keys:
# such contents may be left out.
Load = Callable[[Span, Sequence[bytes], Container[bytes]], Loaded]


class Work(NamedTuple):
    """The contents to encode, and how to load and encode them."""

    title: str  # of the progress bar
    unit: str
    n_rows: int
    batch_size: int
    look: Callable[[Span], Look]  # at what rows refer to
    load: Load
    encode: Callable[[list[Any]], NDArray[np.floating]]  # n contents to (n, width)
    n_at_once: int  # batches that are encoded at the same time
    stands_alone: bool  # whether the bits of a vector do not depend on the others of its batch


class Errand(NamedTuple):
    """A batch to encode on another machine."""

    span: Span
    look: Look
    keys: list[bytes]  # as far as they are known
    new: list[int] | None  # rows of the span to encode; None for all contents that are not known
    path: Path  # of the file to write


def fill_store(store: VectorStore, work: Work, *, progress: bool) -> Embedding:
    """Encode the batches that are missing in the store, then join all of them."""
    starts = range(0, work.n_rows, work.batch_size)
    plan = [(start, min(start + work.batch_size, work.n_rows)) for start in starts]
    with bar(work.n_rows, work.title, work.unit, progress=progress) as steps:
        looks = [work.look(span) for span in plan]
        digests = "\0".join(look.digest for look in looks)
        digest_of_all = hashlib.sha256(digests.encode()).hexdigest()
        finished = store.finished(digest_of_all)
        if finished is not None:
            return finished
        store.check_room(work.n_rows)
        pending = []
        for span, look in zip(plan, looks, strict=True):
            if store.has_batch(*span, look.digest):
                steps.update(span[1] - span[0])
            else:
                pending.append((span, look))
        steps.unpause()
        machines = current_machines()
        saved = (
            map(store.append, _encoded(store, pending, work)) if machines is None
            else _encoded_elsewhere(machines, store, pending, work)
        )  # fmt: skip
        for batch in saved:
            steps.update(batch.stop - batch.start)
    return store.finish(plan, digest_of_all)


def _encoded(store: VectorStore, pending: list[tuple[Span, Look]], work: Work) -> Iterator[Batch]:
    """Yield encoded batches in order; only a few are read or encoded ahead."""
    claimed: set[bytes] = set()  # contents that are being encoded
    encoding: deque[tuple[list[Batch], Future[NDArray[np.floating]]]] = deque()

    def encode(contents: list[Any]) -> NDArray[np.floating]:
        return work.encode(contents) if contents else NO_VALUES

    def next_encoded() -> Iterator[Batch]:
        group, values = encoding.popleft()
        ends = np.cumsum([len(batch.new) for batch in group])
        for batch, own in zip(group, np.split(values.result(), ends[:-1]), strict=True):
            claimed.difference_update(batch.keys)
            yield dataclasses.replace(batch, values=own)

    with ThreadPoolExecutor(n_threads()) as pool:
        for group, contents in _read_groups(store, pending, work, pool, claimed):
            encoding.append((group, pool.submit(encode, contents)))
            if len(encoding) >= work.n_at_once:
                yield from next_encoded()
        while encoding:
            yield from next_encoded()


def _read_groups(
    store: VectorStore,
    pending: list[tuple[Span, Look]],
    work: Work,
    pool: ThreadPoolExecutor,
    claimed: set[bytes],
) -> Iterator[tuple[list[Batch], list[Any]]]:
    """Yield batches without vectors, and what is new in them, in order.

    Where little is new, several batches go together: encoders work by full batches.
    """
    rest = iter(pending)
    reading: deque[tuple[Span, Look, Future[Loaded]]] = deque()

    def read_ahead() -> None:
        for span, look in islice(rest, 2 * n_threads() - len(reading)):
            known = store.keys_of(look.places, span[1] - span[0])
            reading.append((span, look, pool.submit(work.load, span, known, store)))

    most = MOST_TOGETHER if work.stands_alone else 1
    group: list[Batch] = []
    together: list[Any] = []
    read_ahead()
    while reading:
        span, look, future = reading.popleft()
        keys, contents, problems = future.result()
        read_ahead()
        new = _new_places(keys, store, claimed)
        claimed.update(keys[place] for place in new)
        group.append(Batch(*span, look.digest, keys, new, NO_VALUES, problems, look.places))
        together += [contents[place] for place in new]
        if len(group) == most or len(together) >= work.batch_size or not reading:
            yield group, together
            group, together = [], []


def _encoded_elsewhere(
    machines: Machines, store: VectorStore, pending: list[tuple[Span, Look]], work: Work
) -> Iterator[Batch]:
    """Let other machines read, encode and save batches; what they hold is the same."""

    def errands() -> Iterator[Errand]:
        claimed: set[bytes] = set()
        for (span, look), path in zip(pending, store.next_paths(), strict=False):
            known, new = store.keys_of(look.places, span[1] - span[0]), None
            if not work.stands_alone:
                keys = work.load(span, known, store).keys
                new = _new_places(keys, store, claimed)
                claimed.update(keys[place] for place in new)
            yield Errand(span, look, known, new, path)

    run = functools.partial(run_errand, work.load, work.encode, store.form, store.known_keys())
    sent: deque[Errand] = deque()

    def note(errand: Errand) -> Errand:
        sent.append(errand)
        return errand

    def name(errand: Errand) -> str:
        return f"rows {errand.span[0]} to {errand.span[1] - 1}"

    for batch in machines.each(run, map(note, errands()), name):
        yield store.remember(sent.popleft().path, batch)


def run_errand(
    load: Load,
    encode: Callable[[list[Any]], NDArray[np.floating]],
    form: Form,
    known: KnownKeys,
    errand: Errand,
) -> Batch:
    """Read, encode and save a batch; return it without its vectors. Called on other machines."""
    with quiet_decoders():
        keys, contents, problems = load(errand.span, errand.keys, known)
    new = _new_places(keys, known, set()) if errand.new is None else errand.new
    values = encode([contents[place] for place in new]) if new else NO_VALUES
    batch = Batch(
        *errand.span, errand.look.digest, keys, new, form.fit(values), problems, errand.look.places
    )
    batch.save(errand.path)
    return dataclasses.replace(batch, values=NO_VALUES)


def _new_places(keys: list[bytes], known: Container[bytes], claimed: set[bytes]) -> list[int]:
    """Return the first place of each content that is neither encoded nor being encoded."""
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    return sorted(
        place
        for key, place in first.items()
        if key != NOTHING and key not in known and key not in claimed
    )
