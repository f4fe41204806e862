"""Which encoder gives the best labels: ``python experiments/encoders.py FOLDER --write FILE``.

Encodes COCO-Web with each image and text encoder, corrects the labels with the defaults, and
rewrites the tables of docs/encoders.md. "Right" counts in-set photos / those of ambiguous queries.
Vectors are kept in the cache, so it goes on where it ended.
"""

import dataclasses
import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence, Sized
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import vsgraph
from coco_web_data import CocoWeb, read_coco_web, web_like
from encode import describe
from keeping import cache_folder
from pages import put
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders import (
    ImageEncoder,
    Lsa,
    TextEncoder,
    embed_images,
    embed_texts,
    image_encoder,
    text_encoder,
)
from vsgraph.encoders.embed import picture_samples
from vsgraph.meanings.words import clean_text

Array = NDArray[np.floating]
IMAGES = {
    "Lite0": {"name": "lite0"},
    "Lite0, int8": {"name": "lite0", "runtime": "openvino", "precision": "int8"},
    "Lite0, 192 px": {"name": "lite0", "size": 192},
    "Lite1": {"name": "lite1"},
    "Lite2": {"name": "lite2"},
}
SEEDS = (0, 1)
TIMED = 512


class Judge:
    """Encodes with any pair of encoders and judges the labels, each pair once."""

    def __init__(self, data: CocoWeb, root: Path, cache: Path) -> None:
        self.data = data
        self.cache = cache
        names = [str(path.relative_to(root)) for path in data.images]
        labels = pa.array(data.web_labels, pa.int32())
        table = pa.table({"image": names, "web_labels": labels})
        self.crawl = Crawl("COCO-Web", root, table, tuple(data.class_names))
        self.results_path = cache / f"results-{len(names)}.json"
        found = self.results_path.read_text() if self.results_path.exists() else "{}"
        self.results: dict[str, list[float]] = json.loads(found)

    def pictures(self, name: str) -> Array:
        """Return features of the photos."""
        folder = self.cache / f"images-{len(self.crawl)}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
        encoder = self.picture_encoder(name)
        made = embed_images(self.crawl, encoder, folder, overwrite=True, progress=True)
        return np.asarray(made.vectors, np.float32)

    def picture_encoder(self, name: str) -> ImageEncoder:
        """Return an image encoder."""
        options = dict(IMAGES[name])
        if options.get("precision") == "int8":
            options["samples"] = picture_samples(self.crawl, image_encoder("lite0"))
        return image_encoder(**options)

    def texts(self, name: str, encoder: TextEncoder, texts: Sequence[str]) -> Array:
        """Return vectors of texts."""
        folder = self.cache / f"texts-{len(texts)}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
        made = embed_texts(texts, encoder, folder, overwrite=True, dtype="float32", progress=True)
        return np.array(made.vectors)

    def judge(self, title: str, make: object) -> list[float]:
        """Return right labels, in percent: captions all, ambiguous, web-like all, ambiguous."""
        if title not in self.results:
            features, text, meaning = make()  # type: ignore[operator]
            graph = vsgraph.visual_graph(features, n_neighbors=vsgraph.Settings().n_neighbors)
            variants = [text, *(web_like(text, seed=seed) for seed in SEEDS)]
            shares = []
            for variant in variants:
                made = vsgraph.correct(
                    features, variant, meaning, self.data.web_labels, graph=graph
                )
                shares.append(self.data.right(made.final_probs.argmax(axis=1)))
            rest = np.mean(shares[1:], axis=0)
            self.results[title] = [100 * value for value in (*shares[0], *rest)]
            self.results_path.write_text(json.dumps(self.results, indent=1))
            click.echo(f"{title}: {self.results[title]}")
        return self.results[title]


def text_encoders(data: CocoWeb, mpnet: Path | None) -> dict[str, TextEncoder]:
    """Return the text encoders to compare."""
    found: dict[str, TextEncoder] = {"MiniLM": text_encoder()}
    if mpnet is not None:
        found["MPNet"] = text_encoder(mpnet)
    found["LSA"] = Lsa.fit([*data.texts, *describe(data.wnids)])
    return found


def pairs_table(judge: Judge, encoders: dict[str, TextEncoder]) -> list[str]:
    """Judge every pair."""
    meanings = describe(judge.data.wnids)
    lines = ["| pictures | texts | captions as they are | web-like text |", "|---|---|---|---|"]
    for image in IMAGES:
        for name, encoder in encoders.items():
            if "," in image and name != "MiniLM":
                continue

            def make(
                image: str = image, name: str = name, encoder: TextEncoder = encoder
            ) -> object:
                return (
                    judge.pictures(image),
                    judge.texts(name, encoder, judge.data.texts),
                    judge.texts(name, encoder, meanings),
                )

            lines.append(row([image, name], judge.judge(f"{image} + {name}", make)))
    return lines


