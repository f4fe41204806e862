"""Finished vectors of a crawl: plain arrays, a record, checksums."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import RECORD, open_array
from vsgraph.errors import InputError

FORMAT = "vsgraph-vectors-1"
KEY = 16
PROBLEMS = "problems.jsonl"
Problem = tuple[int, str, str]


@dataclasses.dataclass(frozen=True)
class Embedding:
    """Vectors of a whole crawl, one row per image, mapped from disk.

    Attributes
    ----------
    vectors : array of shape (n_images, n_dims)
        Rows of zeros for images without a picture or text.
    probs : array of shape (n_images, n_classes) or None
        Class probabilities, if the encoder has a classifier.
    keys : array of shape (n_images, 16)
        A digest of each content, zeros for rows without one.
    record : dict
        The encoder's name and fingerprint, counts of problems, checksums.
    """

    folder: Path
    vectors: NDArray[np.floating]
    probs: NDArray[np.floating] | None
    keys: NDArray[np.uint8]
    record: dict[str, Any]

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
