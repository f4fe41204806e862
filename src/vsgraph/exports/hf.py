"""Hugging Face: Parquet files that ``load_dataset`` reads, with the classes by name."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vsgraph.common.checks import check_one_of
from vsgraph.exports.job import Job
from vsgraph.exports.names import free_names
from vsgraph.exports.placement import Mode, Picture, check_mode, pictures

PICTURE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
WHOLE = "train"  # the name of the one part if there is no split
GROUP = 100  # pictures of a row group, as on the hub
FILE_BYTES = 2**29  # of pictures; then the next file is begun


def write_hf(job: Job, *, mode: Mode = "link") -> None:
    """Write Parquet files as ``load_dataset(out)`` reads them, split if that is asked for.

    `label` is a ``ClassLabel``, null for a rejected image; several labels are a list, `labels`.
    With `mode` link, `image` is the absolute path of the picture; with copy, its bytes are in the
    file, as on the hub. Pictures in shards are always copied.
    """
    check_one_of("mode", mode, ("link", "copy"))
    check_mode(job, mode)
    (job.path / "data").mkdir()
    schema = _schema(job)
    files = {part: _Files(job, part, schema) for part in job.parts or (WHOLE,)}
    try:
        for picture in pictures(job, with_bytes=mode == "copy"):
            files[picture.entry.part or WHOLE].add(_row(job, picture, schema.names))
        for file in files.values():
            file.write()
    finally:
        for file in files.values():
            file.close()


class _Files:
    """The Parquet files of one part of a split, written a few pictures at a time."""

    def __init__(self, job: Job, part: str, schema: pa.Schema) -> None:
        self.job, self.part, self.schema = job, part, schema
        self.rows: list[dict[str, Any]] = []
        self.writer: pq.ParquetWriter | None = None
        self.n_files = self.n_bytes = 0

    def add(self, row: dict[str, Any]) -> None:
        """Add an image."""
        self.rows.append(row)
        self.n_bytes += len(row["image"]["bytes"] or b"")
        if len(self.rows) == GROUP:
            self.write()

    def write(self) -> None:
        """Write what was added since; a part without any image has a file without rows."""
        if not self.rows and self.n_files:
            return
        if self.writer is None:
            path = self.job.path / "data" / f"{self.part}-{self.n_files:05d}.parquet"
            self.writer = pq.ParquetWriter(path, self.schema)
            self.n_files += 1
        self.writer.write_table(pa.Table.from_pylist(self.rows, self.schema))
        self.rows = []
        if self.n_bytes >= FILE_BYTES:
            self.close()

    def close(self) -> None:
        """Close the file that is being written, if there is one."""
        if self.writer is not None:
            self.writer.close()
        self.writer, self.n_bytes = None, 0


def _row(job: Job, picture: Picture, names: list[str]) -> dict[str, Any]:
    """Return an image as a row of the table."""
    entry = picture.entry
    path = entry.image if picture.data else str(picture.path and picture.path.absolute())
    label = entry.classes if job.several else entry.classes[0] if entry.classes else None
    content = {"bytes": picture.data or None, "path": path}
    own: dict[str, Any] = {"image": content, names[1]: label}
    own |= {name: value for name, value in entry.columns.items() if name != "final_label"}
    own |= {"path": entry.image}
    rest = [*entry.text.values(), *entry.others.values()]
    return own | dict(zip(names[len(own) :], rest, strict=True))


def _schema(job: Job) -> pa.Schema:
    """Return the columns, with their types as ``datasets`` names them."""
    decided = job.decided(job.rows[:0]).schema
    label, kind = ("labels", pa.list_(pa.int64())) if job.several else ("label", pa.int64())
    fields = [("image", PICTURE), (label, kind)]
    fields += [(f.name, f.type) for f in decided if f.name not in {"image", "final_label"}]
    fields += [("path", pa.string())]
    from_crawl = [*job.crawl.text_fields, *job.crawl.other_columns]
    free = free_names(from_crawl, taken=[name for name, _ in fields])
    fields += [(free[name], pa.string()) for name in from_crawl]
    classes = {"names": list(job.class_names), "_type": "ClassLabel"}
    features = {name: _feature(kind) for name, kind in fields} | {
        "image": {"_type": "Image"}, label: [classes] if job.several else classes,
    }  # fmt: skip
    note = json.dumps({"info": {"features": features}})
    return pa.schema(fields, metadata={"huggingface": note})


def _feature(kind: pa.DataType) -> Any:  # noqa: ANN401
    """Return a type as ``datasets`` writes it.

    >>> _feature(pa.list_(pa.float64()))
    [{'dtype': 'float64', '_type': 'Value'}]
    """
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}
