"""Vectors on disk: encoded batches, one ``.npz`` file each, and the finished arrays of a crawl.

Files are written under a temporary name and renamed, so a killed run leaves no half-written ones.
Checksums show when a file was damaged later.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import RECORD, open_array, whole_file
from vsgraph.errors import InputError

FORMAT = "vsgraph-vectors-1"
KEY = 16
PROBLEMS, PLACES = "problems.jsonl", "places"
NOTHING = bytes(KEY)  # the key of a row without content, and the place of one that is not known
Problem = tuple[int, str, str]


@dataclasses.dataclass(frozen=True)
class Embedding:
    """Vectors of a whole crawl, one row per image, mapped from disk."""

    folder: Path
    vectors: NDArray[np.floating]  # (n_images, n_dims); zeros for an image without picture or text
    probs: NDArray[np.floating] | None  # (n_images, n_classes), if the encoder has a classifier
    keys: NDArray[np.uint8]  # (n_images, 16), a digest of each content; zeros without one
    record: dict[str, Any]  # the encoder's name and fingerprint, counts of problems, checksums

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = False) -> Self:
        """Open what :func:`embed_images` or :func:`embed_texts` wrote; `verify` reads all of it."""
        root = Path(folder)
        try:
            record = json.loads((root / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{root} holds no vectors of vsgraph ({RECORD})") from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise InputError(f"{root / RECORD} is not in the format {FORMAT}")
        for name, checksum in record["checksums"].items() if verify else ():
            if file_checksum(root / name) != checksum:
                raise InputError(f"{root / name} is damaged; embed again")
        probs = root / "probs.npy"
        return cls(
            folder=root,
            vectors=open_array(root / "vectors.npy"),
            probs=open_array(probs) if probs.exists() else None,
            keys=open_array(root / "keys.npy"),
            record=record,
        )

    def places(self) -> NDArray[np.uint8] | None:
        """Return where the contents lay, (n_images, 16), see :mod:`vsgraph.encoders.places`.

        None if that is not known. It says nothing of the result, so its bytes are not checked.
        """
        path = self.folder / PLACES
        places = np.fromfile(path, np.uint8) if path.is_file() else np.zeros(0, np.uint8)
        return places.reshape(-1, KEY) if places.size == KEY * len(self.keys) else None

    def problems(self) -> Iterator[Problem]:
        """Yield the problems: row, kind, detail."""
        with (self.folder / PROBLEMS).open(encoding="utf-8") as lines:
            for line in lines:
                row, kind, detail = json.loads(line)
                yield row, kind, detail


def file_checksum(path: Path) -> str:
    """Return a checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=KEY)).hexdigest()


@dataclasses.dataclass(frozen=True)
class Batch:
    """Rows of a crawl that were encoded together."""

    start: int
    stop: int
    digest: str  # of what the rows refer to
    keys: Sequence[bytes]  # one per row
    new: Sequence[int]  # rows within the batch whose content had not been encoded before
    values: NDArray[np.floating]  # (n_new, width)
    problems: Sequence[Problem] = ()
    places: bytes = b""  # of pictures, 16 bytes per row

    def save(self, path: Path) -> None:
        """Write it to a file that appears whole or not at all."""
        facts = [self.start, self.stop, self.digest, list(self.problems)]
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(
                file,
                facts=np.array(json.dumps(facts)),
                keys=np.frombuffer(b"".join(self.keys), np.uint8).reshape(-1, KEY),
                places=np.frombuffer(self.places, np.uint8),
                new=np.array(self.new, np.uint32),
                values=self.values,
            )


def load_batch(path: Path) -> Batch:
    """Read a file written by :meth:`Batch.save`; InputError if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            start, stop, digest, problems = json.loads(str(arrays["facts"]))
            keys = [row.tobytes() for row in arrays["keys"]]
            return Batch(
                start, stop, digest, keys, arrays["new"].tolist(), arrays["values"],
                [(row, kind, detail) for row, kind, detail in problems],
                arrays["places"].tobytes(),
            )  # fmt: skip
    except Exception as error:  # zip files raise many kinds of errors when they are damaged
        raise InputError(f"{path} is damaged; start again to encode its rows again") from error
