"""The answers of all reviewers of a run, merged, and matched with the rows of a crawl."""

import dataclasses
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.answers.journal import ENDING, TEACH, Answer, Change, Entry, read_journal, time_of
from vsgraph.common.regular import is_regular
from vsgraph.crawls.texts import plain_name
from vsgraph.result.parts import NONE, UNANSWERED

BY_NAME = "name:"  # before the key of a picture whose content is not known
N_SHOWN = 5
Keys = Sequence[str] | NDArray[np.object_]  # of pictures, one per image


def picture_keys(images: Sequence[str], keys: NDArray[np.uint8] | None) -> NDArray[np.object_]:
    """Return the key of each picture, (n_images,): of its bytes, or its name without any.

    `keys` are those of the pictures' content, (n_images, 16), zeros without content.

    >>> picture_keys(["a.jpg", "b.jpg"], np.array([[0, 0], [1, 255]], np.uint8)).tolist()
    ['name:a.jpg', '01ff']
    """
    made = np.array([f"{BY_NAME}{image}" for image in images], object)
    if keys is not None and len(keys):
        width = 2 * keys.shape[1]
        text = np.ascontiguousarray(keys).tobytes().hex()
        known = np.flatnonzero(np.asarray(keys).any(axis=1))
        made[known] = [text[row * width : (row + 1) * width] for row in known.tolist()]
    return made


@dataclasses.dataclass(frozen=True)
class Conflict:
    """A picture of which reviewers say different things."""

    picture: str
    image: str
    said: dict[str, tuple[str, ...]]  # by reviewer


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers of all reviewers.

    Examples
    --------
    >>> ann = Answer("01ff", "a.jpg", ("owl",), ("bat",), "ann", "2026-11-18T03:40:12.123Z", "b-1")
    >>> answers = merge_entries([ann])
    >>> answers.labels(["01ff", "02aa"], ["owl", "bat"]).tolist(), answers.n_by_reviewer
    ([1, -2], {'ann': 1})
    """

    given: dict[str, Answer]  # by picture, those that teach: the last one counts
    audit: dict[str, Answer]  # by picture, those that only check
    conflicts: list[Conflict]
    agreement: float | None  # share of pictures with several reviewers on which all agree
    n_by_reviewer: dict[str, int]  # pictures
    problems: list[str]  # lines of journals that cannot be read

    def labels(self, keys: Keys, class_names: Sequence[str]) -> NDArray[np.intp]:
        """Return the answer to each image: a class, NONE or UNANSWERED, (n_images,).

        `keys` are those of :func:`picture_keys`. An answer that names several classes, or one
        that is none of these, leaves its image unanswered; :meth:`lines` tells of it.
        """
        labels = np.full(len(keys), UNANSWERED, np.intp)
        number = {name: place for place, name in enumerate(class_names)}
        chosen = {
            picture: number[answer.new[0]] if answer.new else NONE
            for picture, answer in self.given.items()
            if len(answer.new) < 2 and set(answer.new) <= number.keys()
        }
        if chosen:
            labels[:] = [chosen.get(key, UNANSWERED) for key in keys]
        return labels

    def digest(self) -> str:
        """Return a digest of the answers that teach; empty if there are none."""
        said = sorted((picture, sorted(answer.new)) for picture, answer in self.given.items())
        return (
            hashlib.blake2b(json.dumps(said).encode(), digest_size=16).hexdigest() if said else ""
        )

    def matrix(
        self, keys: Keys, class_names: Sequence[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return the answers where images have several labels: (n_rows, n_classes), their rows."""
        number = {name: place for place, name in enumerate(class_names)}
        known = {p: a for p, a in self.given.items() if set(a.new) <= number.keys()}
        rows = [row for row, key in enumerate(keys) if key in known] if known else []
        matrix = np.zeros((len(rows), len(number)), bool)
        for place, row in enumerate(rows):
            matrix[place, [number[name] for name in known[keys[row]].new]] = True
        return matrix, np.array(rows, np.intp)

    def lines(self, keys: Keys, class_names: Sequence[str], *, several: bool = False) -> list[str]:
        """Return what to tell a person: answers that cannot be used, conflicts, damaged lines."""
        found = set(keys) if self.given else set()
        here = [answer for picture, answer in self.given.items() if picture in found]
        lines = list(self.problems)
        n_elsewhere = len(self.given) - len(here)
        if n_elsewhere:
            lines.append(
                f"{n_elsewhere:,} of {len(self.given):,} answered pictures are not in this crawl; "
                "their answers stay in the journal"
            )
        names = set(class_names)
        unknown = Counter(name for answer in here for name in set(answer.new) - names)
        lines += [
            f"{count:,} answer{'s name' if count > 1 else ' names'} {plain_name(name)[:60]!r}, "
            "which is no class here; not used"
            for name, count in unknown.most_common(N_SHOWN)
        ]
        n_several = sum(len(a.new) > 1 and set(a.new) <= names for a in here)
        if n_several and not several:
            lines.append(
                f"{n_several:,} answers name several classes, but images of this crawl have one; "
                "not used"
            )
        if self.conflicts:
            lines.append(
                f"reviewers disagree on {len(self.conflicts):,} pictures; the last answer counts"
            )
        return lines


