"""The records of a CSV, mended before they are parsed.

Any line end becomes one, bytes that are not UTF-8 are read as Windows-1252, and a record that would
swallow others (its quote is never closed) or fill the memory is left out and counted.
"""

import io
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from vsgraph.common.regular import open_regular
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.texts import decode

LONGEST = 2**22  # characters of a record
MOST_LINES = 1000  # of a record
CHUNK = 2**20


def open_lines(file: Path) -> io.TextIOWrapper:
    """Open a table to read lines of any end; each character stands for one byte."""
    return io.TextIOWrapper(open_regular(file), encoding="latin-1", newline=None)


class CsvRecords:
    """A file of a CSV's records as UTF-8, a line in the place of the header."""

    closed = False

    def __init__(self, file: Path, delimiter: str, problems: Problems) -> None:
        self.file, self.delimiter, self.problems = file, delimiter, problems
        self.lines = open_lines(file)
        self.waiting: deque[str] = deque()  # lines to read again
        self.number = 0  # of the last line
        d, quoted = re.escape(delimiter), r'[^"]*+(?:""[^"]*+)*+'
        field = rf'(?:"{quoted}"[^{d}\n]*+|(?!")[^{d}\n]*+)'
        self.whole = re.compile(rf"{field}(?:{d}{field})*+\n?")
        self.last = re.compile(rf'{quoted}"(?:{d}{field})*+\n?')  # ends what is open
        self.middle = re.compile(rf'{quoted}(?:"(?:{d}{field})*+{d}"{quoted})?')
        self.chunks = self._chunks()
        self.rest = b"-\n"  # for the header, which has any encoding
        self._next()

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        while not self.rest and (chunk := next(self.chunks, None)) is not None:
            self.rest = chunk
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def close(self) -> None:
        """Close the file."""
        self.lines.close()

    def _chunks(self) -> Iterator[bytes]:
        """Yield records as UTF-8, many at a time."""
        records: list[str] = []
        length = 0
        for record in self._records():
            records.append(record)
            length += len(record)
            if length > CHUNK:
                yield self._encoded(records)
                records, length = [], 0
        yield self._encoded(records)

    def _records(self) -> Iterator[str]:
        """Yield the records that can be told apart."""
        while line := self._next():
            if '"' not in line or self.whole.fullmatch(line):
                yield line
            else:
                yield self._joined(line)

    def _next(self) -> str:
        """Return the next line, '' at the end; a line that is too long is left out."""
        while True:
            self.number += 1
            line = self.waiting.popleft() if self.waiting else self.lines.readline(LONGEST)
            if len(line) < LONGEST or line[-1] == "\n":
                return line
            while len(line) == LONGEST and line[-1] != "\n":
                line = self.lines.readline(LONGEST)
            self._leave_out(self.number, f"longer than {LONGEST:,} bytes")

    def _joined(self, first: str) -> str:
        """Return a record of several lines; '' if its quote is not closed, the rest read again."""
        start, lines, length = self.number, [first], len(first)
        while len(lines) < MOST_LINES and length < LONGEST and (line := self._next()):
            lines.append(line)
            length += len(line)
            if self.last.fullmatch(line):
                return "".join(lines)
            if not self.middle.fullmatch(line):
                break
        self.waiting.extendleft(reversed(lines[1:]))
        self.number = start
        self._leave_out(start, "a quote is not closed")
        return ""

    def _leave_out(self, number: int, why: str) -> None:
        self.problems.add("broken line", f"{self.file}, line {number}", why)

    def _encoded(self, records: list[str]) -> bytes:
        """Return records as UTF-8; those that are not are decoded cell by cell, and counted."""
        raw = "".join(records).encode("latin-1")
        if decode(raw)[1]:
            return raw
        return b"".join(self._mended(record.encode("latin-1")) for record in records)

    def _mended(self, record: bytes) -> bytes:
        if decode(record)[1]:
            return record
        cells = [decode(cell)[0] for cell in record.split(self.delimiter.encode())]
        self.problems.add("text not in UTF-8", f"{self.file}: {cells[0][:100]}")
        return self.delimiter.join(cells).encode()
