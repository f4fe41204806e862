"""Correct the labels of images collected by search query, using the text that came with them."""

from vsgraph.anchors import Anchors, select_anchors, smooth_text, text_match
from vsgraph.comparison import Comparison, compare
from vsgraph.correct import correct
from vsgraph.correction import Correction
from vsgraph.decisions import Decision, Decisions, Rule, decide
from vsgraph.errors import InputError, MissingExtraError, VSGraphError, VSGraphWarning
from vsgraph.estimate import Estimate, estimate
from vsgraph.evaluation import Evaluation, evaluate
from vsgraph.evidence import Evidence, weigh_evidence
from vsgraph.explanation import Explanation, Link
from vsgraph.fusion import fuse, soft_labels
from vsgraph.graph import adopt_graph, propagation_matrix, visual_graph
from vsgraph.neighbors import Neighbors, nearest_neighbors
from vsgraph.openset import far_from_all, text_nearness, typical_match
from vsgraph.probe import linear_probe
from vsgraph.progressive import grow_anchors, label_in_rounds
from vsgraph.settings import Settings
from vsgraph.sgc import Network, label_by_graph
from vsgraph.sweep_table import SweepTable
from vsgraph.sweeping import sweep
from vsgraph.topscores import TopScores

__version__ = "0.2.0"

__all__ = [
    "Anchors",
    "Comparison",
    "Correction",
    "Decision",
    "Decisions",
    "Estimate",
    "Evaluation",
    "Evidence",
    "Explanation",
    "InputError",
    "Link",
    "MissingExtraError",
    "Neighbors",
    "Network",
    "Rule",
    "Settings",
    "SweepTable",
    "TopScores",
    "VSGraphError",
    "VSGraphWarning",
    "adopt_graph",
    "compare",
    "correct",
    "decide",
    "estimate",
    "evaluate",
    "far_from_all",
    "fuse",
    "grow_anchors",
    "label_by_graph",
    "label_in_rounds",
    "linear_probe",
    "nearest_neighbors",
    "propagation_matrix",
    "select_anchors",
    "smooth_text",
    "soft_labels",
    "sweep",
    "text_match",
    "text_nearness",
    "typical_match",
    "visual_graph",
    "weigh_evidence",
]
