"""Open set: half of the classes are unknown, and their photos come under labels of the others.

The seed draws 18 classes to know. Each other class is paired with one of them, as the second sense
of its query, and half of the photos with its web label stay in the crawl under the paired label;
the rest leave. The truth is what a photo shows of the known classes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vsgraph
from labels_with_text import PAPER_50, PRINTED
from trials import TEXTS, Trial, spread
from vsgraph.common.formatting import markdown_table
from vsgraph.judge.metrics import auroc, count_classes, open_set

KINDS = TEXTS
KEPT = 0.5  # of the photos of unknown classes


@dataclasses.dataclass(frozen=True)
class Crawl:
    """The photos that are left, with labels of the known classes."""

    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    truth: NDArray[np.bool_]
    known: NDArray[np.intp]


def hide_half(trial: Trial) -> Crawl:
    """Make half of the classes unknown."""
    random = np.random.default_rng(trial.seed)
    web, n_classes = trial.data.web_labels, len(trial.meaning)
    order = random.permutation(n_classes)
    known, unknown = np.sort(order[: n_classes // 2]), order[n_classes // 2 :]
    number = np.full(n_classes, -1)
    number[known] = np.arange(len(known))
    number[unknown] = random.permutation(len(unknown)) % len(known)
    stays = np.isin(web, known) | (random.random(len(web)) < KEPT)
    rows = np.flatnonzero(stays)
    return Crawl(rows, number[web[rows]], trial.data.truth[np.ix_(rows, known)], known)


def run(trial: Trial) -> dict[str, Any]:
    """Judge scores at the paper's threshold, and our decisions."""
    crawl = hide_half(trial)
    rows, meaning = crawl.rows, trial.meaning[crawl.known]
    features, n_classes = trial.features[rows], len(crawl.known)
    graph = vsgraph.visual_graph(features, n_neighbors=5)
    probe = np.asarray(
        vsgraph.linear_probe(
            features, crawl.labels, n_classes=n_classes, n_kept=n_classes, random_state=trial.seed
        )
    )

    def correct(settings: vsgraph.Settings) -> vsgraph.Correction:
        return vsgraph.correct(
            features, trial.text[rows], meaning, crawl.labels, probe,
            graph=graph, settings=settings,
        )  # fmt: skip

    printed, released = correct(PRINTED), correct(PAPER_50)
    default = correct(vsgraph.Settings())
    scores = {
        "p_c, cross-validated": probe,
        "p_g printed, m = 10": printed.gnn_probs,
        "p_f printed, m = 10": printed.final_probs,
        "p_g released, m = 50": released.gnn_probs,
        "p_f released, m = 50": released.final_probs,
        "vsgraph default, p_g": default.gnn_probs,
        "vsgraph default, likeliest label": default.final_probs,
    }
    found = {name: measure(np.asarray(table), crawl.truth) for name, table in scores.items()}
    web = np.eye(n_classes, dtype=bool)[crawl.labels]
    final = default.final_labels[:, None] == np.arange(n_classes)
    return {
        "web labels": given(web, crawl.truth),
        **found,
        "**vsgraph default, decisions**": given(final, crawl.truth),
        "unknown": float((~crawl.truth.any(axis=1)).mean()),
    }


def measure(scores: NDArray[np.floating], truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the paper's measures in both readings, and what becomes of unknown photos."""
    inside, best = truth.any(axis=1), scores.max(axis=1)
    found: dict[str, Any] = {}
    for reading in ("highest", "every"):
        counts = open_set(scores, truth, reading=reading)  # type: ignore[arg-type]
        found[reading] = [counts.c_p, counts.c_r, counts.c_f1]
    return found | {"silent": (best <= 0.2)[~inside].mean(), "auroc": auroc(best, inside)}


def given(labels: NDArray[np.bool_], truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the same of labels that were given."""
    counts, inside = count_classes(labels, truth), truth.any(axis=1)
    nothing = ~labels.any(axis=1)
    return {"highest": [counts.c_p, counts.c_r, counts.c_f1], "silent": nothing[~inside].mean()}


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return a table for each kind of text."""
    head = ["labels", "highest: C-P / C-R", "C-F1", "every: C-P / C-R", "C-F1",
            "unknown photos left without a label, %", "known from unknown, AUROC"]  # fmt: skip
    parts = {}
    for kind, trials in found.items():
        names = [name for name in trials[0] if name != "unknown"]
        rows = [[name, *_cells([trial[name] for trial in trials])] for name in names]
        share = spread([trial["unknown"] for trial in trials])
        parts[f"open set, {kind}"] = [
            *markdown_table(head, rows).splitlines(),
            "",
            f"{share} % of the photos show none of the known classes.",
        ]
    return parts


def _cells(found: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = []
    for reading in ("highest", "every"):
        known = [f.get(reading, [None] * 3) for f in found]
        parts = [spread([values[i] for values in known]) for i in range(3)]
        cells += ["-" if parts[0] == "-" else " / ".join(parts[:2]), parts[2]]
    return [
        *cells,
        spread([f["silent"] for f in found]),
        spread([f.get("auroc") for f in found], digits=3, scale=1),
    ]
