"""Problems in a crawl: counted by kind, the first cases shown, all of them kept in a file."""

import tempfile
import weakref
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import IO, Self

from vsgraph.errors import InputError

SHOWN = 3
LONGEST_SHOWN = 300
SPOOLED = 2**20
LINES = 1000


class Problems:
    """Counts the problems of a crawl without holding them in memory.

    If `strict`, the first problem is raised as an error instead.

    >>> problems = Problems()
    >>> problems.add("no label", "crawl.csv, line 7")
    >>> print(problems)
    1 x no label: crawl.csv, line 7
    >>> Problems(strict=True).add("no label", "crawl.csv, line 7", "give one or remove the line")
    Traceback (most recent call last):
    vsgraph.errors.InputError: no label: crawl.csv, line 7 (give one or remove the line)
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.counts: Counter[str] = Counter()
        self._shown: dict[str, list[str]] = {}
        self._all: IO[str] = tempfile.SpooledTemporaryFile(SPOOLED, "w+", encoding="utf-8")  # noqa: SIM115
        self._last: list[str] = []  # cases to be written
        weakref.finalize(self, self._all.close)

    def __reduce__(self) -> tuple[type["Problems"], tuple[()]]:
        return Problems, ()  # they stay where they were found

    def add(self, kind: str, where: str, detail: str = "") -> None:
        """Count a problem: its kind, the file and row, and further details if there are any."""
        case = f"{where} ({detail})" if detail else where
        if self.strict:
            raise InputError(f"{kind}: {case}")
        self.counts[kind] += 1
        shown = self._shown.setdefault(kind, [])
        if len(shown) < SHOWN:
            shown.append(case[:LONGEST_SHOWN])
        parts = (kind, where, detail)
        plain = parts if "".join(parts).isprintable() else map(one_line, parts)
        self._last.append("\t".join(plain))
        if len(self._last) == LINES:
            self._write()

    def _write(self) -> None:
        """Write the last cases, many at a time."""
        self._all.writelines(f"{line}\n" for line in self._last)
        self._last.clear()

    def __len__(self) -> int:
        return self.counts.total()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, kinds: Collection[str] | None = None) -> list[str]:
        """Return one line per kind, or for some kinds: how many, and the first few cases."""
        return [
            f"{count:,} x {kind}: {'; '.join(map(one_line, self._shown[kind]))}"
            + (" ..." if count > SHOWN else "")
            for kind, count in self.counts.most_common()
            if kinds is None or kind in kinds
        ]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file written by :meth:`save`."""
        problems = cls()
        with path.open(encoding="utf-8") as file:
            next(file, None)
            for line in file:
                problems.add(*line.rstrip("\n").split("\t"))
        return problems

    def save(self, path: Path) -> None:
        """Write every case to a file of tab-separated lines: kind, where, detail."""
        self._write()
        self._all.seek(0)
        with path.open("w", encoding="utf-8") as file:
            file.write("kind\twhere\tdetail\n")
            file.writelines(self._all)
        self._all.seek(0, 2)


def one_line(text: str) -> str:
    """Return text without line breaks, tabs and control characters of a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
