"""NUS-WIDE in its official layout: photos of Flickr with 81 concepts, several a photo."""

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vsgraph.crawls.columns import BLOCK, Gathered
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError

IMAGE_FOLDERS = ("Flickr", "images", "Images", "image", "")
NUS_81 = Path(__file__).with_name("nus_81.csv")
SPLITS = {"train": "Train", "test": "Test", "all": ""}


def read_nus_wide(path: Path, *, split: str = "train", problems: Problems) -> Crawl:
    """Read NUS-WIDE: user tags as web labels, all tags as text, people's labels as truth.

    Parameters
    ----------
    path : Path
        The root, which holds ``ImageList``, ``NUS_WID_Tags``, ``Groundtruth``, ``ConceptsList``.
    split : {"train", "test", "all"}
        The official split. Training photos without a web label are left out, and test photos
        without a true one.
    problems : Problems
        Where to say what is wrong.

    Returns
    -------
    crawl : Crawl
        Photos may have several labels; photos that are missing on disk stay listed.
    """
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    files = _Files(path, SPLITS[split])
    concepts = files.concepts()
    images = files.images()
    web = _matrix(files.tags81(), len(images), len(concepts))
    truth = files.truth(concepts, len(images))
    used = truth.any(axis=1) if split == "test" and truth is not None else web.any(axis=1)
    labels = truth if split == "test" and truth is not None else web
    folder = files.image_folder(images)
    tags = files.all_tags()
    gathered = Gathered(problems, ("tags",))
    rows = np.flatnonzero(used)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        names = [images[row] for row in block]
        columns = {
            "image": pa.array([folder + name for name in names]),
            "web_labels": _names(labels[block], concepts),
            "tags": pa.array([tags.get(_flickr_id(name)) for name in names], pa.string()),
        }
        if truth is not None:
            columns["truth"] = _names(truth[block], concepts)
        gathered.add(pa.table(columns))
    wnids = [senses_of_concepts().get(concept) for concept in concepts]
    return gathered.crawl(f"NUS-WIDE ({split})", path, classes=concepts, wnids=wnids)


def senses_of_concepts() -> dict[str, str]:
    """Return the WordNet id of each of the 81 concepts, chosen by hand.

    >>> senses_of_concepts()["coral"]
    'n01915811'
    """
    with NUS_81.open(encoding="utf-8") as file:
        return {row["class"]: row["wnid"] for row in csv.DictReader(file)}


def _flickr_id(name: str) -> str:
    """Return the id of a photo.

    >>> _flickr_id("actor/0001_2124494179.jpg")
    '2124494179'
    """
    return name.rpartition("_")[2].partition(".")[0]


def _names(labels: NDArray[np.bool_], concepts: list[str]) -> pa.ListArray:
    """Return a table of booleans as lists of names."""
    rows, classes = np.nonzero(labels)
    starts = np.searchsorted(rows, np.arange(len(labels) + 1))
    values = pa.array(concepts).take(pa.array(classes))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)


def _matrix(path: Path, n_rows: int, n_columns: int) -> NDArray[np.bool_]:
    """Read lines of 0 and 1, whatever stands between them."""
    matrix = np.zeros((n_rows, n_columns), bool)
    number = 0
    with _open(path).open("rb") as opened:
        for number, line in enumerate(opened, 1):
            values = line.split()
            if number > n_rows or len(values) != n_columns or not set(values) <= {b"0", b"1"}:
                raise InputError(
                    f"{path}, line {number}: wanted {n_columns} times 0 or 1 on {n_rows} lines"
                )
            matrix[number - 1] = [value == b"1" for value in values]
    if number != n_rows:
        raise InputError(f"{path} has {number} lines, the list of images {n_rows}")
    return matrix


def _open(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} is not there; it belongs to the official NUS-WIDE layout")
    return path


@dataclasses.dataclass(frozen=True)
class _Files:
    """Where the official layout keeps what."""

    root: Path
    split: str

    def _find(self, *places: str) -> Path:
        """Return the first of the places that is there."""
        paths = [self.root / place for place in places]
        return next((path for path in paths if path.is_file()), paths[0])

    def concepts(self) -> list[str]:
        """Return the names of the 81 concepts."""
        path = self._find("ConceptsList/Concepts81.txt", "Concepts81.txt")
        return _open(path).read_text(encoding="utf-8").split()

    def images(self) -> list[str]:
        """Return the photos, with slashes."""
        name = f"{self.split}Imagelist.txt"
        path = self._find(f"ImageList/{name}", f"Imagelist/{name}", name)
        lines = _open(path).read_text(encoding="utf-8").splitlines()
        names = [line.strip().replace("\\", "/") for line in lines if line.strip()]
        unsafe = next((n for n in names if n.startswith("/") or ".." in n.split("/")), None)
        if unsafe is not None:
            raise InputError(f"{path}: {unsafe} leads out of the folder")
        return names

    def tags81(self) -> Path:
        """Return the file of web labels."""
        name = f"{self.split}_Tags81.txt" if self.split else "AllTags81.txt"
        return self._find(f"NUS_WID_Tags/{name}", f"NUS_WIDE_Tags/{name}", f"Tags/{name}", name)

    def truth(self, concepts: list[str], n_rows: int) -> NDArray[np.bool_] | None:
        """Return people's labels, None if they are not there."""
        folder, tail = ("TrainTestLabels", f"_{self.split}") if self.split else ("AllLabels", "")
        place: Callable[[str], Path] = lambda c: self._find(  # noqa: E731
            f"Groundtruth/{folder}/Labels_{c}{tail}.txt", f"{folder}/Labels_{c}{tail}.txt"
        )
        if not place(concepts[0]).is_file():
            return None
        return np.column_stack([_matrix(place(c), n_rows, 1) for c in concepts])

    def all_tags(self) -> dict[str, str]:
        """Return the tags of each photo, by its Flickr id."""
        path = self._find("NUS_WID_Tags/All_Tags.txt", "NUS_WIDE_Tags/All_Tags.txt", "All_Tags.txt")
        if not path.is_file():
            return {}
        tags: dict[str, str] = {}
        with path.open(encoding="utf-8", errors="replace") as opened:
            for line in opened:
                photo, _, words = line.strip().partition(" ")
                tags[photo] = words.strip()
        return tags

    def image_folder(self, images: list[str]) -> str:
        """Return the folder that the photos' paths start from; some photos may be missing."""
        for name in images[:: max(1, len(images) // 200)]:
            for folder in IMAGE_FOLDERS:
                if (self.root / folder / name).exists():
                    return f"{folder}/" if folder else ""
        there = [
            f"{folder}/" for folder in IMAGE_FOLDERS if folder and (self.root / folder).is_dir()
        ]
        return next(iter(there), "")
