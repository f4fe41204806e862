"""A correction of twelve images and its crawl, for the tests of exports."""

import dataclasses
import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
from PIL import Image

import vsgraph
from vsgraph.crawls.crawl import Crawl
from vsgraph.result.parts import Decision, Rule

N = 12
REJECTED, RELABELED, LOST = 5, 7, 9
NAMES = ("owl", "bat", "crane")
FILES = {"csv", "parquet", "coco"}
SINGLE = {"imagefolder", "imglist"}
WITH_PICTURES = ("imagefolder", "hf", "webdataset", "coco", "fiftyone", "labelstudio")


def make_correction(*, names=NAMES, several=False):
    """Twelve images of three classes in turn; one is rejected, one relabeled to class 0."""
    random = np.random.default_rng(0)
    kinds = np.tile(np.eye(3), (N // 3, 1))
    features = np.abs(kinds + 0.2 * random.uniform(size=kinds.shape))
    web = np.arange(N) % 3
    made = vsgraph.correct(
        features,
        kinds,
        np.eye(3),
        np.eye(3, dtype=bool)[web] if several else web,
        class_names=names,
        settings=vsgraph.Settings(n_neighbors=3, anchors_per_class=2),
    )
    final, decisions, rules = made.final_labels.copy(), made.decisions.copy(), made.rules.copy()
    final[REJECTED] = False if several else -1
    final[RELABELED] = [True, True, False] if several else 0
    decisions[[REJECTED, RELABELED]] = Decision.REJECT, Decision.RELABEL
    rules[[REJECTED, RELABELED]] = Rule.OPEN_SET, Rule.CONFIDENT
    return dataclasses.replace(made, final_labels=final, decisions=decisions, rules=rules)


def make_crawl(folder, *, names=NAMES, several=False, images=None, **columns):
    """Pictures in files, each of its own size; the one of row `LOST` is a web page."""
    folder.mkdir(parents=True, exist_ok=True)
    images = images or [f"q{i % 3}/{i}.{'png' if i % 2 else 'jpg'}" for i in range(N)]
    for i, name in enumerate(images):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = "PNG" if path.suffix == ".png" else "JPEG"
        Image.new("RGB", (8 + i, 6), (20 * i, 0, 0)).save(path, kind)
    (folder / images[LOST]).write_bytes(b"<html>404</html>")
    web = [i % 3 for i in range(N)]
    labels = pa.array([[c] for c in web], pa.list_(pa.int32())) if several else None
    table = pa.table(
        {
            "image": images,
            "web_labels": pa.array(web, pa.int32()) if labels is None else labels,
            "title": [f"<b>title</b> & \"{i}\", 'so'" for i in range(N)],
            "tags": [None if i == 0 else f"tag{i}" for i in range(N)],
            **columns,
        }
    )
    return Crawl("test", folder, table, names, text_fields=("title", "tags"))


def in_shards(crawl, folder):
    """The same crawl with its pictures in a tar file."""
    folder.mkdir()
    places = []
    with tarfile.open(folder / "a.tar", "w") as tar:
        for name, data in zip(crawl.table["image"].to_pylist(), crawl.read_images(), strict=True):
            header = tarfile.TarInfo(name)
            header.size = len(data)
            places.append((tar.offset + 512, len(data)))
            tar.addfile(header, io.BytesIO(data))
    table = crawl.table.append_column("shard", pa.array(["a.tar"] * N))
    table = table.append_column("offset", pa.array([place[0] for place in places]))
    table = table.append_column("size", pa.array([place[1] for place in places]))
    return dataclasses.replace(crawl, root=folder, table=table)
