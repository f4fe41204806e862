"""Vectors on disk: appended as they come, each content once, one array at the end.

While work goes on, batches lie in a folder beside the final one, whose name holds the encoder's
fingerprint. At the end they become one plain ``.npy`` file in the order of the crawl, and the final
folder appears whole. Started again, work goes on with the first batch that is not there; started
again on a crawl that has grown, only new content is encoded.
"""

import dataclasses
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from vsgraph.common.files import RECORD, lock, refuse_file
from vsgraph.encoders.frames import Frame, FrameLog, full_disk
from vsgraph.encoders.vectors import FORMAT, KEY, PROBLEMS, Embedding, Problem, file_checksum
from vsgraph.errors import InputError

NOTHING = bytes(KEY)  # the key of a row without content


def content_key(content: bytes) -> bytes:
    """Return the key of a picture's or text's bytes.

    >>> len(content_key(b"crane"))
    16
    """
    return hashlib.blake2b(content, digest_size=KEY).digest()


@dataclasses.dataclass(frozen=True)
class Batch:
    """Rows of a crawl that were encoded together."""

    start: int
    stop: int
    digest: str  # of what the rows refer to
    keys: Sequence[bytes]  # a row
    new: Sequence[int]  # places within the batch whose values follow
    values: NDArray[np.floating]
    problems: Sequence[Problem] = ()


