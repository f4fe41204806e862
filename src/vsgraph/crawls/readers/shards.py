"""WebDataset tar shards and what img2dataset writes, read where they are."""

import dataclasses
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from vsgraph.crawls.columns import (
    PLACE,
    TEXT_FIELDS,
    ClassList,
    Gathered,
    as_names,
    as_text,
    in_blocks,
    is_image,
    read_class_list,
    table_of,
)
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.folders import LARGEST_SIDE_FILE, json_object
from vsgraph.crawls.readers.tables import KNOWN
from vsgraph.crawls.texts import decode
from vsgraph.errors import InputError

SIDE = ("json", "txt", "cls")
SHARD_FOLDER = re.compile(r"\d{5,}")


@dataclasses.dataclass(frozen=True)
class Member:
    """A file within a shard, or within a folder that stands for one."""

    name: str
    offset: int
    size: int

    @property
    def key(self) -> str:
        """The name up to the first dot of its last part, as WebDataset groups files."""
        folder, slash, base = self.name.rpartition("/")
        return folder + slash + base.partition(".")[0]

    @property
    def ending(self) -> str:
        """What follows the first dot, in small letters."""
        return self.name.rpartition("/")[2].partition(".")[2].lower()


def read_shards(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    label_separator: str | None = None,
    classes: ClassList | None = None,
    problems: Problems,
) -> Crawl:
    """Read tar shards, or img2dataset's folders of files, without unpacking them.

    Parameters
    ----------
    path : Path
        A shard, or a folder of shards.
    columns : mapping, optional
        Which key of a sample's JSON holds the `label`, the `text` (several: comma between), the
        `source`, the `truth`. The label may also be the ``.cls`` file.
    label_separator : str, optional
        What stands between labels, if an image may have several.
    classes : Path or sequence of str, optional
        A file of classes, one a line; numbers in ``.cls`` files count its lines from zero.
    problems : Problems
        Where to say what is wrong.

    Returns
    -------
    crawl : Crawl
        Images keep their shard, and where in it they lie.
    """
    listed = read_class_list(classes) if classes is not None else None
    reader = _Reader(columns or {}, label_separator, listed, problems)
    root, shards = find_shards(path)
    gathered = Gathered(problems, reader.text_fields)
    types = reader.types(in_tar=shards[0].is_file())
    for shard in shards:
        samples = reader.tar_samples(root, shard) if shard.is_file() else reader.files(root, shard)
        for rows in in_blocks(samples):
            gathered.add(table_of(rows, types))
    kind = "tar shards" if shards[0].is_file() else "img2dataset folders"
    return gathered.crawl(f"{kind} ({len(shards)})", root, classes=listed)


def find_shards(path: Path) -> tuple[Path, list[Path]]:
    """Return the root and its shards: tar files, or numbered folders."""
    if path.is_file():
        return path.parent, [path]
    tars = sorted(path.glob("*.tar")) or sorted(path.glob("*/*.tar"))
    packed = sorted(path.glob("*.tar.gz")) + sorted(path.glob("*.tgz"))
    if packed and not tars:
        raise InputError(f"{packed[0]} is compressed, so nothing in it can be found; gunzip it")
    folders = sorted(p for p in path.iterdir() if p.is_dir() and SHARD_FOLDER.fullmatch(p.name))
    if not tars and not folders:
        raise InputError(f"{path} holds no .tar shards and no numbered folders")
    return path, tars or folders


def tar_members(shard: Path, problems: Problems) -> Iterator[Member]:
    """Yield the files of a shard with where they lie, leaving out what is unsafe or broken."""
    length = shard.stat().st_size
    try:
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                tar.members = []  # type: ignore[attr-defined]  # a shard may have a million
                where = f"{shard}: {member.name}"
                if member.isdir():
                    continue
                if not member.isreg():
                    problems.add("shard member that is no file", where)
                elif _is_unsafe(member.name):
                    problems.add("shard member with an unsafe path", where)
                elif member.offset_data + member.size > length:
                    problems.add("shard that ends too early", where)
                    return
                else:
                    yield Member(member.name.removeprefix("./"), member.offset_data, member.size)
    except (tarfile.TarError, OSError, EOFError) as error:
        problems.add("broken shard", str(shard), str(error))


def _is_unsafe(name: str) -> bool:
    """Return whether a name is absolute, climbs, or is not UTF-8."""
    parts = name.replace("\\", "/").split("/")
    bad_letters = any(0xD800 <= ord(c) <= 0xDFFF for c in name)
    return name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or bad_letters


