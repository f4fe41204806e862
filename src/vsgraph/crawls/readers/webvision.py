"""WebVision 1.0 and 2.0 in their official layout, and ImageNet's validation set.

Google-500 is a list of classes applied to it.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.regular import is_regular, read_regular
from vsgraph.crawls.columns import (
    LISTS,
    ClassList,
    Gathered,
    as_text,
    below,
    is_image,
    read_class_list,
)
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError

SOURCES = ("google", "flickr")
TEXT = {"google": ("title", "description"), "flickr": ("title", "tags")}  # the paper's choice
FIELDS = ("title", "tags", "description")
TYPES = dict.fromkeys(("image", "web_labels", "source", *FIELDS), pa.string())
CHECKED = TYPES | {"truth": LISTS}
IMAGE_FOLDERS = (
    "", "train_images_256", "train_images", "images", "resized_images", "train_images_resized",
)  # fmt: skip
VALIDATION_FOLDERS = ("val_images_256", "val_images_resized", "val_images", "val")
META_FOLDERS = ("", "meta", "metadata", "metadata_json")


def read_webvision(
    path: Path,
    *,
    split: str = "train",
    sources: tuple[str, ...] = SOURCES,
    classes: ClassList | None = None,
    all_text: bool = False,
    problems: Problems,
) -> Crawl:
    """Read WebVision: images found on Google and Flickr by query, with the text beside them.

    Classes are wnids, in the official order or that of `classes`. The root holds ``info/``.
    """
    info = path / "info"
    wnids = [line.split()[0] for line in _lines(info / "synsets.txt") if line.split()]
    chosen = read_class_list(classes) if classes is not None else wnids
    unknown = sorted(set(chosen) - set(wnids))
    if unknown:
        raise InputError(f"{classes}: {unknown[0]} is not a class in {info}/synsets.txt")
    reader = _Reader(path, wnids, set(chosen), all_text, problems)
    gathered = Gathered(problems, FIELDS)
    if split == "val":
        gathered.add_rows(reader.validation(), CHECKED)
    else:
        gathered.add_rows(reader.training(sources), TYPES)
    return gathered.crawl(f"WebVision ({split})", path, classes=chosen, wnids=chosen)


def _checked(image: str, wnid: str) -> dict[str, Any]:
    """Return the row of an image whose label people have checked."""
    return {"image": image, "web_labels": wnid, "source": "validation", "truth": [wnid]}


def _lines(path: Path) -> list[str]:
    """Return the lines of a list that must exist."""
    try:
        return read_regular(path).decode("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


@dataclasses.dataclass
class _Reader:
    """Turns the lines of the file lists into rows."""

    root: Path
    wnids: list[str]
    chosen: set[str]
    all_text: bool
    problems: Problems
    _page: tuple[str, list[Any]] = ("", [])

    def training(self, sources: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the crawl."""
        for list_name in self._lists(sources):
            images = _lines(self.root / "info" / f"train_filelist_{list_name}.txt")
            metas = self._metas(list_name, len(images))
            folder = self._image_folder(images)
            for number, (line, meta) in enumerate(zip(images, metas, strict=True), 1):
                where = f"train_filelist_{list_name}.txt, line {number}"
                row = self._row(line, where)
                if row is not None and row["source"] in sources:
                    texts = self._texts(row, meta, where)
                    yield row | texts | {"image": folder + row["image"]}

    def _lists(self, sources: tuple[str, ...]) -> list[str]:
        """Return the names of the file lists: one per source, or one for all."""
        names = [s for s in sources if (self.root / "info" / f"train_filelist_{s}.txt").exists()]
        if not names and (self.root / "info" / "train_filelist_all.txt").exists():
            return ["all"]
        if not names:
            raise InputError(f"{self.root}/info holds no train_filelist of {', '.join(sources)}")
        return names

    def _metas(self, list_name: str, n_images: int) -> list[str]:
        """Return the reference to the text of each line, empty if there is no such list."""
        path = self.root / "info" / f"train_meta_list_{list_name}.txt"
        if not path.exists():
            self.problems.add("list of metadata missing", str(path), "no text is read")
            return [""] * n_images
        metas = _lines(path)
        if len(metas) != n_images:
            raise InputError(f"{path} has {len(metas)} lines, the list of images {n_images}")
        return metas

    def _image_folder(self, images: list[str]) -> str:
        """Return the folder that the images' paths start from."""
        for row in evenly_spread(len(images), 50):
            for folder in IMAGE_FOLDERS:
                if is_regular(self.root / folder / images[row].partition(" ")[0]):
                    return f"{folder}/" if folder else ""
        return ""

    def _row(self, line: str, where: str) -> dict[str, Any] | None:
        """Return the path, label and source in a line, None if it is of another class."""
        path, _, label = line.strip().rpartition(" ")
        if not path or not label.isdecimal() or int(label) >= len(self.wnids):
            self.problems.add("broken line", where, line[:100])
            return None
        inside = below(self.root, path)
        if inside is None:
            self.problems.add("image path leads out of the folder", where, path[:200])
            return None
        wnid = self.wnids[int(label)]
        if wnid not in self.chosen:
            return None
        source = next((s for s in SOURCES if path.startswith(f"{s}/")), "other")
        return {"image": inside, "web_labels": wnid, "source": source}

    def _texts(self, row: dict[str, Any], meta: str, where: str) -> dict[str, str | None]:
        """Return the text of an image: the entry that the list names, checked by its id."""
        name, _, number = meta.strip().rpartition(" ")
        if not name or not number.isdecimal():
            return {}
        entries = self._entries(name)
        place = int(number) - 1
        entry = entries[place] if 0 <= place < len(entries) else None
        stem = row["image"].rpartition("/")[2].rpartition(".")[0]
        if not isinstance(entry, dict) or str(entry.get("id", stem)) != stem:
            entry = next((e for e in entries if isinstance(e, dict) and e.get("id") == stem), None)
        if entry is None:
            self.problems.add("image without its metadata", where, meta)
            return {}
        names = FIELDS if self.all_text else TEXT.get(row["source"], FIELDS)
        return {field: as_text(entry.get(field)) for field in names}

    def _entries(self, name: str) -> list[Any]:
        """Return the metadata of a query; neighboring lines need the same, so one is cached."""
        if self._page[0] != name:
            self._page = (name, self._read_entries(name))
        return self._page[1]

    def _read_entries(self, name: str) -> list[Any]:
        source, _, rest = name.partition("/")
        places = [f"{folder}/{name}" if folder else name for folder in META_FOLDERS]
        for place in (*places, f"{source}_json/{rest}", f"info/{name}"):
            path = self.root / place
            if below(self.root, place) and is_regular(path):
                try:
                    entries = json.loads(read_regular(path).decode("utf-8", errors="replace"))
                except (ValueError, RecursionError):
                    entries = None
                if isinstance(entries, list):
                    return entries
                self.problems.add("broken metadata", str(path))
                return []
        self.problems.add("metadata missing", name)
        return []

    def validation(self) -> Iterator[dict[str, Any]]:
        """Yield the validation images."""
        folder = next((f for f in VALIDATION_FOLDERS if (self.root / f).is_dir()), "val_images_256")
        for number, line in enumerate(_lines(self.root / "info" / "val_filelist.txt"), 1):
            row = self._row(line, f"val_filelist.txt, line {number}")
            if row is not None:
                yield _checked(f"{folder}/{row['image']}", row["web_labels"])


def read_imagenet_validation(path: Path, *, classes: ClassList, problems: Problems) -> Crawl:
    """Read ImageNet's validation images, in folders named by wnid or by number in `classes`."""
    wnids = read_class_list(classes)
    names = {wnid: wnid for wnid in wnids} | {str(i): wnid for i, wnid in enumerate(wnids)}
    rows = (
        _checked(f"{folder.name}/{file.name}", names[folder.name])
        for folder in sorted(path.iterdir()) if folder.is_dir() and folder.name in names
        for file in sorted(folder.iterdir()) if is_image(file.name)
    )  # fmt: skip
    gathered = Gathered(problems, FIELDS)
    gathered.add_rows(rows, CHECKED)
    return gathered.crawl("ImageNet (validation)", path, classes=wnids, wnids=wnids)