def long_table(judge: Judge) -> list[str]:
    """Judge ways to read long pages: the photo's own text within sentences of other photos."""
    pages = long_pages(judge.data.texts)
    meanings = describe(judge.data.wnids)
    lines = ["| long pages, MiniLM | right | web-like text |", "|---|---|---|"]
    for tokens, way in ((64, "truncate"), (128, "truncate"), (256, "truncate"), (128, "chunk"),
                        (256, "chunk")):  # fmt: skip
        name = f"{way} {tokens}"

        def make(name: str = name, tokens: int = tokens, way: str = way) -> object:
            encoder = text_encoder(max_tokens=tokens, long_texts=way)
            return (
                judge.pictures("Lite0"),
                judge.texts(f"pages {name}", encoder, pages),
                judge.texts(f"pages {name}", encoder, meanings),
            )

        lines.append(row([name], judge.judge(f"pages {name}", make)))
    return lines


def long_pages(texts: Sequence[str], others: int = 12) -> list[str]:
    """Put each text at the start, in the middle or at the end of others', as on a web page."""
    random = np.random.default_rng(0)
    pages = []
    for text in texts:
        around = [texts[i] for i in random.integers(len(texts), size=others)]
        place = int(random.integers(others + 1))
        pages.append(". ".join([*around[:place], text, *around[place:]]))
    return pages


def cleaned_table(judge: Judge) -> list[str]:
    """Judge texts as they are and as ``vsgraph.meanings.words.clean_text`` leaves them."""
    data = judge.data
    meanings = describe(data.wnids)
    cleaned = [clean_text(text) for text in data.texts]
    lines = ["| texts | encoder | captions | web-like text |", "|---|---|---|---|"]
    for kind, texts, said in (
        ("as they are", data.texts, meanings),
        ("cleaned", cleaned, [clean_text(text) for text in meanings]),
    ):
        for name in ("MiniLM", "LSA"):

            def make(name: str = name, texts: list[str] = texts, said: list[str] = said,
                     kind: str = kind) -> object:  # fmt: skip
                encoder = text_encoder() if name == "MiniLM" else Lsa.fit([*texts, *said])
                return (
                    judge.pictures("Lite0"),
                    judge.texts(f"{name} {kind}", encoder, texts),
                    judge.texts(f"{name} {kind}", encoder, said),
                )

            lines.append(row([kind, name], judge.judge(f"{kind} + {name}", make)))
    return lines


def speed_table(judge: Judge, encoders: dict[str, TextEncoder]) -> list[str]:
    """Time encoders alone, files read and vectors written; a few to warm up do not count."""
    lines = ["| encoder | a second |", "|---|---|"]
    crawl = judge.crawl
    few = [
        dataclasses.replace(crawl, table=crawl.table.slice(*part))
        for part in ((0, 64), (64, TIMED))
    ]
    for name in IMAGES:
        rate = per_second(embed_images, judge.picture_encoder(name), few)
        lines.append(f"| {name} | {rate:.0f} photos |")
    texts = [judge.data.texts[:64], judge.data.texts[64 : 64 + TIMED]]
    for name, encoder in encoders.items():
        lines.append(f"| {name} | {per_second(embed_texts, encoder, texts):.0f} texts |")
    return lines


def per_second(embed: Callable[..., object], encoder: object, parts: Sequence[Sized]) -> float:
    """Embed parts one after the other, and return how many of the last a second takes."""
    seconds = 0.0
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            embed(part, encoder, Path(folder) / "made")
            seconds = time.perf_counter() - started
    return len(parts[-1]) / seconds


def row(cells: Sequence[str], right: Sequence[float]) -> str:
    """Return a line of a table."""
    shares = [f"{right[0]:.1f} / {right[1]:.1f}", f"{right[2]:.1f} / {right[3]:.1f}"]
    return "| " + " | ".join([*cells, *shares]) + " |"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--every", default=1, show_default=True, help="Use every so many-th photo only.")
@click.option("--mpnet", type=click.Path(exists=True, path_type=Path), help="Its folder.")
@click.option(
    "--only", type=click.Choice(["pairs", "speed", "long", "cleaned"]), help="One table only."
)
@click.option("--write", type=click.Path(path_type=Path), help="Rewrite the tables of this file.")
def main(
    folder: Path, every: int, mpnet: Path | None, only: str | None, write: Path | None
) -> None:
    """Judge encoders on COCO-Web in FOLDER."""
    data = read_coco_web(folder, every=every)
    cache = cache_folder() / "encoders"
    cache.mkdir(parents=True, exist_ok=True)
    judge = Judge(data, folder, cache)
    tables = {
        "pairs": lambda: pairs_table(judge, text_encoders(data, mpnet)),
        "speed": lambda: speed_table(judge, text_encoders(data, mpnet)),
        "long": lambda: long_table(judge),
        "cleaned": lambda: cleaned_table(judge),
    }
    for name in [only] if only else tables:
        lines = tables[name]()
        click.echo("\n".join(["", name, *lines]))
        if write and lines:
            write.write_text(put(write.read_text(encoding="utf-8"), name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
