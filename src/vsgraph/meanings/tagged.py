"""How often words were met in tagged text: WordNet's file of counts."""

import functools
import re
from collections import Counter
from pathlib import Path

FILE = "cntlist.rev"  # not in every install
COUNT = re.compile(r"^(\S+)%([1-5]):\S+ ([0-9]+) ([0-9]+)\r?$", re.MULTILINE)
NOUN = "1"


class TaggedText:
    """The counts in a folder of WordNet's files; all are 0 if they are not there."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    @functools.cached_property
    def _entries(self) -> list[tuple[str, str, int, int]]:
        text = self.path.read_bytes().decode("latin-1") if self.path.is_file() else ""
        found = COUNT.findall(text)
        return [(word, kind, int(sense), int(count)) for word, kind, sense, count in found]

    @functools.cached_property
    def _of_senses(self) -> dict[tuple[str, int], int]:
        return {(word, sense): n for word, kind, sense, n in self._entries if kind == NOUN}

    @functools.cached_property
    def _of_kinds(self) -> tuple[Counter[str], Counter[str]]:
        """How often each word was met, and how often as a noun."""
        met: Counter[str] = Counter()
        as_noun: Counter[str] = Counter()
        for word, kind, _, count in self._entries:
            met[word] += count
            as_noun[word] += count * (kind == NOUN)
        return met, as_noun

    def uses(self, word: str, sense: int) -> int:
        """Return how often an indexed noun was met in a sense, the first being 1."""
        return self._of_senses.get((word, sense), 0)

    def noun_share(self, word: str) -> float:
        """Return how often a word was met as a noun, of all times; 1 if it never was met."""
        met, as_noun = self._of_kinds
        return as_noun[word] / met[word] if met[word] else 1.0
