"""The pictures of a crawl, read and decoded a batch at a time."""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders.protocol import ImageEncoder
from vsgraph.encoders.store import NOTHING, VectorStore, content_key
from vsgraph.encoders.vectors import Problem
from vsgraph.pictures.decode import PictureError, decoder, read_picture

Span = tuple[int, int]


class Loaded(NamedTuple):
    """A batch that is read: keys a row, and contents where they are there and not known yet."""

    keys: list[bytes]
    contents: list[Any]
    problems: list[Problem]


def load_pictures(crawl: Crawl, span: Span, encoder: ImageEncoder, store: VectorStore) -> Loaded:
    """Read, hash and decode a batch; what is known already is not decoded."""
    loaded = Loaded([], [], [])
    for row, data in enumerate(crawl.read_images(slice(*span)), span[0]):
        key, pixels = content_key(data), None
        if key not in store:
            try:
                pixels = read_picture(data, encoder.preparation)
            except PictureError as error:
                key = NOTHING
                loaded.problems.append((row, error.reason, error.detail))
        loaded.keys.append(key)
        loaded.contents.append(pixels)
    return loaded


def references(crawl: Crawl, span: Span) -> str:
    """Return a digest of where pictures lie, and of the sizes and times of their files."""
    part = crawl.take(slice(*span)).table
    names = ["image", *(name for name in ("shard", "offset", "size") if crawl.has_shards)]
    words = [str(reference) for reference in part.select(names).to_pylist()]
    files = set(part["shard"].to_pylist()) if crawl.has_shards else part["image"].to_pylist()
    for name in sorted(files):
        try:
            found = (crawl.root / name).stat()
            words.append(f"{found.st_size} {found.st_mtime_ns}")
        except OSError:
            words.append("missing")
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def pictures_digest(crawl: Crawl) -> str:
    """Return a digest of where all pictures lie, and of the sizes and times of their files."""
    spans = [(start, min(start + 1024, len(crawl))) for start in range(0, len(crawl), 1024)]
    words = "".join(references(crawl, span) for span in spans)
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()


def where(crawl: Crawl, row: int) -> str:
    """Say which picture a row is."""
    name = str(crawl.table["image"][row].as_py())
    return f"{crawl.table['shard'][row].as_py()}: {name}" if crawl.has_shards else name


@contextmanager
def quiet_decoders() -> Iterator[None]:
    """Keep Pillow from warning of odd files, and OpenCV from starting threads beside ours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        if decoder() == "Pillow":
            yield
            return
        import cv2

        before = cv2.getNumThreads()
        cv2.setNumThreads(1)
        try:
            yield
        finally:
            cv2.setNumThreads(before)
