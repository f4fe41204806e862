"""WebDataset tar shards and the output of img2dataset, read in place."""

import dataclasses
import itertools
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from vsgraph.common.regular import is_regular, open_regular, read_regular
from vsgraph.crawls.columns import (
    LISTS,
    TEXT_FIELDS,
    ClassList,
    Gathered,
    as_names,
    as_text,
    is_image,
    other_values,
    read_class_list,
)
from vsgraph.crawls.crawl import Crawl, own_files
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.readers.folders import LARGEST_SIDE_FILE, decode_counted, json_object
from vsgraph.crawls.readers.table_roles import KNOWN
from vsgraph.errors import InputError

SIDE = ("json", "txt", "cls")
PLACE = {"shard": pa.string(), "offset": pa.int64(), "size": pa.int64()}
SHARD_FOLDER = re.compile(r"\d{5,}")


@dataclasses.dataclass(frozen=True)
class Member:
    """A file within a shard, or within a folder that stands for one."""

    name: str
    offset: int
    size: int

    @property
    def key(self) -> str:
        """The name up to the first dot of its last part, by which WebDataset groups files."""
        folder, slash, base = self.name.rpartition("/")
        return folder + slash + base.partition(".")[0]

    @property
    def ending(self) -> str:
        """Everything after the first dot, in lower case."""
        return self.name.rpartition("/")[2].partition(".")[2].lower()


def read_shards(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    label_separator: str | None = None,
    classes: ClassList | None = None,
    problems: Problems,
) -> Crawl:
    """Read tar shards, or img2dataset's folders of files, without unpacking them."""
    listed = read_class_list(classes) if classes is not None else None
    root, shards = _find_shards(path)
    in_tar = shards[0].is_file()
    reader = _Reader(root, columns or {}, label_separator, listed, problems)
    gathered = Gathered(problems, reader.text_fields)
    for shard in shards:
        rows = reader.tar_samples(shard) if shard.is_file() else reader.folder_samples(shard)
        gathered.add_rows(rows, reader.types(in_tar=in_tar))
    kind = "tar shards" if in_tar else "img2dataset folders"
    return gathered.crawl(f"{kind} ({len(shards)})", root, classes=listed)


def _find_shards(path: Path) -> tuple[Path, list[Path]]:
    """Return the root and its shards: tar files, or numbered folders."""
    if path.is_file():
        return path.parent, [path]
    tars = own_files(path, ["*.tar"]) or own_files(path, ["*/*.tar"])
    packed = own_files(path, ["*.tar.gz", "*.tgz"])
    if packed and not tars:
        raise InputError(f"{packed[0]} is compressed and cannot be read in place; gunzip it")
    folders = sorted(p for p in path.iterdir() if p.is_dir() and SHARD_FOLDER.fullmatch(p.name))
    if not tars and not folders:
        raise InputError(f"{path} holds no .tar shards and no numbered folders")
    return path, tars or folders


def _tar_members(shard: Path, file: BinaryIO, problems: Problems) -> Iterator[Member]:
    """Yield the files of a shard with their places, except unsafe or broken ones."""
    length = shard.stat().st_size
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                tar.members = []  # type: ignore[attr-defined]  # a shard may have a million
                where = f"{shard}: {member.name}"
                if member.isdir():
                    continue
                if not member.isreg():
                    problems.add("shard member that is not a file", where)
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
    """Return whether a name is absolute, leads upwards, is not UTF-8, or has a NUL in it."""
    parts = name.replace("\\", "/").split("/")
    bad_letters = any(c == "\0" or 0xD800 <= ord(c) <= 0xDFFF for c in name)
    return name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or bad_letters


