"""The table of a run's stages, from the crawl to the report, with Algorithm 1 in the middle.

It is used to run, resume, plan and estimate: what each stage needs, which settings it reads, what
else its result depends on, and its function.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vsgraph.common.files import save_arrays
from vsgraph.common.version import __version__
from vsgraph.crawls import crawl_digest, save_crawl
from vsgraph.errors import InputError
from vsgraph.judge.since import CSV, changed_since
from vsgraph.meanings.crawl_words import mentions_in, spoken_name
from vsgraph.meanings.prompts import prompts_of
from vsgraph.meanings.table import read_meanings, read_unwanted
from vsgraph.meanings.unwanted import unwanted_title
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method import algorithm
from vsgraph.method.algorithm import own_settings
from vsgraph.method.given import Graph
from vsgraph.method.probe import linear_probe
from vsgraph.pictures.measures import VERSION as MEASURES_VERSION
from vsgraph.result.parts import UNANSWERED, count_decisions
from vsgraph.runs.content_stages import encode_pictures, encode_texts, measure, screen_pictures
from vsgraph.runs.folder import file_key, key_of
from vsgraph.runs.former import version_of
from vsgraph.runs.job import RunJob
from vsgraph.runs.meaning_table import knows_words, meaning_source, write_table
from vsgraph.runs.outputs import TABLE
from vsgraph.runs.run import Run
from vsgraph.runs.stage_files import DIGESTS, FILES, save_result

FEW = 20  # images; a probe learns nothing from fewer
PROVIDERS = {  # the stage that gives each array of Algorithm 1, if the user does not
    "features": "pictures",
    "text_embeddings": "texts",
    "label_embeddings": "descriptions",
    "web_labels": "crawl",
    "sources": "crawl",
    "cnn_probs": "probe",
    "words": "words",
    "prompt_embeddings": "prompts",
    "answers": "answers",
    "copies": "screening",
}


@dataclasses.dataclass(frozen=True)
class RunStage:
    """One stage of a run."""

    name: str
    needs: tuple[str, ...]  # stages, or arrays of a stage or of the user
    make: Callable[[RunJob, Path], Mapping[str, Any]]  # fills a folder, returns facts to record
    identity: Callable[[RunJob], Any]  # what else the result depends on: settings, encoders, files
    is_wanted: Callable[[RunJob], bool] = lambda _: True  # whether this run has the stage at all
    is_kept: bool = True  # whether the result is written to disk
    in_place: bool = False  # whether `make` completes the final folder itself, and can resume in it


def keep_crawl(job: RunJob, folder: Path) -> dict[str, Any]:
    """Keep the crawl as it was read."""
    save_crawl(job.crawl, folder)
    return {"images": len(job.crawl), "problems": dict(job.crawl.problems.counts)}


def check_meanings(job: RunJob) -> None:
    """Raise an error if meanings are needed but cannot be found or read; no encoder is opened."""
    plan_keys(job, ("crawl", "meanings"))
    if "meanings" not in job.keys or job.is_kept("meanings"):
        return
    source, _ = meaning_source(job)
    if source is None:
        WordNet.open()
    else:
        read_meanings(source, job.crawl.class_names)


def encode_meanings(job: RunJob, folder: Path) -> dict[str, Any]:
    """Encode the meanings."""
    meanings = job.outputs.meanings(job.crawl.class_names)
    vectors = job.text_encoder.encode([meaning.description for meaning in meanings])
    save_arrays(folder, {"vectors": vectors})
    return {}


def encode_prompts(job: RunJob, folder: Path) -> dict[str, Any]:
    """Encode the meanings by the text part of the image encoder, senses not meant included."""
    encoder, table = job.picture_text_encoder, job.outputs["meanings"] / TABLE
    senses = [*job.outputs.meanings(job.crawl.class_names), *read_unwanted(table)]
    captions = [prompts_of(sense) for sense in senses]
    vectors = [encoder.encode(lines).mean(axis=0) for lines in captions] if encoder else []
    save_arrays(folder, {"vectors": np.stack(vectors)})
    return {"captions": sum(map(len, captions))}


def _has_prompts(job: RunJob) -> bool:
    return "meanings" in job.keys and job.picture_text_encoder is not None


def read_words(job: RunJob, folder: Path) -> dict[str, Any]:
    """Find which texts mention the classes by name, and the senses that are not meant."""
    names = job.crawl.class_names
    meanings = job.outputs.meanings(names)
    unwanted = read_unwanted(job.outputs["meanings"] / TABLE)
    name_rows, word_rows = mentions_in(job.crawl, meanings, unwanted)
    spoken = [meaning.description.partition(":")[0] for meaning in unwanted]
    called = map(spoken_name, meanings)
    vectors = job.text_encoder.encode([*called, *spoken, *(m.description for m in unwanted)])
    titles = list(map(unwanted_title, unwanted))
    own = np.array([names.index(meaning.class_name) for meaning in unwanted], np.intp)
    save_result(
        {
            "name_embeddings": vectors[: len(names) + len(unwanted)],
            "unwanted_embeddings": vectors[len(names) + len(unwanted) :],
            "unwanted_of": own, "names": name_rows, "words": word_rows,
        },
        folder, unwanted_names=titles,
    )  # fmt: skip
    return {"unwanted": titles}


def ask_probe(job: RunJob, folder: Path) -> dict[str, Any]:
    """Train a linear probe on the features, for probabilities out of fold."""
    scores = linear_probe(
        job.outputs.features(), job.crawl.web_labels, n_classes=len(job.crawl.class_names),
        n_kept=job.settings.kept_scores, progress=job.progress,
    )  # fmt: skip
    save_arrays(folder, scores.parts())
    return {}


def _has_probe(job: RunJob) -> bool:
    choices = job.choices
    others = choices.cnn_probs is not None or choices.is_trained
    return choices.probe and not others and len(job.crawl) >= FEW


def match_answers(job: RunJob, folder: Path) -> dict[str, Any]:
    """Keep what people say of each image, so that later answers do not change this result."""
    keys = job.outputs.picture_keys(job.crawl)
    labels = job.answers.labels(keys, job.crawl.class_names)
    for line in job.answers.lines(keys, job.crawl.class_names):
        job.tell(line)
    save_arrays(folder, {"labels": labels})
    return {"answered": int((labels != UNANSWERED).sum())}


def make_report(job: RunJob, folder: Path) -> dict[str, Any]:
    """Write the report's pages."""
    run = Run(job.folder, job.keys, job.choices, job.settings, job.crawl.root, job.answers)
    run.write_report(folder, heading=job.folder.asked["crawl"]["name"], progress=job.progress)
    return {}


