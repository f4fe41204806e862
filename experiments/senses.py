"""Which sense of a label is meant? ``python experiments/senses.py --wnids FILE --crawl FOLDER``.

Names whose sense is known: the first words for the ids in a file, and the classes of COCO-Web.
Counted are those with several senses, one of them right. *Kin* is a sense with the same parent.
Random parts of the list of ids, means of 20, show how it does on shorter lists.

``--text-rules FOLDER`` prints what the text alone would choose, by different rules, for the
classes of COCO-Web and for nouns of its titles, whose senses were chosen by hand (at most 100
texts a label).
"""

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from encode import text_vectors
from vsgraph.meanings.senses import Meaning, candidate_senses, describe_classes, doubt
from vsgraph.meanings.table import by_class
from vsgraph.meanings.wordnet import WordNet
from vsgraph.meanings.words import TfidfEncoder, without_words

TEXTS = 100
FIRST_SENSE_LEAD = 0.3
PARTS = (20, 50, 100, 200, 250)
REPEATS = 20
HEADS = (
    "list", "names", "of several senses", "first sense right, %", "right, %", "right or kin, %",
    "doubtful, % of all", "wrong and not doubtful, % of all",
)  # fmt: skip
Scores = NDArray[np.floating]

# Numbers of the right senses, WordNet's first being 1; photos show these.
NOUNS = {
    "baby": (1,), "banana": (2,), "basket": (1,), "batter": (1,), "bed": (1,), "bench": (1,),
    "book": (1, 2), "bottle": (1,), "box": (1,), "boy": (1,), "broccoli": (2,), "building": (1,),
    "cake": (3,), "chair": (1,), "child": (1,), "coffee": (1,), "computer": (1,), "court": (4,),
    "door": (1, 2), "flower": (1, 2), "girl": (1, 2), "grass": (1,), "hat": (1,), "hill": (1,),
    "house": (1,), "man": (1,), "mirror": (1,), "monitor": (4, 5), "phone": (1,), "plate": (4,),
    "player": (1,), "pole": (1,), "road": (1,), "rock": (1, 2), "room": (1,), "sink": (1,),
    "snow": (1, 2), "store": (1,), "stove": (1,), "table": (2, 3), "track": (3, 9), "tree": (1,),
    "wall": (1,), "wave": (1,), "window": (1,), "woman": (1,),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Label:
    """A label, its senses, which of them are right, and texts found with it."""

    name: str
    senses: list[Meaning]
    right: set[str]
    texts: list[str]


def read_labels(folder: Path, wordnet: WordNet) -> dict[str, list[Label]]:
    """Return the labels of both kinds that have several senses, one of them right."""
    classes = json.loads((folder / "classes.json").read_text())
    rows = [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]
    lemma = functools.cache(wordnet.lemmatize)
    titles = [{lemma(w) for w in re.findall("[a-z]+", row["title"].lower())} for row in rows]

    def make(name: str, right: set[str], found: list[dict[str, Any]]) -> Label:
        spread = [found[i * len(found) // TEXTS] for i in range(TEXTS)]
        kept = spread if len(found) > TEXTS else found
        texts = [" ".join([row["title"], *row["description"]]) for row in kept]
        return Label(name, candidate_senses(name, wordnet), right, texts)

    known = [
        make(name, {entry["wnid"]}, [row for row in rows if row["web_label"] == name])
        for name, entry in classes.items()
    ]
    nouns = [
        make(
            name,
            {wordnet.senses(name)[number - 1].wnid for number in numbers},
            [row for row, words in zip(rows, titles, strict=True) if name in words],
        )
        for name, numbers in NOUNS.items()
    ]
    return {"classes": _decidable(known), "nouns of titles": _decidable(nouns)}


def _decidable(labels: list[Label]) -> list[Label]:
    return [
        label for label in labels
        if len(label.senses) > 1 and label.right & {sense.wnid for sense in label.senses}
    ]  # fmt: skip


def cosines(labels: list[Label], encode: Callable[[list[str]], Any], *, strike: bool) -> list[Any]:
    """Return for each label the cosine of its texts with its senses, (n_texts, n_senses)."""
    wordnet = WordNet.open()

    def without(label: Label, text: str) -> str:
        own = set(label.name.lower().split()) if strike else set()
        return without_words(text, own, wordnet)

    texts = [[without(label, text) for text in label.texts] for label in labels]
    senses = [[without(label, s.description) for s in label.senses] for label in labels]
    vectors = encode([line for part in (*texts, *senses) for line in part])
    ends = np.cumsum([0, *(len(part) for part in (*texts, *senses))])
    parts = [vectors[a:b] for a, b in itertools.pairwise(ends)]
    found = zip(parts[: len(labels)], parts[len(labels) :], strict=True)
    return [np.asarray(a @ b.T) for a, b in found]


def shares(table: Scores) -> Scores:
    """Return the share of the texts nearest to each sense."""
    speaking = table[table.max(axis=1) > table.min(axis=1)]
    return np.bincount(speaking.argmax(axis=1), minlength=table.shape[1]) / max(1, len(speaking))


def means(table: Scores) -> Scores:
    """Return the mean cosine with each sense."""
    return table.mean(axis=0)


def first_ahead(score: Callable[[Scores], Scores], lead: float) -> Callable[[Scores], Scores]:
    """Return a rule that adds a lead to the first sense, a share of the sum of scores."""

    def rule(table: Scores) -> Scores:
        scores = score(table)
        return scores + lead * scores.sum() * (np.arange(len(scores)) == 0)

    return rule


def first(table: Scores) -> Scores:
    """Prefer senses in WordNet's order."""
    return -np.arange(table.shape[1], dtype=float)


def first_by_a_fifth(table: Scores) -> Scores:
    """Return mean cosines, the first sense's a fifth higher."""
    return means(table) * np.where(np.arange(table.shape[1]) == 0, 1.2, 1)


RULES: list[tuple[str, Callable[[Scores], Scores], bool]] = [
    ("first sense", first, False),
    ("mean cosine", means, False),
    ("mean cosine, first sense x 1.2", first_by_a_fifth, False),
    ("share of texts nearest", shares, False),
    ("share, first sense + 0.3", first_ahead(shares, FIRST_SENSE_LEAD), False),
    ("mean cosine, label struck out", means, True),
    ("mean cosine, label struck out, first sense x 1.2", first_by_a_fifth, True),
    ("share, label struck out", shares, True),
    ("share, label struck out, first sense + 0.1", first_ahead(shares, 0.1), True),
    ("share, label struck out, first sense + 0.2", first_ahead(shares, 0.2), True),
    ("share, label struck out, first sense + 0.3", first_ahead(shares, FIRST_SENSE_LEAD), True),
    ("share, label struck out, first sense + 0.5", first_ahead(shares, 0.5), True),
]


def count_words(texts: list[str]) -> Any:  # noqa: ANN401
    """Return TF-IDF vectors."""
    return TfidfEncoder.fit(texts).encode(texts).toarray()


def count_right(labels: list[Label], tables: list[Scores], rule: Callable[[Scores], Scores]) -> int:
    """Return how many labels get a right sense."""
    best = [label.senses[int(rule(t).argmax())] for label, t in zip(labels, tables, strict=True)]
    return sum(sense.wnid in label.right for sense, label in zip(best, labels, strict=True))


def count_by_default(labels: list[Label], encode: Callable[[list[str]], Any] | None) -> int:
    """Return how many labels the package itself gives a right sense."""
    names, texts = [label.name for label in labels], [label.texts for label in labels]
    right = {label.name: label.right for label in labels}
    meanings = describe_classes(names, texts_by_class=texts, encode=encode)
    return sum(m.wnid in right[m.class_name] for m in meanings if m.chosen)


@dataclasses.dataclass(frozen=True)
class Tally:
    """How many ambiguous names got which sense."""

    names: int = 0
    ambiguous: int = 0
    first: int = 0
    right: int = 0
    kin: int = 0  # right or kin
    doubtful: int = 0  # of all names
    silent: int = 0  # ambiguous, neither right nor kin, and not doubtful

    def __add__(self, other: "Tally") -> "Tally":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Tally(*(a + b for a, b in pairs))

    def row(self, title: str) -> str:
        """Return a row of the table."""
        shares = [
            f"{100 * n / max(1, self.ambiguous):.1f}" for n in (self.first, self.right, self.kin)
        ]
        others = [
            f"{100 * self.doubtful / self.names:.1f}",
            f"{100 * self.silent / self.names:.1f}",
        ]
        return f"| {title} | {self.names} | {self.ambiguous} | {' | '.join(shares + others)} |"


def tally(right: dict[str, str], texts: list[list[str]] | None = None) -> Tally:
    """Return how well the senses of names are chosen; `right` has the id of each."""
    wordnet = WordNet.open()
    meanings = describe_classes(list(right), texts_by_class=texts or ())
    total = Tally()
    for name, senses in by_class(meanings).items():
        wnid, chosen, is_doubtful = right[name], senses[0].wnid, bool(doubt(senses))
        candidates = [sense.wnid for sense in candidate_senses(name, wordnet)]
        if len(candidates) < 2 or wnid not in candidates:
            total += Tally(names=1, doubtful=is_doubtful)
            continue
        parents = [set(wordnet.synset(str(w)).hypernyms) for w in (wnid, chosen)]
        is_kin = chosen == wnid or bool(parents[0] & parents[1])
        total += Tally(
            1, 1, candidates[0] == wnid, chosen == wnid, is_kin, is_doubtful,
            not is_kin and not is_doubtful,
        )  # fmt: skip
    return total


def print_ids(path: Path) -> None:
    """Print rows for the first words of the ids in a file, and for random parts of them."""
    wordnet = WordNet.open()
    wnids = path.read_text().split()
    right = {wordnet.synset(wnid).lemmas[0]: wnid for wnid in wnids}
    print(tally(right).row(path.name))
    for size in (size for size in PARTS if size < len(right)):
        draws = [np.random.default_rng(seed) for seed in range(REPEATS)]
        parts = [draw.choice(list(right), size, replace=False) for draw in draws]
        tallies = [tally({name: right[name] for name in part.tolist()}) for part in parts]
        print(sum(tallies, Tally()).row(f"{REPEATS} parts of {size}"))


def print_crawl(folder: Path) -> None:
    """Print rows for the classes of a crawl, without and with its text."""
    classes = json.loads((folder / "classes.json").read_text())
    right = {name: entry["wnid"] for name, entry in classes.items()}
    texts: dict[str, list[str]] = {name: [] for name in right}
    for line in (folder / "metadata.jsonl").read_text().splitlines():
        row = json.loads(line)
        texts[row["web_label"]].append(" ".join([row["title"], *row["description"]]))
    print(tally(right).row(f"{folder.name}, no text"))
    print(tally(right, list(texts.values())).row(f"{folder.name}, with its text"))


def print_text_rules(folder: Path) -> None:
    """Print what the text alone would choose, by different rules."""
    kinds = read_labels(folder, WordNet.open())
    encoders: dict[str, Callable[[list[str]], Any]] = {
        "TF-IDF": count_words,
        "MiniLM": text_vectors,
    }
    cells = [(labels, encode) for labels in kinds.values() for encode in encoders.values()]
    heads = [f"{len(labels)} {kind}, {e}" for kind, labels in kinds.items() for e in encoders]
    print(f"| rule | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    tables = {strike: [cosines(*cell, strike=strike) for cell in cells] for strike in (False, True)}
    for name, rule, strike in RULES:
        counts = [
            count_right(labels, of_cell, rule)
            for (labels, _), of_cell in zip(cells, tables[strike], strict=True)
        ]
        print(f"| {name} | {' | '.join(map(str, counts))} |")
    counts = [count_by_default(*cell) for cell in cells]
    print(f"| **vsgraph.meanings.senses** | {' | '.join(map(str, counts))} |")


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.option("--wnids", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--crawl", "crawls", type=FOLDER, multiple=True)
@click.option("--text-rules", type=FOLDER)
def main(wnids: Path | None, crawls: tuple[Path, ...], text_rules: Path | None) -> None:
    """Print the tables."""
    if wnids or crawls:
        print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    if wnids:
        print_ids(wnids)
    for folder in crawls:
        print_crawl(folder)
    if text_rules:
        print_text_rules(text_rules)


if __name__ == "__main__":
    main()
