"""The predictions of a trained model, for a whole crawl or for a few files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vsgraph.common.files import write_whole
from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.problems import one_line
from vsgraph.encoders import Embedding, embed_images, encode_pictures, image_encoder
from vsgraph.encoders.sources.checkpoints import Checkpoint


def predict(
    model: Path,
    crawl: Crawl,
    out: Path,
    *,
    runtime: str = "auto",
    precision: str = "auto",
    overwrite: bool = False,
    progress: bool = False,
) -> Embedding:
    """Write features, probabilities and the likeliest class of a crawl's images by a trained model.

    `out` gets ``vectors.npy``, (n_images, n_dims), and ``probs.npy``, (n_images, n_classes), with
    zeros if a picture cannot be read, and ``labels.csv``. The options are those of
    :func:`~vsgraph.encoders.image_encoder` and :func:`~vsgraph.encoders.embed_images`.
    """
    class_names = Checkpoint.load(model).class_names
    encoder = image_encoder(model, runtime=runtime, precision=precision)
    embedding = embed_images(crawl, encoder, out, overwrite=overwrite, progress=progress)
    table = label_table(crawl.table["image"].to_pylist(), embedding.probs, class_names)
    write_whole(out / "labels.csv", table)
    return embedding


def label_table(images: Sequence[str], probs: Any, class_names: Sequence[str]) -> str:  # noqa: ANN401
    r"""Return the likeliest class of each image as CSV.

    >>> label_table(["a.jpg", "b.jpg"], np.array([[0.25, 0.75], [0, 0]]), ["ant", "bee"])
    'image,label,probability\na.jpg,bee,0.7500\nb.jpg,,\n'
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["image", "label", "probability"])
    for image, row in zip(images, probs, strict=True):
        best = int(np.argmax(row))
        known = row[best] > 0
        name, probability = (class_names[best], f"{row[best]:.4f}") if known else ("", "")
        table.writerow([image, name, probability])
    return text.getvalue()


class Classified(NamedTuple):
    """The likeliest classes of one picture."""

    path: Path
    classes: dict[str, float]  # probabilities, the highest first; none if it cannot be read
    problem: str  # why it cannot be read, or ''

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.classes.items())
        return one_line(f"{self.path}: {shares or self.problem}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        problem = {"problem": self.problem} if self.problem else {}
        return {"image": str(self.path), "classes": self.classes, **problem}


def classify(model: Path, paths: Sequence[Path], *, top: int = 3) -> list[Classified]:
    """Return the `top` likeliest classes of each picture by a trained model.

    `paths` are files, and folders of files, whose files are read in order.
    """
    class_names = Checkpoint.load(model).class_names
    files: list[Path] = []
    for path in paths:
        files += sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]
    encoded, problems = encode_pictures(image_encoder(model), files)
    classified = []
    for file, probs, problem in zip(files, np.asarray(encoded.probs), problems, strict=True):
        best = [] if problem else np.argsort(-probs, kind="stable")[:top].tolist()
        classes = {class_names[i]: round(float(probs[i]), 4) for i in best}
        classified.append(Classified(file, classes, problem))
    return classified
