"""A crawl saved as it was read: Parquet and JSON."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vsgraph.common.stores import place
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError

TABLE, REST, PROBLEMS = "crawl.parquet", "crawl.json", "problems.tsv"


def save_crawl(crawl: Crawl, folder: Path) -> None:
    """Write a crawl into a folder; its pictures stay where they are.

    >>> import tempfile
    >>> table = pa.table({"image": ["a.jpg"], "web_labels": pa.array([0], pa.int32())})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_crawl(Crawl("a table", Path("/data"), table, ("crane",)), Path(folder))
    ...     print(load_crawl(Path(folder)))
    Crawl(a table: 1 images, 1 classes)
    """
    pq.write_table(crawl.table, folder / TABLE, compression="zstd")
    rest = {
        "format": crawl.format,
        "root": str(crawl.root.resolve()),
        "class_names": crawl.class_names,
        "wnids": crawl.wnids,
        "text_fields": crawl.text_fields,
        "other_truths": dict(crawl.other_truths),
    }
    (folder / REST).write_text(json.dumps(rest, indent=1), encoding="utf-8")
    crawl.problems.save(folder / PROBLEMS)


def load_crawl(folder: Path) -> Crawl:
    """Return a crawl written by :func:`save_crawl`, its table mapped from disk."""
    try:
        rest = json.loads((folder / REST).read_text(encoding="utf-8"))
        with pq.ParquetFile(folder / TABLE, memory_map=True) as file:  # quicker than read_table
            table = file.read()
        return Crawl(
            format=rest["format"],
            root=place(rest["root"]),
            table=table,
            class_names=tuple(rest["class_names"]),
            wnids=tuple(rest["wnids"]),
            text_fields=tuple(rest["text_fields"]),
            problems=Problems.load(folder / PROBLEMS),
            other_truths=rest.get("other_truths", {}),
        )
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{folder} holds no readable crawl: {error}") from error


def crawl_digest(crawl: Crawl) -> str:
    """Return a digest of a crawl's paths, labels, texts and names, but not of its pictures."""
    digest = hashlib.blake2b(digest_size=16)
    rest = [crawl.class_names, crawl.wnids, crawl.text_fields]
    digest.update(json.dumps(rest).encode())
    with pa.ipc.new_stream(pa.PythonFile(_Sink(digest), "w"), crawl.table.schema) as writer:
        for start in range(0, len(crawl), 65_536):
            block = crawl.table.slice(start, 65_536).combine_chunks()
            for batch in block.to_batches():  # taken, so its bytes do not depend on the slicing
                writer.write_batch(batch.take(pa.array(range(batch.num_rows), pa.int64())))
    return digest.hexdigest()


class _Sink:
    """A file whose bytes are only digested."""

    closed = False

    def __init__(self, digest: hashlib.blake2b) -> None:
        self.digest = digest

    def write(self, data: bytes) -> int:
        """Take bytes."""
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing."""
