"""Vectors on disk: saved batch by batch, each content once, one array at the end.

Until all rows are encoded, batches lie in a folder beside the final one. Its name holds the
encoder's fingerprint. At the end they become one plain ``.npy`` file in the order of the crawl, and
the final folder appears whole. An interrupted run resumes with the first missing batch. If the
crawl has grown, only new content is encoded.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import check_one_of
from vsgraph.common.files import (
    RECORD,
    file_errors,
    lock,
    mend_leftovers,
    new_array,
    refuse_file,
    remove_folder,
    sync_path,
    to_disk,
)
from vsgraph.common.room import check_disk
from vsgraph.encoders.known import KnownKeys, KnownPlaces
from vsgraph.encoders.vectors import (
    FORMAT,
    KEY,
    NOTHING,
    PLACES,
    PROBLEMS,
    Batch,
    Embedding,
    Problem,
    file_checksum,
    load_batch,
)
from vsgraph.errors import InputError


def content_key(content: bytes) -> bytes:
    """Return the key of a picture's or text's bytes."""
    return hashlib.blake2b(content, digest_size=KEY).digest()


class Saved(NamedTuple):
    """A batch on disk, without its vectors."""

    path: Path
    digest: str
    is_complete: bool  # whether the vectors of all its rows are known
    first: int  # number of its first vector among all vectors of the store


class Form(NamedTuple):
    """How an encoder's vectors are saved."""

    name: str  # of the encoder
    dtype: np.dtype[Any]

    def fit(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return vectors in this type; raise an error if it cannot hold them."""
        with np.errstate(over="ignore"):
            fitted = np.ascontiguousarray(values, self.dtype)
        if not np.isfinite(fitted).all():
            raise InputError(
                f"{self.name} returned numbers that {self.dtype} cannot hold; "
                + ("use dtype float32" if self.dtype == np.float16 else "use precision fp32")
            )
        return fitted


class VectorStore:
    """Fills a folder with the vectors of an encoder, batch by batch.

    `widths` are the numbers of columns of ``vectors``, and of ``probs`` if the encoder has a
    classifier. With `overwrite`, vectors of another encoder in the folder are replaced. Vectors of
    the same content and encoder in the finished folders `known` are taken from there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        fingerprint: str,
        widths: Mapping[str, int],
        dtype: str = "float16",
        overwrite: bool = False,
        known: Iterable[Path] = (),
    ) -> None:
        check_one_of("dtype", dtype, ("float16", "float32"))
        self.folder = folder
        self.name = name
        self.dtype = np.dtype(dtype)
        self.form = Form(name, self.dtype)
        self.widths = {name: width for name, width in widths.items() if width}
        self.fingerprint = hashlib.sha256(
            "\0".join([fingerprint, dtype, str(sorted(self.widths.items()))]).encode()
        ).hexdigest()
        self.parts = folder.parent / f"{folder.name}.parts-{self.fingerprint[:16]}"
        mend_leftovers(folder.parent)
        if (self.parts / "old").exists() and not folder.exists():  # killed in finish()
            (self.parts / "old").rename(folder)
        self._finished = self._open_finished(overwrite=overwrite)
        self._sources = [self._finished] if self._finished else []
        others = (found for path in known if (found := self._open_known(path)))
        same = {found.record["digest"]: found for found in others}  # of one crawl, one is enough
        self._sources += same.values()
        self._firsts: list[int] = []  # number of the first vector of each source
        self.parts.mkdir(parents=True, exist_ok=True)
        # Vectors are numbered: first the rows of finished folders, then those of each batch.
        self._numbers: dict[bytes, int] = {}
        self._n_vectors = 0
        self._n_finished = 0  # different contents in the finished folders
        self._saved: list[Saved] = []
        self._by_span: dict[tuple[int, int], Saved] = {}
        self._held: dict[tuple[int, int], Batch] = {}  # batches of which nothing was new
        self._n_files = 0
        self._lock = lock(self.parts / "lock")

    def __enter__(self) -> Self:
        for source in self._sources:
            self._firsts.append(self._n_vectors)
            self._add_keys(key.tobytes() for key in source.keys)
        self._n_finished = len(self._numbers)
        self._places = KnownPlaces.of(self._sources)
        for path in sorted(self.parts.glob("batch-*.npz")):
            with contextlib.suppress(InputError):  # damaged: its rows are encoded again
                self.remember(path, load_batch(path))
            self._n_files = int(path.stem.removeprefix("batch-")) + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _open_finished(self, *, overwrite: bool) -> Embedding | None:
        """Open the final folder of an earlier run, if it is of the same encoder."""
        refuse_file(self.folder)
        if not self.folder.exists():
            return None
        if not (self.folder / RECORD).exists():
            if any(self.folder.iterdir()):
                raise InputError(f"{self.folder} holds other files; choose another folder")
            return None
        finished = Embedding.load(self.folder)
        if finished.record["fingerprint"] == self.fingerprint:
            return finished
        if not overwrite:
            raise InputError(
                f"{self.folder} holds vectors of {finished.record['encoder']} made in another way "
                "(model, size, preparation, runtime or precision); choose another folder, or pass "
                "overwrite=True (--overwrite)"
            )
        return None

    def _open_known(self, folder: Path) -> Embedding | None:
        """Open the vectors of another run, if they are of the same encoder."""
        with contextlib.suppress(InputError, OSError, KeyError):
            found = Embedding.load(folder)
            is_new = folder.resolve() != self.folder.resolve()
            return found if is_new and found.record["fingerprint"] == self.fingerprint else None
        return None

    def check_room(self, n_rows: int) -> None:
        """Refuse to start if the disk is too small for batches and final arrays together."""
        row_bytes = sum(self.widths.values()) * self.dtype.itemsize + KEY
        n_missing = max(0, n_rows - len(self._numbers))
        check_disk(self.folder.parent, (n_missing + n_rows) * row_bytes)

    def finished(self, digest: str) -> Embedding | None:
        """Return the vectors of an earlier run, if they are of the same crawl."""
        if self._finished is None or self._finished.record["digest"] != digest:
            return None
        if len(self._numbers) == self._n_finished:  # the batches hold nothing new
            remove_folder(self.parts)
        return self._finished

    def has_batch(self, start: int, stop: int, digest: str) -> bool:
        """Return whether a batch need not be encoded again."""
        saved = self._by_span.get((start, stop))
        return saved is not None and saved.digest == digest and saved.is_complete

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def keys_of(self, places: bytes, n_rows: int) -> list[bytes]:
        """Return the keys of rows as far as their places tell, `NOTHING` where they do not."""
        return self._places.keys_of(places) if places else [NOTHING] * n_rows

    def append(self, batch: Batch) -> Batch:
        """Write a batch to a file of its own; one without anything new is only remembered."""
        if not batch.new:
            self._held[batch.start, batch.stop] = batch
            return batch
        path = next(self.next_paths())
        dataclasses.replace(batch, values=self.form.fit(batch.values)).save(path)
        return self.remember(path, batch)

    def next_paths(self) -> Iterator[Path]:
        """Yield the paths of the next files of batches."""
        numbers = itertools.count(self._n_files)
        return (self.parts / f"batch-{number:08d}.npz" for number in numbers)

    def known_keys(self) -> KnownKeys:
        """Return the keys of all contents that are encoded."""
        return KnownKeys(np.sort(np.frombuffer(b"".join(self._numbers), f"S{KEY}")))

    def remember(self, path: Path, batch: Batch) -> Batch:
        """Note which vectors the file of a batch holds; return the batch."""
        self._n_files += 1
        first = self._n_vectors
        self._add_keys(batch.keys[place] for place in batch.new)
        is_complete = all(key == NOTHING or key in self._numbers for key in batch.keys)
        saved = Saved(path, batch.digest, is_complete, first)
        self._saved.append(saved)
        self._by_span[batch.start, batch.stop] = saved
        return batch

    def _add_keys(self, keys: Iterable[bytes]) -> None:
        """Give numbers to the vectors of keys; if a key comes again, its first vector counts."""
        for key in keys:
            self._numbers.setdefault(key, self._n_vectors)
            self._n_vectors += 1

    def finish(self, plan: Sequence[tuple[int, int]], digest: str) -> Embedding:
        """Join the batches in the order of the crawl into the final folder, and remove them."""
        final = self.parts / "final"
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        with file_errors(self.folder):
            problems = self._write_arrays(final, plan)
            self._write_record(final, digest, problems)
            to_disk(final)
        if self.folder.exists():
            shutil.rmtree(self.parts / "old", ignore_errors=True)
            self.folder.rename(self.parts / "old")
        final.rename(self.folder)
        sync_path(self.folder.parent)
        self._finished = None
        self._sources = []
        remove_folder(self.parts)
        return Embedding.load(self.folder)

    def _write_arrays(self, folder: Path, plan: Sequence[tuple[int, int]]) -> list[Problem]:
        """Write the arrays, and return the problems."""
        n_rows = plan[-1][1] if plan else 0
        shapes = {name: (self.dtype, width) for name, width in self.widths.items()}
        arrays = {
            name: new_array(folder / f"{name}.npy", dtype, (n_rows, width))
            for name, (dtype, width) in (shapes | {"keys": (np.uint8, KEY)}).items()
        }
        firsts = np.array([*self._firsts, *(saved.first for saved in self._saved)], np.intp)
        problems: list[Problem] = []
        places: list[bytes] = []
        for span in plan:
            batch = self._held.get(span) or load_batch(self._by_span[span].path)
            rows = slice(*span)
            arrays["keys"][rows] = np.frombuffer(b"".join(batch.keys), np.uint8).reshape(-1, KEY)
            values = self._values_of(batch.keys, firsts)  # (n_batch, sum of widths)
            start = 0
            for name, width in self.widths.items():
                arrays[name][rows] = values[:, start : start + width]
                start += width
            problems += batch.problems
            places.append(batch.places)
        for array in arrays.values():
            array.flush()
        if any(places):
            (folder / PLACES).write_bytes(b"".join(places))
        return problems

    def _values_of(self, keys: Sequence[bytes], firsts: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return the vectors of keys, zeros for rows without content.

        `firsts` are the numbers of the first vector of each finished folder and batch.
        """
        values = np.zeros((len(keys), sum(self.widths.values())), self.dtype)
        numbers = np.array([-1 if key == NOTHING else self._numbers[key] for key in keys])
        places = np.searchsorted(firsts, numbers, side="right") - 1
        for place in np.unique(places[numbers >= 0]):
            rows = np.flatnonzero((places == place) & (numbers >= 0))
            values[rows] = self._vectors_at(place, numbers[rows] - firsts[place])
        return values

    def _vectors_at(self, place: int, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return some vectors of a finished folder or, behind them, of a batch."""
        if place >= len(self._firsts):
            return load_batch(self._saved[place - len(self._firsts)].path).values[rows]
        source = self._sources[place]
        arrays = (source.vectors, source.probs)
        return np.hstack([np.asarray(array)[rows] for array in arrays if array is not None])

    def _write_record(self, folder: Path, digest: str, problems: Sequence[Problem]) -> None:
        """Write the problems, and what the arrays are."""
        lines = "".join(json.dumps(problem) + "\n" for problem in problems)
        (folder / PROBLEMS).write_text(lines, encoding="utf-8")
        counts = Counter(kind for _, kind, _ in problems)
        record = {
            "format": FORMAT, "encoder": self.name, "fingerprint": self.fingerprint,
            "digest": digest, "problems": dict(sorted(counts.items())),
            "checksums": {path.name: file_checksum(path) for path in sorted(folder.glob("*.npy"))},
        }  # fmt: skip
        (folder / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
