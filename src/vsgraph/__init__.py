"""Correct the labels of images collected by search query, using the text that came with them.

Names are imported when they are first used, to keep ``import vsgraph`` fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from vsgraph.common.version import __version__

if TYPE_CHECKING:
    from vsgraph.crawls.crawl import Crawl
    from vsgraph.crawls.formats import read_crawl
    from vsgraph.errors import (
        FileError,
        InputError,
        MissingExtraError,
        TrainingError,
        VSGraphError,
        VSGraphWarning,
    )
    from vsgraph.exports import export
    from vsgraph.judge.comparison import Comparison, compare
    from vsgraph.judge.evaluation import Evaluation, evaluate
    from vsgraph.judge.sweep import sweep
    from vsgraph.judge.sweep_table import SweepTable
    from vsgraph.method.anchors import select_anchors, smooth_text, text_match
    from vsgraph.method.correct import correct
    from vsgraph.method.estimate import Estimate, estimate
    from vsgraph.method.evidence import Evidence, weigh_evidence
    from vsgraph.method.fusion import fuse, soft_labels
    from vsgraph.method.graph import adopt_graph, propagation_matrix, visual_graph
    from vsgraph.method.network import Network, label_by_graph
    from vsgraph.method.probe import linear_probe
    from vsgraph.neighbors.search import Neighbors, nearest_neighbors
    from vsgraph.result.correction import Correction
    from vsgraph.result.explanation import Explanation, Link
    from vsgraph.result.parts import Anchors, Decision, Decisions, Rule
    from vsgraph.result.scores import TopScores
    from vsgraph.runs.choices import Choices
    from vsgraph.runs.label import Labeled, label
    from vsgraph.runs.run import Run
    from vsgraph.runs.start import run
    from vsgraph.settings import Settings

_HOMES = {
    "crawls.crawl": "Crawl",
    "crawls.formats": "read_crawl",
    "errors": "FileError InputError MissingExtraError TrainingError VSGraphError VSGraphWarning",
    "exports": "export",
    "judge.comparison": "Comparison compare",
    "judge.evaluation": "Evaluation evaluate",
    "judge.sweep": "sweep",
    "judge.sweep_table": "SweepTable",
    "method.anchors": "select_anchors smooth_text text_match",
    "method.correct": "correct",
    "method.estimate": "Estimate estimate",
    "method.evidence": "Evidence weigh_evidence",
    "method.fusion": "fuse soft_labels",
    "method.graph": "adopt_graph propagation_matrix visual_graph",
    "method.network": "Network label_by_graph",
    "method.probe": "linear_probe",
    "neighbors.search": "Neighbors nearest_neighbors",
    "result.correction": "Correction",
    "result.explanation": "Explanation Link",
    "result.parts": "Anchors Decision Decisions Rule",
    "result.scores": "TopScores",
    "runs.choices": "Choices",
    "runs.label": "Labeled label",
    "runs.run": "Run",
    "runs.start": "run",
    "settings": "Settings",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Anchors",
    "Choices",
    "Comparison",
    "Correction",
    "Crawl",
    "Decision",
    "Decisions",
    "Estimate",
    "Evaluation",
    "Evidence",
    "Explanation",
    "FileError",
    "InputError",
    "Labeled",
    "Link",
    "MissingExtraError",
    "Neighbors",
    "Network",
    "Rule",
    "Run",
    "Settings",
    "SweepTable",
    "TopScores",
    "TrainingError",
    "VSGraphError",
    "VSGraphWarning",
    "__version__",
    "adopt_graph",
    "compare",
    "correct",
    "estimate",
    "evaluate",
    "export",
    "fuse",
    "label",
    "label_by_graph",
    "linear_probe",
    "nearest_neighbors",
    "propagation_matrix",
    "read_crawl",
    "run",
    "select_anchors",
    "smooth_text",
    "soft_labels",
    "sweep",
    "text_match",
    "visual_graph",
    "weigh_evidence",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a public name when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'vsgraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"vsgraph.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
