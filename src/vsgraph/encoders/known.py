"""What is known of contents, as arrays: their keys, and where they lay when they were read."""

import dataclasses
from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vsgraph.encoders.vectors import KEY, NOTHING, Embedding


@dataclasses.dataclass(frozen=True)
class KnownKeys:
    """The keys of contents, sorted, as an array that many processes map."""

    keys: NDArray[np.bytes_]

    def __contains__(self, key: object) -> bool:
        wanted = np.frombuffer(bytes(key), f"S{KEY}")  # type: ignore[call-overload]
        place = int(np.searchsorted(self.keys, wanted)[0])
        return self.keys[place : place + 1].tobytes() == key


@dataclasses.dataclass(frozen=True)
class KnownPlaces:
    """The keys of the contents at places, sorted by place, (n,) each."""

    places: NDArray[np.bytes_]
    keys: NDArray[np.bytes_]

    @classmethod
    def of(cls, sources: Iterable[Embedding]) -> Self:
        """Return the places of finished folders."""
        kept = [(_as_keys(p), _as_keys(s.keys)) for s in sources if (p := s.places()) is not None]
        nothing = np.empty(0, f"S{KEY}")
        places, keys = (np.concatenate([nothing, *(pair[i] for pair in kept)]) for i in range(2))
        told = np.flatnonzero((places != NOTHING) & (keys != NOTHING))
        order = told[np.argsort(places[told], kind="stable")]
        return cls(places[order], keys[order])

    def keys_of(self, places: bytes) -> list[bytes]:
        """Return the keys of the contents at some places, `NOTHING` where they must be read."""
        wanted = np.frombuffer(places, f"S{KEY}")
        if not len(self.places):
            return [NOTHING] * len(wanted)
        found = np.searchsorted(self.places, wanted).clip(max=len(self.places) - 1)
        is_there = self.places[found] == wanted
        keys = self.keys[found].tobytes()
        return [keys[KEY * i : KEY * (i + 1)] if known else NOTHING
                for i, known in enumerate(is_there.tolist())]  # fmt: skip


def _as_keys(rows: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    """Return rows of bytes, (n, 16), as an array of keys, (n,)."""
    return np.ascontiguousarray(rows).view(f"S{KEY}")[:, 0]