def read_answers(folder: Path) -> Answers:
    """Read and merge all journals of a folder, ``RUN/answers``; it may be missing."""
    problems: list[str] = []
    paths = [path for path in sorted(folder.glob(f"*{ENDING}")) if is_regular(path)]
    entries = [entry for path in paths for entry in read_journal(path, problems)]
    return merge_entries(entries, problems)


def merge_entries(entries: Iterable[Entry], problems: Sequence[str] = ()) -> Answers:
    """Merge the entries of journals, in any order and with repetitions, by their times."""
    valid = _not_undone(sorted(entries, key=lambda entry: (time_of(entry), entry.who)))
    teach = _by_picture(answer for answer in valid if answer.purpose == TEACH)
    audit = _by_picture(answer for answer in valid if answer.purpose != TEACH)
    said = {picture: by_reviewer for picture, by_reviewer in teach.items() if len(by_reviewer) > 1}
    conflicts = [
        Conflict(picture, _last(by_reviewer).image, {a.who: a.new for a in by_reviewer.values()})
        for picture, by_reviewer in said.items()
        if len({frozenset(answer.new) for answer in by_reviewer.values()}) > 1
    ]
    return Answers(
        given={picture: _last(by_reviewer) for picture, by_reviewer in teach.items()},
        audit={picture: _last(by_reviewer) for picture, by_reviewer in audit.items()},
        conflicts=conflicts,
        agreement=1 - len(conflicts) / len(said) if said else None,
        n_by_reviewer=dict(Counter(who for by_who in teach.values() for who in by_who)),
        problems=list(problems),
    )


def _not_undone(entries: Sequence[Entry]) -> list[Answer]:
    """Return the answers that hold, in their order: an undo takes back those before it."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)  # of the answers of each batch
    holds = np.ones(len(entries), bool)
    for place, entry in enumerate(entries):
        batch = places[entry.who, entry.batch]
        if isinstance(entry, Change):
            holds[batch] = not entry.is_undo
        else:
            batch.append(place)
    return [e for e, held in zip(entries, holds, strict=True) if held and isinstance(e, Answer)]


def _by_picture(answers: Iterable[Answer]) -> dict[str, dict[str, Answer]]:
    """Return the last answer of each reviewer, by picture and reviewer; the latest comes last."""
    found: dict[str, dict[str, Answer]] = defaultdict(dict)
    for answer in answers:
        found[answer.picture].pop(answer.who, None)
        found[answer.picture][answer.who] = answer
    return dict(found)


def _last(by_reviewer: dict[str, Answer]) -> Answer:
    """Return the answer that counts: the latest."""
    return list(by_reviewer.values())[-1]
