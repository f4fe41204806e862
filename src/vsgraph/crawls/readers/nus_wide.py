"""NUS-WIDE in its official layout: photos from Flickr with 81 concepts, several per photo."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vsgraph.common.blocks import evenly_spread
from vsgraph.common.regular import is_regular
from vsgraph.crawls.columns import Gathered, below, in_blocks
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError

IMAGE_FOLDERS = ("Flickr", "images", "Images", "image", "")
NUS_81 = Path(__file__).with_name("nus_81.csv")
SPLITS = {"train": "Train", "test": "Test", "all": ""}


def read_nus_wide(path: Path, *, split: str = "train", problems: Problems) -> Crawl:
    """Read NUS-WIDE: user tags as web labels, all tags as text, people's labels as truth.

    The root holds ``ImageList``, ``NUS_WID_Tags``, ``Groundtruth`` and ``ConceptsList``.
    """
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    files = _Files(path, SPLITS[split])
    concepts = files.concepts()
    images = files.images()
    web = _matrix(files.tags81(), len(images), len(concepts))
    truth = files.truth(concepts, len(images))
    labels = truth if split == "test" and truth is not None else web
    folder = files.image_folder(images)
    tags = files.all_tags()
    gathered = Gathered(problems, ("tags",))
    for block in in_blocks(np.flatnonzero(labels.any(axis=1))):
        names = [images[row] for row in block]
        columns = {
            "image": pa.array([folder + name for name in names]),
            "web_labels": _names(labels[block], concepts),
            "tags": pa.array([tags.get(_flickr_id(name)) for name in names], pa.string()),
        }
        if truth is not None:
            columns["truth"] = _names(truth[block], concepts)
        gathered.add(pa.table(columns))
    with NUS_81.open(encoding="utf-8") as file:
        senses = {row["class"]: row["wnid"] for row in csv.DictReader(file)}
    wnids = [senses.get(concept) for concept in concepts]
    return gathered.crawl(f"NUS-WIDE ({split})", path, classes=concepts, wnids=wnids)


def _flickr_id(name: str) -> str:
    """Return the id of a photo: '2124494179' of 'actor/0001_2124494179.jpg'."""
    return name.rpartition("_")[2].partition(".")[0]


def _names(labels: NDArray[np.bool_], concepts: list[str]) -> pa.ListArray:
    """Return booleans, (n_photos, n_concepts), as lists of names."""
    rows, classes = np.nonzero(labels)
    starts = np.searchsorted(rows, np.arange(len(labels) + 1))
    values = pa.array(concepts).take(pa.array(classes))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)


def _matrix(path: Path, n_rows: int, n_columns: int) -> NDArray[np.bool_]:
    """Read lines of 0 and 1 as booleans, (n_rows, n_columns)."""
    matrix = np.zeros((n_rows, n_columns), bool)
    number = 0
    with _existing(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            values = line.split()
            if number > n_rows or len(values) != n_columns or not set(values) <= {b"0", b"1"}:
                raise InputError(
                    f"{path}, line {number}: expected {n_rows} lines of {n_columns} times 0 or 1"
                )
            matrix[number - 1] = [value == b"1" for value in values]
    if number != n_rows:
        raise InputError(f"{path} has {number} lines, the list of images {n_rows}")
    return matrix


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} does not exist; it is part of the official NUS-WIDE layout")
    return path


def _text(path: Path) -> str:
    """Return the text of a list that must exist."""
    return _existing(path).read_text(encoding="utf-8", errors="replace")


@dataclasses.dataclass(frozen=True)
class _Files:
    """The files of the official layout."""

    root: Path
    split: str

    def _find(self, *places: str) -> Path:
        """Return the first of the places that exists, or else the first."""
        paths = [self.root / place for place in places]
        return next((path for path in paths if path.is_file()), paths[0])

    def concepts(self) -> list[str]:
        """Return the names of the 81 concepts."""
        path = self._find("ConceptsList/Concepts81.txt", "Concepts81.txt")
        return _text(path).split()

    def images(self) -> list[str]:
        """Return the paths of the photos, with slashes."""
        name = f"{self.split}Imagelist.txt"
        path = self._find(f"ImageList/{name}", f"Imagelist/{name}", name)
        lines = [line.strip().replace("\\", "/") for line in _text(path).splitlines()]
        names = {line: below(self.root, line) for line in filter(None, lines)}
        unsafe = next((line for line, name in names.items() if name is None), None)
        if unsafe is not None:
            raise InputError(f"{path}: {unsafe} leads out of the folder")
        return [inside for line in lines if (inside := names.get(line))]

    def tags81(self) -> Path:
        """Return the file of web labels."""
        name = f"{self.split}_Tags81.txt" if self.split else "AllTags81.txt"
        return self._find(f"NUS_WID_Tags/{name}", f"NUS_WIDE_Tags/{name}", f"Tags/{name}", name)

    def truth(self, concepts: list[str], n_rows: int) -> NDArray[np.bool_] | None:
        """Return people's labels, (n_rows, n_concepts), None if there are none."""
        folder, tail = ("TrainTestLabels", f"_{self.split}") if self.split else ("AllLabels", "")
        names = [f"{folder}/Labels_{concept}{tail}.txt" for concept in concepts]
        paths = [self._find(f"Groundtruth/{name}", name) for name in names]
        if not paths[0].is_file():
            return None
        return np.column_stack([_matrix(path, n_rows, 1) for path in paths])

    def all_tags(self) -> dict[str, str]:
        """Return the tags of each photo, by its Flickr id."""
        path = self._find("NUS_WID_Tags/All_Tags.txt", "NUS_WIDE_Tags/All_Tags.txt", "All_Tags.txt")
        if not path.is_file():
            return {}
        with path.open(encoding="utf-8", errors="replace") as file:
            parts = (line.strip().partition(" ") for line in file)
            return {photo: words.strip() for photo, _, words in parts}

    def image_folder(self, images: list[str]) -> str:
        """Return the folder that the photos' paths start from; some photos may be missing."""
        for row in evenly_spread(len(images), 200):
            for folder in IMAGE_FOLDERS:
                if is_regular(self.root / folder / images[row]):
                    return f"{folder}/" if folder else ""
        existing = (folder for folder in IMAGE_FOLDERS if folder and (self.root / folder).is_dir())
        return next((f"{folder}/" for folder in existing), "")
