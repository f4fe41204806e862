"""Names of files and folders that every operating system accepts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

LONGEST = 100
MARK = "~"
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".avif"}
)
_FORBIDDEN = frozenset('<>:"/\\|?*' + MARK)
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(\.|$)", re.IGNORECASE)


def safe_name(name: str, *, empty: str) -> str:
    """Return a name without anything that an operating system forbids or interprets.

    It contains no ``~``, so the name with ``~`` and a number appended is always new.

    >>> safe_name("../../etc", empty="class"), safe_name("a/b", empty="class")
    ('_._.._etc', 'a_b')
    >>> safe_name("CON", empty="class"), safe_name(" . ", empty="class")
    ('_CON', 'class')
    """
    composed = unicodedata.normalize("NFC", name)
    allowed = "".join("_" if c in _FORBIDDEN or not c.isprintable() else c for c in composed)
    cut = allowed.strip().encode()[:LONGEST].decode(errors="ignore").rstrip(". ")
    if not cut:
        return empty
    if cut.startswith("."):
        cut = f"_{cut[1:]}"
    return f"_{cut}" if _RESERVED.match(cut) else cut


def folder_names(names: Sequence[str], *, taken: Iterable[str] = ()) -> list[str]:
    """Return one folder name per class; all differ even if case is ignored.

    >>> folder_names(["Crane", "crane", "crane/bird"])
    ['Crane', 'crane~2', 'crane_bird']
    """
    used = {_fold(name) for name in taken}
    folders = []
    for name in names:
        folder = safe = safe_name(name, empty="class")
        number = 2
        while _fold(folder) in used:
            folder = f"{safe}{MARK}{number}"
            number += 1
        used.add(_fold(folder))
        folders.append(folder)
    return folders


def split_name(image: str) -> tuple[str, str]:
    r"""Return the stem and the suffix of an image's file; the suffix is '' if it is no picture's.

    >>> split_name("../birds/Crane.1.JPG"), split_name(r"actor\0001_212.jpg")
    (('Crane.1', '.jpg'), ('0001_212', '.jpg'))
    >>> split_name("image.php?id=3")
    ('image.php_id=3', '')
    """
    last = PurePosixPath(image.replace("\\", "/")).name
    suffix = PurePosixPath(last).suffix.lower()
    if suffix not in SUFFIXES:
        return safe_name(last, empty="image"), ""
    return safe_name(last[: -len(suffix)], empty="image"), suffix


def name_key(folder: int, image: str) -> int:
    """Return a hash that is equal for two files of a folder if their names would clash.

    >>> name_key(0, "a/X.jpg") == name_key(0, "b/x.JPG"), name_key(0, "x") == name_key(1, "x")
    (True, False)
    """
    name = f"{folder}/{_fold(''.join(split_name(image)))}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def file_name(image: str, suffix: str, row: int, *, clashes: bool) -> str:
    """Return the name of a picture's file within its folder.

    The row is appended if the name is taken or has no picture's suffix.

    >>> file_name("x/a.JPEG", ".jpeg", 7, clashes=False)
    'a.jpeg'
    >>> file_name("a.jpg", ".jpg", 7, clashes=True), file_name("a.php", ".png", 7, clashes=False)
    ('a~7.jpg', 'a.php~7.png')
    """
    stem, known = split_name(image)
    return f"{stem}{MARK}{row}{suffix}" if clashes or not known else f"{stem}{known}"


def numbered_name(row: int, suffix: str) -> str:
    """Return the name of a picture's file by its row, ten thousand per folder.

    >>> numbered_name(12345, ".jpg")
    '0001/000012345.jpg'
    """
    return f"{row // 10_000:04d}/{row:09d}{suffix}"


def free_names(names: Iterable[str], *, taken: Iterable[str]) -> dict[str, str]:
    """Return the name in an export of each column of a crawl: one that is not taken.

    >>> free_names(["title", "label"], taken=["label"])
    {'title': 'title', 'label': 'label_crawl'}
    """
    used, free = set(taken), {}
    for name in names:
        new = name
        while new in used:
            new += "_crawl"
        used.add(new)
        free[name] = new
    return free


def one_line(name: str) -> str:
    r"""Return a name without line breaks or other characters that do not print.

    >>> one_line("great\nauk")
    'great auk'
    """
    return "".join(c if c.isprintable() else " " for c in name)


def write_class_names(path: Path, names: Iterable[str]) -> None:
    """Write one class name per line."""
    path.write_text("".join(f"{one_line(name)}\n" for name in names), encoding="utf-8")


def _fold(name: str) -> str:
    """Return a name as a system that ignores case sees it."""
    return unicodedata.normalize("NFC", name.casefold())
