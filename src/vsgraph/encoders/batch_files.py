"""Encoded batches on disk, one ``.npz`` file per batch.

A file is written under a temporary name and renamed, so a killed run leaves no half-written batch.
The checksums within the format show when a file was damaged later.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.files import whole_file
from vsgraph.encoders.vectors import KEY, Problem
from vsgraph.errors import InputError


@dataclasses.dataclass(frozen=True)
class Batch:
    """Rows of a crawl that were encoded together."""

    start: int
    stop: int
    digest: str  # of what the rows refer to
    keys: Sequence[bytes]  # one per row
    new: Sequence[int]  # places within the batch whose content had not been encoded before
    values: NDArray[np.floating]  # (n_new, width)
    problems: Sequence[Problem] = ()

    def save(self, path: Path) -> None:
        """Write it to a file that appears whole or not at all."""
        facts = [self.start, self.stop, self.digest, list(self.problems)]
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(
                file,
                facts=np.array(json.dumps(facts)),
                keys=np.frombuffer(b"".join(self.keys), np.uint8).reshape(-1, KEY),
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
            )  # fmt: skip
    except Exception as error:  # zip files raise many kinds of errors when they are damaged
        raise InputError(f"{path} is damaged; start again to encode its rows again") from error
