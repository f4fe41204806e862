r"""Crawls that nothing was chosen on, made of the photos of two others.

    python experiments/other_crawls.py ../shared/data/coco-web ../shared/data/coco-web-b \
        --write docs/doubt.md

People marked all classes of both crawls in the photos of both, so these can be put together, taken
apart and found by other queries, and the truth is still known:

- *together*: all photos and classes of both;
- *ambiguous queries*: only the classes of which more than a tenth is wrong;
- *half wrong*: of each crawl all wrong labels, and as many right ones;
- *other queries*: words that neither crawl was found by stand in the last caption. Most of them
  say what is around the class ("kitchen" for oven), so more than half of the labels are wrong;
- *named as queries*: classes named by the word that found them, so that every text has the name;
- *ten classes*: drawn at random, twice.
"""

import argparse
import dataclasses
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from coco_web_data import AMBIGUOUS, CocoWeb, read_coco_web
from doubted_labels import judge, of, words_of
from keeping import commit
from named_as_queries import NAMES
from pages import publish
from trials import TEXTS, Trial, Vectors, load_vectors, spoil
from vsgraph import VSGraphWarning
from vsgraph.common.formatting import markdown_table

MOST = 300  # photos of a class found by other queries
OTHER_QUERIES = {
    "sports ball": "soccer|match", "tennis racket": "tennis|court", "baseball bat": "swing(ing)?",
    "handbag": "purses?|carrying", "bicycle": "rides?|riding", "car": "street|road|parking",
    "truck": "pickup|trailer|load(ed)?", "traffic light": "traffic|intersection",
    "fire hydrant": "hydrants?|red", "boat": "water|river|dock", "bird": "flying|perched",
    "airplane": "air|runway", "kite": "sky|string", "clock": "tower|time", "sink": "wash|bathroom",
    "toilet": "bathroom|stall", "oven": "stove|kitchen", "refrigerator": "kitchen|door",
    "microwave": "counter|appliances?", "wine glass": "wine|toast", "bottle": "beer|drink",
    "pizza": "slices?|cheese", "cake": "birthday|chocolate", "sandwich": "bread|burger|lunch",
    "orange": "fruits?|juice", "carrot": "salad|healthy", "skateboard": "tricks?|ramp",
    "snowboard": "snow|slope", "skis": "mountain|hill", "surfboard": "surf(ing|ers?)?|ocean",
    "dog": "pupp(y|ies)|pet", "cat": "kittens?|sleeping", "book": "reading|shelf",
    "laptop": "desk|office", "keyboard": "typing|keys", "mouse": "pad|desk",
    "teddy bear": "toys?|stuffed", "vase": "arrangement|bouquet", "potted plant": "garden|leaves",
    "bed": "room|bedroom|pillows?", "tv": "video|watching", "cell phone": "call|talking|texting",
    "chair": "sitting|seated", "dining table": "dinner|plates?", "train": "tracks?|station",
    "bus": "passengers?|decker", "horse": "rider|saddle", "cow": "field|farm|grazing",
    "elephant": "trunk|zoo", "giraffe": "tall|zoo",
}  # fmt: skip


QUERY_NAMES = {  # of classes of both crawls
    "A": NAMES,
    "B": {
        "dining table": "table", "toothbrush": "brush", "backpack": "pack", "tv": "screen",
        "laptop": "computer", "vase": "pot", "surfboard": "board",
        "bowl": "dish", "suitcase": "case", "motorcycle": "bike", "couch": "seat", "tie": "tie",
        "skis": "ski", "cell phone": "phone", "parking meter": "meter",
    },
}  # fmt: skip


def together(one: Vectors, other: Vectors, classes: list[str], truth: np.ndarray) -> Vectors:
    """Put two crawls together; `truth` is that of all photos and classes."""
    number = {name: i for i, name in enumerate(classes)}
    both = (other, one)  # what the first says of a class counts
    wnids = {n: w for v in both for n, w in zip(v.data.class_names, v.data.wnids, strict=True)}
    meaning = {n: m for v in both for n, m in zip(v.data.class_names, v.meaning, strict=True)}
    data = CocoWeb(
        images=one.data.images + other.data.images,
        texts=one.data.texts + other.data.texts,
        web_labels=np.array(
            [number[v.data.class_names[c]] for v in (one, other) for c in v.data.web_labels]
        ),
        query_hits=np.zeros_like(truth),
        class_names=classes,
        wnids=[wnids[name] for name in classes],
        truth=truth,
        ambiguous_queries=np.zeros(len(classes), bool),
    )
    return Vectors(
        _with_ambiguous(data),
        np.concatenate([one.features, other.features]),
        np.concatenate([one.text, other.text]),
        np.stack([meaning[name] for name in classes]),
    )


def _with_ambiguous(data: CocoWeb) -> CocoWeb:
    n_classes = len(data.class_names)
    wrong = np.bincount(data.web_labels, ~data.clean, n_classes)
    share = wrong / np.maximum(np.bincount(data.web_labels, minlength=n_classes), 1)
    return dataclasses.replace(data, ambiguous_queries=share > AMBIGUOUS)


