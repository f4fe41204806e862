"""What the answers of people changed beyond themselves, from one result of a run to the next."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.result.parts import UNANSWERED, Decision
from vsgraph.runs.job import RunJob
from vsgraph.runs.outputs import Outputs
from vsgraph.runs.stage_files import load_decisions

WORDS = {
    Decision.REJECT: "rejected",
    Decision.RELABEL: "relabeled",
    Decision.KEEP: "kept again",
}


def say_taught(job: RunJob, former: Mapping[str, Any] | None) -> str | None:
    """Return how answers changed the labels of other images; None if nothing can be said.

    `former` is the result before, from ``run.json``. Only a result that differs by nothing but its
    answers is compared.
    """
    if former is None or "decisions" not in former["stages"]:
        return None
    keys = {name: stage["key"] for name, stage in former["stages"].items()}
    before, now = Outputs(job.folder, keys, job.choices), job.outputs
    if keys["decisions"] == now.keys["decisions"] or not _differ_by_answers(job, former, keys):
        return None
    said = [_answers(outputs, len(job.crawl)) for outputs in (before, now)]
    n_new = int((said[0] != said[1]).sum())
    other = (said[0] == UNANSWERED) & (said[1] == UNANSWERED)
    old, new = (load_decisions(outputs["decisions"]) for outputs in (before, now))
    changed = other & ((old.final_labels != new.final_labels) | (old.decisions != new.decisions))
    counts = {word: int((changed & (new.decisions == code)).sum()) for code, word in WORDS.items()}
    listed = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    line = f"{n_new:,} answer{'s' * (n_new != 1)} changed {changed.sum():,} other labels"
    return f"{line}: {listed}" if listed else line


def _differ_by_answers(job: RunJob, former: Mapping[str, Any], keys: Mapping[str, str]) -> bool:
    """Return whether two results have the same crawl, vectors, meanings and settings."""
    names = ("crawl", "pictures", "texts", "descriptions", "words", "graph")
    settings = dataclasses.asdict(job.settings)
    return former["asked"]["settings"] == settings and all(
        keys.get(name) == job.keys.get(name) for name in names
    )


def _answers(outputs: Outputs, n_images: int) -> NDArray[Any]:
    """Return the answers that a result was made with, (n_images,)."""
    given = outputs.answers()
    return np.full(n_images, UNANSWERED) if given is None else given
