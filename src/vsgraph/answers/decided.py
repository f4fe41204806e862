"""Answers in files of other programs: tables, exports of Label Studio and of FiftyOne."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vsgraph.common.regular import read_regular
from vsgraph.crawls.columns import NONE
from vsgraph.crawls.problems import Problems, one_line
from vsgraph.crawls.readers.table_files import header_of, listed, raw_blocks
from vsgraph.crawls.readers.table_roles import KNOWN, named_like
from vsgraph.crawls.readers.tables import table_files
from vsgraph.errors import InputError, is_meant

REJECTED = "_rejected"  # the choice for no class in our tasks for Label Studio
LABELS = ("new_label", "final_label", "label", "labels", "answer", *KNOWN["truth"])
DECISIONS = ("decision", "action")
KEEP, RELABEL, REJECT = "keep", "relabel", "reject"
JOINT = "|"  # of several labels in our tables
OURS = {"final_label", "confidence", "why"}  # columns of our tables, which list every image


class Said(NamedTuple):
    """What a file says of one image."""

    image: str  # its path, relative to the crawl or absolute
    new: tuple[str, ...] | None  # classes, none of them if empty; None for the web labels
    where: str  # file and row


class Decided(NamedTuple):
    """What a file says."""

    said: list[Said]
    is_whole: bool  # whether it lists every image, also those that nobody looked at


def read_decided(
    path: Path, class_names: Sequence[str], *, label_separator: str | None = None
) -> Decided:
    """Read a table with the columns image and label, or an export of Label Studio or FiftyOne."""
    names = ClassWords(class_names, label_separator)
    if path.is_dir() and (path / "labels.json").is_file():
        path /= "labels.json"
    if path.suffix.lower() != ".json":
        return _read_table(path, names)
    values = _read_json(path)
    if isinstance(values, dict) and isinstance(values.get("labels"), dict):
        return Decided(list(_read_fiftyone(path, values, names)), is_whole=True)
    if isinstance(values, list) and all(isinstance(task, dict) for task in values):
        return Decided(list(_read_labelstudio(path, values, names)), is_whole=False)
    raise InputError(f"{path} is neither an export of Label Studio (JSON) nor one of FiftyOne")


def _read_json(path: Path) -> Any:  # noqa: ANN401
    try:
        return json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not complete JSON: {error}") from error


class ClassWords:
    """The classes by the names that files have for them."""

    def __init__(self, class_names: Sequence[str], label_separator: str | None = None) -> None:
        self.class_names = tuple(class_names)
        self.known = {one_line(name): name for name in class_names}
        self.separator = label_separator

    def read(self, labels: Sequence[str], where: str) -> tuple[str, ...]:
        """Return the classes of some labels, empty for none of them; InputError if unknown."""
        found = dict.fromkeys(self._one(label.strip(), where) for label in labels if label.strip())
        return tuple(name for name in found if name is not None)

    def split(self, cell: str, where: str) -> tuple[str, ...]:
        """Return the classes in a cell of text."""
        if cell.strip() in self.known:
            return (self.known[cell.strip()],)
        return self.read(cell.split(self.separator or JOINT), where)

    def _one(self, label: str, where: str) -> str | None:
        """Return the class of a label, None for none of the classes."""
        if label in self.known:
            return self.known[label]
        if label.lower() == NONE or label.lstrip("_") == REJECTED.lstrip("_"):
            return None
        meant = is_meant(label, self.class_names)
        hint = f"is {meant!r} meant?" if meant else f"write {NONE!r} for none of the classes"
        raise InputError(f"{where}: {one_line(label)[:60]!r} is no class of this run; {hint}")


def _read_table(path: Path, names: ClassWords) -> Decided:
    """Read a table: image, label, and perhaps a decision."""
    said: list[Said] = []
    is_whole, problems = False, Problems()
    for file in table_files(path):
        header = header_of(file)
        image = named_like(header, KNOWN["image"])
        label, decision = named_like(header, LABELS), named_like(header, DECISIONS)
        if image is None or (label is None and decision is None):
            raise InputError(f"{file} needs columns image and label; it has {listed(header)}")
        is_whole |= set(header) >= OURS
        columns = [name for name in (image, label, decision) if name]
        number = 0
        for block in raw_blocks(file, columns, problems):
            for row in block.to_pylist():
                number += 1
                where = f"{file}, row {number}"
                new = _read_row(row.get(label), row.get(decision), names, where, decision)
                if new != UNSAID:
                    said.append(Said(_image_of(row[image], where), new, where))
    if len(problems):
        raise InputError(problems.lines()[0])
    return Decided(said, is_whole)


UNSAID: tuple[str, ...] = ("",)  # a row that says nothing


def _image_of(cell: object, where: str) -> str:
    if not isinstance(cell, str) or not cell.strip():
        raise InputError(f"{where}: no image")
    return cell.strip()


def _read_row(
    label: str | list[str] | None, decision: object, names: ClassWords, where: str,
    column: str | None,
) -> tuple[str, ...] | None:  # fmt: skip
    """Return the classes that a row names, None for the web labels, or UNSAID."""
    if isinstance(label, list):
        new = names.read([one for one in label if one], where)
    else:
        new = names.split(label or "", where)
    is_named = bool(label.strip() if isinstance(label, str) else label)
    word = str(decision or "").strip().lower()
    if column is None or (not word and is_named):
        return new
    if word not in {KEEP, RELABEL, REJECT, ""}:
        raise InputError(f"{where}: {word[:60]!r} is no decision; use {KEEP}, {RELABEL}, {REJECT}")
    if word == REJECT and new:
        raise InputError(f"{where}: says {REJECT}, but names {new[0]!r}; clear one of them")
    if word == RELABEL and not new:
        raise InputError(f"{where}: says {RELABEL}, but names no class")
    if word == KEEP and not is_named:
        return None
    return new if word else UNSAID


def _read_labelstudio(
    path: Path, tasks: Sequence[Mapping[str, Any]], names: ClassWords
) -> Iterator[Said]:
    """Yield what people chose in Label Studio, from its JSON or JSON-MIN; predictions are none."""
    for number, task in enumerate(tasks, 1):
        where = f"{path}, task {number}"
        data = task.get("data", task)
        image = data.get("path") if isinstance(data, Mapping) else None
        if "annotations" in task:
            chosen = _last_choices(task["annotations"])
        else:
            label = task.get("label")
            label = label.get("choices") if isinstance(label, Mapping) else label
            chosen = [label] if isinstance(label, str) else label
        if chosen and not isinstance(chosen, list):
            raise InputError(f"{where}: its choices are no list")
        if chosen:
            if not isinstance(image, str):
                raise InputError(
                    f"{where}: has no path of an image; export tasks that vsgraph export wrote"
                )
            yield Said(image, names.read([str(one) for one in chosen], where), where)


def _last_choices(annotations: object) -> list[str] | None:
    """Return the choices of the last annotation that was not cancelled."""
    chosen: list[str] | None = None
    for annotation in annotations if isinstance(annotations, list) else ():
        if not isinstance(annotation, Mapping) or annotation.get("was_cancelled"):
            continue
        results = annotation.get("result")
        for result in results if isinstance(results, list) else ():
            value = result.get("value") if isinstance(result, Mapping) else None
            if isinstance(value, Mapping) and isinstance(value.get("choices"), list):
                chosen = value["choices"]
    return chosen


def _read_fiftyone(path: Path, values: Mapping[str, Any], names: ClassWords) -> Iterator[Said]:
    """Yield the labels of a FiftyOne classification data set, one per image or several."""
    classes = values.get("classes") or []  # null if the labels are names
    if not isinstance(classes, list):
        raise InputError(f"{path}: its classes are no list")
    beside = path.parent / "data.json"
    places = _read_json(beside) if beside.is_file() else {}
    places = places if isinstance(places, Mapping) else {}
    files = {file.stem: str(file) for file in (path.parent / "data").glob("*")}
    for key, entry in values["labels"].items():
        where = f"{path}, {key!r}"
        entries = entry if isinstance(entry, list) else [] if entry is None else [entry]
        labels = [one.get("label") if isinstance(one, Mapping) else one for one in entries]
        if any(isinstance(one, int) and not 0 <= one < len(classes) for one in labels):
            raise InputError(f"{where}: its class number is not in the list of classes")
        spoken = [str(classes[one] if isinstance(one, int) else one) for one in labels]
        image = places.get(key, files.get(key))
        if not isinstance(image, str):
            raise InputError(
                f"{where}: data.json and the folder data have no such image; export from FiftyOne "
                "with data_path='data.json'"
            )
        yield Said(image, names.read(spoken, where), where)