def part(whole: Vectors, rows: np.ndarray, classes: np.ndarray) -> Vectors:
    """Return some photos and classes of a crawl."""
    data = whole.data.take(rows)
    place = np.full(len(data.class_names), -1)
    place[classes] = np.arange(len(classes))
    data = dataclasses.replace(
        data, web_labels=place[data.web_labels], truth=data.truth[:, classes],
        class_names=[data.class_names[c] for c in classes], wnids=[data.wnids[c] for c in classes],
        query_hits=data.query_hits[:, classes], ambiguous_queries=data.ambiguous_queries[classes],
    )  # fmt: skip
    return Vectors(
        _with_ambiguous(data), whole.features[rows], whole.text[rows], whole.meaning[classes]
    )


def named(whole: Vectors, names: dict[str, str]) -> Vectors:
    """Return the classes that have another name, under that name."""
    classes = np.array([whole.data.class_names.index(name) for name in names])
    chosen = part(whole, np.flatnonzero(np.isin(whole.data.web_labels, classes)), classes)
    data = dataclasses.replace(chosen.data, class_names=list(names.values()))
    return dataclasses.replace(chosen, data=data)


def half_wrong(whole: Vectors) -> Vectors:
    """Return all wrong labels of a crawl, and as many right ones."""
    clean, random = whole.data.clean, np.random.default_rng(5)
    right = random.permutation(np.flatnonzero(clean))[: int((~clean).sum())]
    rows = np.sort(np.concatenate([np.flatnonzero(~clean), right]))
    return part(whole, rows, np.arange(len(whole.data.class_names)))


def other_queries(whole: Vectors, captions: list[list[str]]) -> Vectors:
    """Label photos anew, by a query that stands in their last caption."""
    number = {name: i for i, name in enumerate(whole.data.class_names)}
    queries = [(number[n], re.compile(rf"\b({q})\b", re.IGNORECASE))
               for n, q in OTHER_QUERIES.items()]  # fmt: skip
    labels, random = np.full(len(captions), -1), np.random.default_rng(6)
    for row, said in enumerate(captions):
        hits = [number for number, query in queries if query.search(said[-1])]
        labels[row] = random.choice(hits) if hits else -1
    found = np.concatenate(
        [random.permutation(np.flatnonzero(labels == c))[:MOST] for c in range(len(number))]
    )
    rows = np.sort(found)
    data = dataclasses.replace(whole.data, web_labels=labels)
    return part(dataclasses.replace(whole, data=data), rows, np.unique(labels[rows]))


def crawls(folders: list[Path]) -> Iterator[tuple[str, Vectors]]:
    """Make the crawls."""
    one, other = (load_vectors(read_coco_web(folder)) for folder in folders)
    classes = list(dict.fromkeys(one.data.class_names + other.data.class_names))
    lines = [json.loads(line) for folder in folders
             for line in (folder / "metadata.jsonl").read_text().splitlines()]  # fmt: skip
    truth = np.array([[name in line["truth"] for name in classes] for line in lines])
    whole = together(one, other, classes, truth)
    every, labels = np.arange(len(classes)), whole.data.web_labels
    yield "together", whole
    some = np.flatnonzero(whole.data.ambiguous_queries)
    yield "ambiguous queries", part(whole, np.flatnonzero(np.isin(labels, some)), some)
    yield "half wrong, A", half_wrong(one)
    yield "half wrong, B", half_wrong(other)
    yield "named as queries, A", named(one, QUERY_NAMES["A"])
    yield "named as queries, B", named(other, QUERY_NAMES["B"])
    captions = [[line["title"], *line["description"]] for line in lines]
    yield "other queries", other_queries(whole, captions)
    random = np.random.default_rng(7)
    for name in ("ten classes", "ten other classes"):
        some = np.sort(random.permutation(every)[:10])
        yield name, part(whole, np.flatnonzero(np.isin(labels, some)), some)


def trial(vectors: Vectors, kind: str) -> Trial:
    """Return all photos of a crawl as a trial."""
    data = vectors.data
    text, texts = spoil(vectors.text, np.array(data.texts, object), seed=0, kind=kind)
    return Trial(
        0, kind, np.arange(len(text)), data, data, vectors.features, text, vectors.meaning, texts
    )


HEAD = [
    "crawl, text", "web labels right, %", "coverage at 90 / 95 % right", "AUROC, label right",
    "wrong web labels", "likeliest right, in set, %", "calibration error", "left, %",
    "right of those, %",
]  # fmt: skip


def row_of(name: str, vectors: Vectors, kind: str) -> list[str]:
    """Correct the labels of a crawl and judge them."""
    drawn = trial(vectors, kind)
    found = judge(of(drawn.correct(cnn=drawn.probe, words=words_of(drawn))), drawn)
    return [
        f"{name}, {kind}",
        f"{100 * vectors.data.clean.mean():.1f}",
        f"{found['coverage 90']:.2f} / {found['coverage 95']:.2f}",
        *(f"{found[key]:.3f}" for key in ("right", "wrong")),
        f"{100 * found['in set']:.1f}",
        f"{found['error']:.3f}",
        *(f"{100 * found[key]:.1f}" for key in ("left", "right of left")),
    ]


def main() -> None:
    """Write one row per crawl and text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs=2)
    parser.add_argument("--write", type=Path, help="page for the table")
    options = parser.parse_args()
    warnings.simplefilter("ignore", VSGraphWarning)
    rows = [row_of(name, v, kind) for name, v in crawls(options.folders) for kind in TEXTS]
    how = f"*`python experiments/other_crawls.py` at {commit()}.*"
    lines = [*markdown_table(HEAD, rows).splitlines(), "", how]
    publish({"other crawls": lines}, {}, options.write)


if __name__ == "__main__":
    main()
