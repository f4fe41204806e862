"""Which column of a table holds what: found by its name, or told."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vsgraph.crawls.columns import MOST_OTHERS, TEXT_FIELDS
from vsgraph.crawls.picture_tables import picture_column
from vsgraph.crawls.readers.table_files import header_of, listed
from vsgraph.errors import InputError

KNOWN = {
    "image": (
        "file_name", "filename", "image_path", "path", "file", "filepath", "file_path", "image",
        "img", "image_file",
    ),
    "label": (
        "web_label", "label", "labels", "query", "search_query", "search_term", "class",
        "class_name", "category", "hashtag", "keyword", "search_keyword", "search", "term", "topic",
        "wnid", "synset", "web_labels",
    ),
    "source": ("source", "engine", "origin", "platform"),
    "truth": ("truth", "true_label", "true_labels", "ground_truth", "gold", "clean_label"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Roles:
    """The columns for the image, its label, text, source and truth, and those passed on."""

    image: str
    label: str | None
    text: tuple[str, ...]
    source: str | None
    truth: str | None
    others: tuple[str, ...] = ()
    inside: bool = False  # whether the column of the image holds the pictures themselves

    @property
    def names(self) -> list[str]:
        """Every column that has a role, once."""
        named = [self.image, self.label, self.source, self.truth, *self.text]
        return list(dict.fromkeys(name for name in named if name))


def lists_images(file: Path) -> bool:
    """Return whether a table has a column of images."""
    try:
        named = named_like(header_of(file), KNOWN["image"])
        return named is not None or picture_column(file) is not None
    except InputError:
        return False


def find_roles(file: Path, header: Sequence[str], given: Mapping[str, str]) -> Roles:
    """Find the column of each role, as given or by its name."""
    unknown = sorted(set(given) - {*KNOWN, "text"})
    if unknown:
        raise InputError(f"no such role {unknown[0]!r}; roles are {', '.join([*KNOWN, 'text'])}")

    def checked(name: str) -> str:
        if name in header:
            return name
        raise InputError(f"{file} has no column {name!r}; it has {listed(header)}")

    def column(role: str) -> str | None:
        return checked(given[role]) if role in given else named_like(header, KNOWN[role])

    pictures = picture_column(file) if given.get("image") in {None, picture_column(file)} else None
    image, label = pictures or column("image"), column("label")
    if image is None:
        raise InputError(
            f"{file} has no column for the image; it has {listed(header)}: name one with "
            "--column image=NAME"
        )
    if "text" in given:
        text = tuple(map(checked, given["text"].split(",")))
    else:
        named = (named_like(header, [field]) for field in TEXT_FIELDS)
        text = tuple(name for name in named if name and name not in {image, label})
    source, truth = column("source"), column("truth")
    rest = dict.fromkeys(name for name in header if name)
    for name in (image, label, source, truth, *text):
        rest.pop(name or "", None)
    return Roles(image, label, text, source, truth, tuple(rest)[: MOST_OTHERS + 1], bool(pictures))


def named_like(header: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of some names; case, spaces and hyphens do not matter."""
    plain = {"_".join(re.split(r"[\s_-]+", c.strip().lower())): c for c in reversed(header)}
    return next((plain[name] for name in names if name in plain), None)