def _method_stage(stage: algorithm.Stage) -> RunStage:
    """Return a stage of Algorithm 1 as a stage of a run."""

    def make(job: RunJob, folder: Path) -> dict[str, Any]:
        result = job.result(stage.name)
        FILES[stage.name].save(result, folder)
        if stage.name == "graph":
            return _record_graph(job, folder, result)
        if stage.name == "network" and job.former and job.start_weights is not None:
            return {"started_from": job.former.outputs.keys["network"]}
        if stage.name == "decisions":
            unreadable = job.result("scores").unreadable
            return {"counts": count_decisions(result.decisions, unreadable)}
        return {}

    return RunStage(
        stage.name,
        needs=(*stage.reads, *stage.needs),
        make=make,
        identity=lambda job: [__version__, own_settings(stage.name, job.settings)],
        is_kept=stage.name in FILES,
    )


def _record_graph(job: RunJob, folder: Path, graph: Graph) -> dict[str, Any]:
    """Keep what tells rows apart, for the next result; say whether this one is an update."""
    if job.choices.graph is None:
        save_arrays(folder, {Path(DIGESTS).stem: job.digests})
    if graph.n_searched is None or job.former is None:
        return {"recall": graph.recall}
    job.tell(
        f"neighbors of {graph.n_searched:,} of {len(job.crawl):,} images were searched for; those "
        "of the others are known from the last result"
    )
    updated_from = job.former.outputs.keys["graph"]
    return {"recall": graph.recall, "updated_from": updated_from, "searched": graph.n_searched}


def compare_results(job: RunJob, folder: Path) -> dict[str, Any]:
    """Keep what changed since the last result."""
    former = job.former
    if former is None:
        raise InputError(f"{job.folder.path} has no result to compare with")
    since = changed_since(version_of(former.outputs), version_of(job.outputs))
    since.save(folder)
    job.tell(str(since))
    if any(since.counts.values()):
        job.tell(f"image by image: {job.outputs['since'] / CSV}")
    return {"compared_with": former.outputs.keys["decisions"], **since.counts}


