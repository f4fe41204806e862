"""A crawl kept on disk as it was read: Parquet and JSON."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import Problems
from vsgraph.errors import InputError

TABLE, REST, PROBLEMS = "crawl.parquet", "crawl.json", "problems.tsv"


def save_crawl(crawl: Crawl, folder: Path) -> None:
    """Write a crawl's table and what goes with it into a folder; pictures stay where they are.

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
    """Return a crawl that :func:`save_crawl` wrote, its table mapped from disk."""
    try:
        rest = json.loads((folder / REST).read_text(encoding="utf-8"))
        table = pq.read_table(folder / TABLE, memory_map=True)
        return Crawl(
            format=rest["format"],
            root=Path(rest["root"]),
            table=table,
            class_names=tuple(rest["class_names"]),
            wnids=tuple(rest["wnids"]),
            text_fields=tuple(rest["text_fields"]),
            problems=Problems.load(folder / PROBLEMS),
            other_truths=rest.get("other_truths", {}),
        )
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{folder} holds no crawl that can be read: {error}") from error


def crawl_digest(crawl: Crawl) -> str:
    """Return a digest of what a crawl says: paths, labels, texts, names; not of its pictures.

    >>> table = pa.table({"image": ["a.jpg"], "web_labels": pa.array([0], pa.int32())})
    >>> one, two = (Crawl("", Path(), table, (name,)) for name in ("bat", "owl"))
    >>> crawl_digest(one) == crawl_digest(one), crawl_digest(one) == crawl_digest(two)
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    rest = [crawl.class_names, crawl.wnids, crawl.text_fields]
    digest.update(json.dumps(rest).encode())
    sink = _Digesting(digest)
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), crawl.table.schema) as writer:
        for start in range(0, len(crawl), 65_536):
            block = crawl.table.slice(start, 65_536).combine_chunks()
            writer.write_table(pa.Table.from_batches([_compact(b) for b in block.to_batches()]))
    return digest.hexdigest()


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose bytes do not depend on what it was cut from."""
    return batch.take(pa.array(range(batch.num_rows), pa.int64()))


class _Digesting:
    """A file whose bytes are only digested."""

    closed = False

    def __init__(self, digest: hashlib.blake2b) -> None:
        self.digest = digest

    def write(self, data: bytes) -> int:
        """Take bytes."""
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Have nothing to do."""