def _folder_members(folder: Path) -> Iterator[Member]:
    """Yield the files of a folder as if it were a shard."""
    for path in sorted(folder.iterdir()):
        if not path.is_symlink() and is_regular(path) and not _is_unsafe(path.name):
            yield Member(f"{folder.name}/{path.name}", 0, path.stat().st_size)


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Turns samples, files with the same key, into rows."""

    root: Path
    columns: Mapping[str, str]
    label_separator: str | None
    classes: list[str] | None
    problems: Problems

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The keys of the JSON that hold text."""
        return tuple(self.columns["text"].split(",")) if "text" in self.columns else TEXT_FIELDS

    def types(self, *, in_tar: bool) -> dict[str, pa.DataType]:
        """Return the columns of a row."""
        labels = LISTS if self.label_separator else pa.string()
        fixed = {"image": pa.string(), "web_labels": labels, **(PLACE if in_tar else {})}
        optional = {"source": pa.string(), "truth": LISTS}
        more = {role: kind for role, kind in optional.items() if role in self.columns}
        return fixed | more | dict.fromkeys(self.text_fields, pa.string())

    def tar_samples(self, shard: Path) -> Iterator[dict[str, Any]]:
        """Yield one row per sample of a tar shard."""
        name = shard.relative_to(self.root).as_posix()
        with open_regular(shard) as file:  # also read between two members: each has its place

            def read(member: Member) -> bytes:
                file.seek(member.offset)
                return file.read(min(member.size, LARGEST_SIDE_FILE))

            for image, row in self._rows(_tar_members(shard, file, self.problems), read, shard):
                place = {"shard": name, "offset": image.offset, "size": image.size}
                yield row | place | {"image": f"{name}/{image.name}"}

    def folder_samples(self, folder: Path) -> Iterator[dict[str, Any]]:
        """Yield one row per sample of a folder of files."""

        def read(member: Member) -> bytes:
            return read_regular(self.root / member.name, LARGEST_SIDE_FILE)

        for image, row in self._rows(_folder_members(folder), read, folder):
            yield row | {"image": image.name}

    def _rows(
        self, members: Iterable[Member], read: Callable[[Member], bytes], shard: Path
    ) -> Iterator[tuple[Member, dict[str, Any]]]:
        """Yield image and row of each sample; add a problem if it has no image or no label."""
        for key, group in itertools.groupby(members, key=lambda member: member.key):
            sample = list(group)
            where = f"{shard}: {key}"
            image = next((member for member in sample if is_image(member.name)), None)
            if image is None:
                if "parquet" not in sample[0].name:
                    self.problems.add("sample without an image", where)
                continue
            texts = {
                member.ending: decode_counted(read(member), where, self.problems)
                for member in sample
                if member.ending in SIDE
            }
            values = json_object(texts["json"], where, self.problems) if "json" in texts else {}
            labels = self._labels(values, texts.get("cls"))
            if labels:
                yield image, {"web_labels": labels, **self._fields(values, texts.get("txt"))}
            else:
                self.problems.add("no label", where)

    def _fields(self, values: Mapping[str, Any], text: str | None) -> dict[str, Any]:
        """Return the text fields of a sample, and its source and truth if their keys are given."""
        row: dict[str, Any] = {name: as_text(values.get(name)) for name in self.text_fields}
        if "text" in self.text_fields and not any(row.values()):
            row["text"] = as_text(text)
        if "source" in self.columns:
            row["source"] = as_text(values.get(self.columns["source"]))
        if "truth" in self.columns:
            row["truth"] = as_names(values.get(self.columns["truth"]))
        taken = {*row, *self.columns.values(), self._label_key(values)}
        return row | other_values(values, taken)

    def _label_key(self, values: Mapping[str, Any]) -> str:
        """Return the key of the JSON that holds the label, '' if none does."""
        names = (self.columns["label"],) if "label" in self.columns else KNOWN["label"]
        return next((name for name in names if values.get(name) not in (None, "")), "")

    def _labels(self, values: Mapping[str, Any], cls: str | None) -> list[str] | str | None:
        """Return the label or labels of a sample."""
        value = values.get(self._label_key(values))
        if cls is not None and (value is None or "label" not in self.columns):
            value = cls
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