class VectorStore:
    """Fills a folder with vectors, batch by batch.

    Parameters
    ----------
    folder : Path
        The final folder.
    name, fingerprint : str
        The encoder's.
    widths : mapping of str to int
        Columns of each array: ``vectors``, and ``probs`` where there are some.
    dtype : str
        ``float16`` or ``float32``.
    overwrite : bool
        Replace vectors of another encoder in the same folder.
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
    ) -> None:
        if dtype not in {"float16", "float32"}:
            raise InputError(f"dtype must be float16 or float32, got {dtype!r}")
        self.folder = folder
        self.name = name
        self.dtype = np.dtype(dtype)
        self.widths = dict(widths)
        self.fingerprint = hashlib.sha256(
            "\0".join([fingerprint, dtype, str(sorted(widths.items()))]).encode()
        ).hexdigest()
        self._done = self._open_done(overwrite=overwrite)
        self.parts = folder.parent / f"{folder.name}.parts-{self.fingerprint[:16]}"
        self._log = FrameLog(self.parts)
        self._frames: list[Frame] = []
        self._batches: dict[tuple[int, int], int] = {}
        self._places: dict[bytes, int] = {}
        self._lock = lock(self.parts / "lock")

    def __enter__(self) -> Self:
        for row, key in enumerate(self._done.keys if self._done else ()):
            self._places.setdefault(key.tobytes(), -1 - row)
        for frame in self._log.scan():
            self._remember(frame)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _open_done(self, *, overwrite: bool) -> Embedding | None:
        """Open what an earlier run finished, if it is of the same kind."""
        refuse_file(self.folder)
        if not self.folder.exists():
            return None
        if not (self.folder / RECORD).exists() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder} holds other files; choose another folder")
        if not (self.folder / RECORD).exists():
            return None
        done = Embedding.load(self.folder)
        if done.record["fingerprint"] == self.fingerprint:
            return done
        if not overwrite:
            raise InputError(
                f"{self.folder} holds vectors of {done.record['encoder']} made in another way "
                "(model, size, preparation, runtime or precision); choose another folder, or say "
                "overwrite (--overwrite)"
            )
        return None

    @property
    def _row_bytes(self) -> int:
        return sum(self.widths.values()) * self.dtype.itemsize

    def check_room(self, n_rows: int) -> None:
        """Refuse to start where the disk is too small for batches and final array together."""
        missing = n_rows - len(self._places)
        wanted = max(0, missing) * (self._row_bytes + KEY) + n_rows * (self._row_bytes + KEY)
        free = shutil.disk_usage(self.parts).free
        if wanted > free:
            raise InputError(
                f"{n_rows} rows need {wanted / 1e9:.1f} GB in {self.folder.parent}, and "
                f"{free / 1e9:.1f} GB are free; choose another disk"
            )

    def finished(self, digest: str) -> Embedding | None:
        """Return what is there already, if it is of the same crawl."""
        same = self._done is not None and self._done.record["digest"] == digest
        if same and not self._frames:
            shutil.rmtree(self.parts)
        return self._done if same else None

    def has_batch(self, start: int, stop: int, digest: str) -> bool:
        """Return whether a batch is there."""
        at = self._batches.get((start, stop))
        return at is not None and self._frames[at].values["digest"] == digest

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def append(self, batch: Batch) -> None:
        """Write a batch; it is there whole, or not at all."""
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(batch.values, self.dtype)
        if not np.isfinite(values).all():
            raise InputError(
                f"{self.name} gave numbers that {self.dtype} cannot hold; "
                + ("use dtype float32" if self.dtype == np.float16 else "use precision fp32")
            )
        head = {
            "start": batch.start, "stop": batch.stop, "digest": batch.digest,
            "new": len(batch.new), "problems": list(batch.problems),
        }  # fmt: skip
        places = np.array(batch.new, np.uint32).tobytes()
        with full_disk(self.parts):
            frame = self._log.append(head, b"".join(batch.keys) + places + values.tobytes())
        self._remember(frame, batch.keys, batch.new)

    def _remember(
        self, frame: Frame, keys: Sequence[bytes] = (), new: Sequence[int] | None = None
    ) -> None:
        """Keep where a frame's rows lie."""
        if new is None:
            content = frame.read()
            n_rows = frame.values["stop"] - frame.values["start"]
            keys = _split(content, n_rows)
            new = np.frombuffer(content, np.uint32, frame.values["new"], n_rows * KEY).tolist()
        number = len(self._frames)
        self._frames.append(frame)
        self._batches[frame.values["start"], frame.values["stop"]] = number
        for place, row in enumerate(new):
            self._places.setdefault(keys[row], number << 24 | place)

    def finish(self, plan: Sequence[tuple[int, int]], digest: str) -> Embedding:
        """Put the batches together in the order of the crawl, and drop them."""
        final = self.parts / "final"
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        n_rows = plan[-1][1] if plan else 0
        with full_disk(self.parts):
            counts = self._write_arrays(final, plan, n_rows)
            self._write_record(final, digest, counts)
        if self.folder.exists():
            shutil.rmtree(self.parts / "old", ignore_errors=True)
            self.folder.rename(self.parts / "old")
        final.rename(self.folder)
        self._done = None
        shutil.rmtree(self.parts)
        return Embedding.load(self.folder)

    def _write_arrays(
        self, folder: Path, plan: Sequence[tuple[int, int]], n_rows: int
    ) -> dict[str, int]:
        """Write the arrays, and return the counts of problems."""
        arrays = {
            name: open_memmap(folder / f"{name}.npy", "w+", self.dtype, (n_rows, width))
            for name, width in self.widths.items()
        }
        all_keys = open_memmap(folder / "keys.npy", "w+", np.uint8, (n_rows, KEY))
        problems: list[Problem] = []
        for span in plan:
            frame = self._frames[self._batches[span]]
            rows, keys = slice(*span), _split(frame.read(), span[1] - span[0])
            values = self._gather(keys)
            all_keys[rows] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY)
            start = 0
            for name, width in self.widths.items():
                arrays[name][rows] = values[:, start : start + width]
                start += width
            problems += frame.values["problems"]
        for array in (*arrays.values(), all_keys):
            array.flush()
        lines = "".join(json.dumps(problem) + "\n" for problem in problems)
        (folder / PROBLEMS).write_text(lines, encoding="utf-8")
        return Counter(kind for _, kind, _ in problems)

    def _gather(self, keys: Sequence[bytes]) -> NDArray[np.floating]:
        """Return the values of keys, zeros where there is no content."""
        width = sum(self.widths.values())
        values = np.zeros((len(keys), width), self.dtype)
        frames: dict[int, NDArray[np.floating]] = {}
        for row, key in enumerate(keys):
            place = self._places.get(key) if key != NOTHING else None
            if place is None:
                continue
            if place < 0:
                values[row] = self._done_row(-1 - place)
                continue
            number = place >> 24
            if number not in frames:
                frames[number] = self._values_of(self._frames[number])
            values[row] = frames[number][place & 0xFFFFFF]
        return values

    def _values_of(self, frame: Frame) -> NDArray[np.floating]:
        """Return the values that a frame brought."""
        skip = (frame.values["stop"] - frame.values["start"]) * KEY + 4 * frame.values["new"]
        flat = np.frombuffer(frame.read(), self.dtype, offset=skip)
        return flat.reshape(frame.values["new"], -1)

    def _done_row(self, row: int) -> NDArray[np.floating]:
        """Return a row of an earlier result."""
        if self._done is None:
            raise InputError(f"{self.folder} changed while it was read")
        probs = self._done.probs
        parts = [self._done.vectors[row], *([] if probs is None else [probs[row]])]
        return np.concatenate(parts)

    def _write_record(self, folder: Path, digest: str, counts: Mapping[str, int]) -> None:
        """Write what the arrays are."""
        values = {
            "format": FORMAT, "encoder": self.name, "fingerprint": self.fingerprint,
            "digest": digest, "problems": dict(sorted(counts.items())),
            "checksums": {path.name: file_checksum(path) for path in sorted(folder.glob("*.npy"))},
        }  # fmt: skip
        (folder / RECORD).write_text(json.dumps(values, indent=2), encoding="utf-8")


def _split(content: bytes, n_rows: int) -> list[bytes]:
    """Return the keys at the start of a frame."""
    return [content[i : i + KEY] for i in range(0, n_rows * KEY, KEY)]