def _compared_with(job: RunJob) -> str | None:
    """Return the key of the decisions that a result is compared with; None if with none.

    A result is compared with the one before, if that is of another list of images. One that stays
    as it is keeps its comparison.
    """
    before = job.folder.stages
    if "decisions" not in before:
        return None
    if before["decisions"]["key"] == job.keys["decisions"]:
        return before.get("since", {}).get("compared_with")
    same = all(before.get(n, {}).get("key") == job.keys.get(n) for n in ("crawl", "pictures"))
    return None if same or job.former is None else before["decisions"]["key"]


STAGES = (
    RunStage("crawl", needs=(), make=keep_crawl, identity=lambda job: crawl_digest(job.crawl)),
    RunStage(
        "pictures",
        needs=(),
        make=encode_pictures,
        identity=lambda job: [job.image_encoder.fingerprint, job.pictures_digest],
        is_wanted=lambda job: job.choices.features is None,
        in_place=True,
    ),
    RunStage(
        "measures",
        needs=(),
        make=measure,
        identity=lambda job: [MEASURES_VERSION, job.pictures_digest],
        is_wanted=lambda job: job.crawl.has_pictures,
        in_place=True,
    ),
    RunStage(
        "texts",
        needs=("crawl",),
        make=encode_texts,
        identity=lambda job: job.text_encoder.fingerprint,
        is_wanted=lambda job: job.choices.text_embeddings is None,
        in_place=True,
    ),
    RunStage(
        "meanings",
        needs=("crawl",),
        make=write_table,
        identity=lambda job: [__version__, meaning_source(job)[1]],
        is_wanted=lambda job: job.choices.label_embeddings is None or bool(job.choices.meanings),
    ),
    RunStage(
        "descriptions",
        needs=("meanings",),
        make=encode_meanings,
        identity=lambda job: job.text_encoder.fingerprint,
        is_wanted=lambda job: job.choices.label_embeddings is None,
    ),
    RunStage(
        "prompts",
        needs=("meanings",),
        make=encode_prompts,
        identity=lambda job: [__version__, getattr(job.picture_text_encoder, "fingerprint", None)],
        is_wanted=_has_prompts,
    ),
    RunStage(
        "words",
        needs=("crawl", "meanings"),
        make=read_words,
        identity=lambda job: [__version__, job.text_encoder.fingerprint],
        is_wanted=knows_words,
    ),
    RunStage(
        "probe",
        needs=("features", "web_labels"),
        make=ask_probe,
        identity=lambda job: [__version__, job.settings.kept_scores],
        is_wanted=_has_probe,
    ),
    RunStage(
        "answers",
        needs=("crawl", "pictures"),
        make=match_answers,
        identity=lambda job: job.answers.digest(),
        is_wanted=lambda job: bool(job.answers.given) and not job.crawl.has_several_labels,
    ),
    *map(_method_stage, algorithm.STAGES[:1]),  # the graph
    RunStage(
        "screening",
        needs=("crawl", "measures", "graph"),
        make=screen_pictures,
        identity=lambda _: __version__,
    ),
    *map(_method_stage, algorithm.STAGES[1:]),
    RunStage(
        "since",
        needs=("crawl", "pictures", "decisions"),
        make=compare_results,
        identity=_compared_with,
        is_wanted=lambda job: _compared_with(job) is not None,
    ),
    RunStage(
        "report",
        needs=("crawl", "features", "meanings", "decisions", "screening", "since"),
        make=make_report,
        identity=lambda job: [__version__, job.answers.digest()],
        is_wanted=lambda job: job.crawl.has_pictures and "meanings" in job.keys,
        in_place=True,
    ),
)
NAMES = tuple(stage.name for stage in STAGES)


def plan_keys(job: RunJob, names: Collection[str] = NAMES) -> None:
    """Set the key of each stage of a run: a digest of all that its result depends on."""
    for stage in STAGES:
        if stage.name in names and stage.name not in job.keys and stage.is_wanted(job):
            needed = [_key_of_need(job, name) for name in stage.needs]
            again = job.folder.asked.get("again", {}).get(stage.name)
            job.keys[stage.name] = key_of(stage.name, stage.identity(job), needed, again)


def _key_of_need(job: RunJob, name: str) -> str:
    """Return the key of a stage, or of the file that the user gave in its place."""
    own = getattr(job.choices, name, None)
    if name in PROVIDERS and own is not None:
        return file_key(own)
    if name == "graph" and job.choices.graph is not None:
        return file_key(job.choices.graph)
    if name == "cnn_probs" and job.choices.is_trained:
        return job.keys["pictures"]
    return job.keys.get(PROVIDERS.get(name, name), "none")
