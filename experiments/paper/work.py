"""The stages of the paper's experiments in one folder; what is done there is not done again."""

import dataclasses
import functools
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from study import Study
from training_job import Job
from vsgraph import linear_probe
from vsgraph.common.files import write_whole
from vsgraph.crawls import Crawl, read_crawl
from vsgraph.encoders import Embedding, embed_images, embed_texts, image_encoder, text_encoder
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.judge.noise import noise_rate
from vsgraph.meanings.crawl_senses import describe_crawl
from vsgraph.meanings.words import clean_text
from vsgraph.runs import Choices, Run, run
from vsgraph.training import Recipe, Start, Tested, judge_model

XLNET = "xlnet/xlnet-base-cased"
KINDS = {"p_c": "cnn", "p_g": "gnn", "p_f": "final"}
MOST_FORGOTTEN = 0.9


@dataclasses.dataclass(frozen=True, eq=False)
class Work:
    """An experiment's data, folder and choices.

    Models and corrections lie in the folder: ``pretrained``, ``co-teaching`` and ``p_c``, and in
    one named after the text encoder what depends on texts: ``run``, ``p_g``, ``p_f``, results.
    """

    study: Study
    root: Path
    out: Path
    imagenet: Path
    classes: Path | None = None
    text_encoder: str = XLNET
    raw_text: bool = False
    runtime: str = "auto"
    n_processes: int = 1
    forget_rate: float | None = None
    anyway: bool = False
    tell: Callable[[str], None] = print

    @property
    def by_text(self) -> Path:
        """The folder of what depends on the text encoder."""
        return self.out / (Path(self.text_encoder).name + "-raw" * self.raw_text)

    # --- data

    @functools.cached_property
    def all_classes(self) -> Path | None:
        """A list of all classes, where the data set has one; its order is the official one."""
        synsets = self.root / "info" / "synsets.txt"
        return synsets if synsets.exists() else None

    @functools.cached_property
    def class_list(self) -> Path | None:
        """The list of the study's classes: all, the one that was given, or a half that is drawn."""
        if not self.study.half or self.all_classes is None:
            return self.all_classes
        if self.classes is not None:
            return self.classes
        drawn = self.out / "classes.txt"
        if not drawn.exists():
            lines = self.all_classes.read_text(encoding="utf-8").splitlines()
            chosen = sorted(random.Random(0).sample(range(len(lines)), len(lines) // 2))  # noqa: S311
            self.out.mkdir(parents=True, exist_ok=True)
            write_whole(drawn, "".join(f"{lines[i]}\n" for i in chosen))
        return drawn

    def reading(self, part: Mapping[str, Any], *, all_classes: bool = False) -> dict[str, Any]:
        """Return how a part of the data is read."""
        classes = self.all_classes if all_classes else self.class_list
        return dict(part) | ({"classes": classes.resolve()} if classes else {})

    @functools.cached_property
    def crawl(self) -> Crawl:
        """What is trained on."""
        return read_crawl(self.root, **self.reading(self.study.train))

    @functools.cache  # noqa: B019  a command has one of it
    def test_set(self, name: str, *, all_classes: bool = False) -> Crawl:
        """Read what models are judged on; of all classes for the open set."""
        part = self.study.tests[name]
        options = self.reading(part, all_classes=all_classes)
        if part["format"] != "imagenet-val":
            return read_crawl(self.root, **options)
        if not self.imagenet.is_dir():
            raise InputError(f"{self.imagenet} is not there; say --imagenet FOLDER")
        if self.study.half and (self.imagenet / "0").is_dir():
            raise InputError(f"{self.imagenet}: name the folders of classes by wnid, not by number")
        return read_crawl(self.imagenet, **options)

    # --- stages

    @functools.cache  # noqa: B019
    def model(self, name: str) -> Path:
        """Return a trained model, trained now if it is not there."""
        if name == "pretrained":
            return self._train(name, self.study.start, self.study.recipe)
        if name == "co-teaching":
            rate = self.noise() if self.forget_rate is None else self.forget_rate
            recipe = dataclasses.replace(self.study.recipe, forget_rate=rate)
            return self._train(name, self.study.start, recipe)
        return self.finetuned(self.place(name), self.corrected().path, KINDS[name])

    def place(self, name: str) -> Path:
        """Return the folder of a model, there or not."""
        return (self.by_text if name in {"p_g", "p_f"} else self.out) / name

    def finetuned(self, place: Path, correction: Path, labels: str) -> Path:
        """Return the pretrained model fine-tuned on labels of a run or a correction (Eq. 9)."""
        start = Start(str(self.place("pretrained").resolve()))
        recipe = self.study.recipe.for_finetuning()
        return self._train(place, start, recipe, correction=str(correction), labels=labels)

    def _train(self, place: str | Path, start: Start, recipe: Recipe, **labels: str) -> Path:
        """Train, or find it done; the job is kept beside the model."""
        job = Job(
            crawl=str(self.root.resolve()), reading=self.reading(self.study.train),
            out=str(self.out / place), start=dataclasses.asdict(start),
            recipe=dataclasses.asdict(recipe), **labels,
        )  # fmt: skip
        job.save()
        self.tell(f"training {Path(job.out).relative_to(self.out)} ...")
        if n_epochs(Path(job.out)) < recipe.epochs and self.n_processes > 1:
            job.do_in(self.n_processes)
        return job.do(self.crawl)  # where it is done, this checks that it is the same training

    def texts(self) -> tuple[Path, Path]:
        """Encode the texts of images and the meanings of labels; return where they are."""
        encoder = text_encoder(self.text_encoder, runtime=self.runtime)
        clean: Callable[[str], str] = (lambda text: text) if self.raw_text else clean_text
        meanings = [one.description for one in describe_crawl(self.crawl) if one.chosen]
        for name, lines in (("texts", self.crawl.texts()), ("labels", meanings)):
            place = self.by_text / name
            embed_texts([clean(t) for t in lines], encoder, place, overwrite=True, progress=True)
        return self.by_text / "texts" / "vectors.npy", self.by_text / "labels" / "vectors.npy"

    @functools.cache  # noqa: B019
    def corrected(self) -> Run:
        """Correct the labels by features and p_c of the pretrained model."""
        model = self.model("pretrained")
        texts, labels = self.texts()
        choices = Choices(
            image_encoder=str(model), text_embeddings=texts, label_embeddings=labels,
            runtime=self.runtime,
        )  # fmt: skip
        return run(
            self.root, self.by_text / "run", settings=self.study.settings, choices=choices,
            reading=self.reading(self.study.train), with_report=False, anyway=self.anyway,
            progress=True, tell=self.tell,
        )  # fmt: skip

    def noise(self) -> float:
        """Return the share of wrong labels, which Co-teaching forgets: the paper prints none."""
        kept = self.out / "noise.json"
        if not kept.exists():
            labels = self.crawl.web_labels
            probs = linear_probe(
                self.corrected().features, labels, n_classes=len(self.crawl.class_names)
            )
            rate = round(min(noise_rate(probs, labels), MOST_FORGOTTEN), 3)
            write_whole(kept, json.dumps({"wrong labels, estimated": rate}) + "\n")
        return float(json.loads(kept.read_text())["wrong labels, estimated"])

    def predicted(self, model: Path, crawl: Crawl, name: str) -> Embedding:
        """Return features and probabilities of images by a model."""
        place = self.out / "tests" / "-".join(model.relative_to(self.out).parts) / name
        encoder = image_encoder(model, runtime=self.runtime)
        return embed_images(crawl, encoder, place, overwrite=True, progress=True)

    def tested(self, model: Path, name: str, *, open_set: bool = False) -> Tested:
        """Judge a model on a test set, as ``vsgraph test`` does."""
        crawl = self.test_set(name, all_classes=open_set)
        made = self.predicted(model, crawl, f"{name}-all" if open_set else name)
        return judge_model(
            Checkpoint.load(model), np.asarray(made.probs), crawl, with_unknown=open_set
        )


def n_epochs(model: Path) -> int:
    """Return how many epochs of a training are done."""
    history = model / "metrics.jsonl"
    return len(history.read_text().splitlines()) if history.exists() else 0
