"""What a method says of every photo, and how good that is."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coco_web_data import CocoWeb
from trials import spread
from vsgraph.common.formatting import markdown_table
from vsgraph.judge.metrics import auroc, calibration, precision_at

Array = NDArray[np.floating]
KEPT = (0.5, 0.7, 0.9)
HEAD = ["labels", "right, %", "wrong labels found, AUROC", "right, % of the surest 50 / 70 / 90 %",
        "calibration error"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Answer:
    """Labels, how sure each is, and `quality`: high where the photo's web label is right."""

    labels: NDArray[np.intp]
    confidence: Array | None = None
    quality: Array | None = None
    probable: bool = True  # confidence is meant as a probability


def by_probs(
    probs: Array, own: tuple[NDArray[np.intp], NDArray[np.intp]], *, probable: bool = True
) -> Answer:
    """Take the likeliest labels; the web label is as good as its score."""
    return Answer(probs.argmax(axis=1), probs.max(axis=1), probs[own], probable)


def judge(answer: Answer, data: CocoWeb) -> dict[str, Any]:
    """Measure an answer. Only "right" leaves out photos of none of the classes."""
    right, ambiguous = data.right(answer.labels)
    hit = data.truth[np.arange(len(answer.labels)), answer.labels]
    found: dict[str, Any] = {"right": right, "ambiguous": ambiguous}
    if answer.quality is not None:
        found["auroc"] = auroc(answer.quality, data.clean)
    if answer.confidence is not None:
        found["kept"] = [precision_at(answer.confidence, hit, kept=share) for share in KEPT]
        if answer.probable:
            found["error"] = calibration(np.minimum(answer.confidence, 1), hit).error
    return found


def table(trials: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return a row a method, means and deviations over the trials."""
    rows = []
    for name in trials[0]:
        found = [trial[name] for trial in trials]
        kept = [spread([_item(f, "kept", i) for f in found]) for i in range(len(KEPT))]
        rows.append([
            name,
            right_cell(found),
            spread([f.get("auroc") for f in found], digits=3, scale=1),
            "-" if "-" in kept else " / ".join(kept),
            spread([f.get("error") for f in found], digits=3, scale=1),
        ])  # fmt: skip
    return markdown_table(HEAD, rows).splitlines()


def right_cell(found: Sequence[Mapping[str, Any]]) -> str:
    """Print right labels: all in-set photos / those of ambiguous queries."""
    return " / ".join(spread([f[key] for f in found]) for key in ("right", "ambiguous"))


def _item(found: Mapping[str, Any], key: str, place: int) -> float | None:
    return found[key][place] if key in found else None


def left(
    labels: NDArray[np.intp], removed: NDArray[np.bool_], data: CocoWeb
) -> dict[str, float | None]:
    """Say what is left when photos are removed, and how right the labels of that are."""
    hit = data.truth[np.arange(len(labels)), np.maximum(labels, 0)]
    return {
        "left": float((~removed).mean()),
        "right": float(hit[~removed].mean()),
        "of_wrong": float(removed[~data.clean].mean()),
        "of_right": float(removed[data.clean].mean()),
    }


def left_table(trials: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return a row a method, means and deviations over the trials."""
    head = ["data", "photos left, %", "labels right, % of those left",
            "removed, % of wrong web labels", "removed, % of right web labels"]  # fmt: skip
    rows = [
        [name, *(spread([trial[name][key] for trial in trials]) for key in trials[0][name])]
        for name in trials[0]
    ]
    return markdown_table(head, rows).splitlines()