def _folder_members(folder: Path) -> Iterator[Member]:
    """Yield the files of a folder as if it were a shard."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.is_file(follow_symlinks=False) and not _is_unsafe(entry.name):
                yield Member(f"{folder.name}/{entry.name}", 0, entry.stat().st_size)


def _grouped(members: Iterable[Member]) -> Iterator[list[Member]]:
    """Yield the neighboring files with the same key."""
    group: list[Member] = []
    for member in members:
        if group and member.key != group[0].key:
            yield group
            group = []
        group.append(member)
    if group:
        yield group


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Makes rows of samples."""

    columns: Mapping[str, str]
    label_separator: str | None
    classes: list[str] | None
    problems: Problems

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The keys that hold text."""
        return tuple(self.columns["text"].split(",")) if "text" in self.columns else TEXT_FIELDS

    def types(self, *, in_tar: bool) -> dict[str, pa.DataType]:
        """Return the columns of a row."""
        labels = pa.list_(pa.string()) if self.label_separator else pa.string()
        fixed = {"image": pa.string(), "web_labels": labels, **(PLACE if in_tar else {})}
        told = {"source": pa.string(), "truth": pa.list_(pa.string())}
        more = {role: kind for role, kind in told.items() if role in self.columns}
        return fixed | more | dict.fromkeys(self.text_fields, pa.string())

    def tar_samples(self, root: Path, shard: Path) -> Iterator[dict[str, Any]]:
        """Yield a row for each sample of a tar shard."""
        place = shard.relative_to(root).as_posix()
        with shard.open("rb") as opened:

            def read(member: Member) -> bytes:
                opened.seek(member.offset)
                return opened.read(min(member.size, LARGEST_SIDE_FILE))

            for group in _grouped(tar_members(shard, self.problems)):
                row = self._row(
                    group, {m.ending: read(m) for m in group if m.ending in SIDE}, shard
                )
                if row is not None:
                    image: Member = row.pop("member")
                    where = {"shard": place, "offset": image.offset, "size": image.size}
                    yield row | where | {"image": f"{place}/{image.name}"}

    def files(self, root: Path, folder: Path) -> Iterator[dict[str, Any]]:
        """Yield a row for each sample of a folder of files."""
        for group in _grouped(_folder_members(folder)):
            sides = {m.ending: (root / m.name).read_bytes() for m in group if m.ending in SIDE}
            row = self._row(group, sides, folder)
            if row is not None:
                del row["member"]
                yield row

    def _row(
        self, group: list[Member], sides: dict[str, bytes], shard: Path
    ) -> dict[str, Any] | None:
        """Return the row of a sample, None, counted, if it has no image or no label."""
        where = f"{shard}: {group[0].key}"
        image = next((m for m in group if is_image(m.name)), None)
        if image is None:
            if "parquet" not in group[0].name:
                self.problems.add("sample without an image", where)
            return None
        texts = {ending: self._decode(raw, where) for ending, raw in sides.items()}
        found = json_object(texts["json"], where, self.problems) if "json" in texts else {}
        labels = self._labels(found, texts.get("cls"))
        if not labels:
            self.problems.add("no label", where)
            return None
        row = {name: as_text(found.get(name)) for name in self.text_fields}
        if "text" in self.text_fields and not any(row.values()):
            row["text"] = as_text(texts.get("txt"))
        return (
            row | self._told(found) | {"image": image.name, "web_labels": labels, "member": image}
        )

    def _decode(self, raw: bytes, where: str) -> str:
        text, was_utf8 = decode(raw)
        if not was_utf8:
            self.problems.add("text not in UTF-8", where)
        return text

    def _told(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return source and truth of a sample where their keys were told."""
        told: dict[str, Any] = {}
        if "source" in self.columns:
            told["source"] = as_text(found.get(self.columns["source"]))
        if "truth" in self.columns:
            told["truth"] = as_names(found.get(self.columns["truth"]))
        return told

    def _labels(self, found: Mapping[str, Any], cls: str | None) -> list[str] | str | None:
        """Return the label or labels of a sample."""
        names = (self.columns["label"],) if "label" in self.columns else KNOWN["label"]
        value = (
            next((found[n] for n in names if found.get(n) not in {None, ""}), None)
            if found
            else None
        )
        if value is None or (cls is not None and "label" not in self.columns):
            value = cls if cls is not None else value
        if self.label_separator is None:
            return self._name(as_text(value))
        parts = value if isinstance(value, list) else str(value or "").split(self.label_separator)
        return [name for part in parts if (name := self._name(as_text(part)))]

    def _name(self, label: str | None) -> str | None:
        """Return the name of a class given by name or by number."""
        if label is None or self.classes is None or label in self.classes:
            return label
        number = int(label) if label.isdecimal() else -1
        return self.classes[number] if 0 <= number < len(self.classes) else label
