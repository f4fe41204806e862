"""Networks trained on a crawl: pretraining, fine-tuning on corrected labels, Co-teaching.

>>> from vsgraph.training import Recipe, train
"""

from vsgraph.training.fit import Trained, train
from vsgraph.training.frozen import train_frozen
from vsgraph.training.labels import Labels, corrected_labels, web_labels
from vsgraph.training.model_scores import Tested, judge_model
from vsgraph.training.predictions import classify, predict
from vsgraph.training.recipe import Recipe, Start

__all__ = [
    "Labels",
    "Recipe",
    "Start",
    "Tested",
    "Trained",
    "classify",
    "corrected_labels",
    "judge_model",
    "predict",
    "train",
    "train_frozen",
    "web_labels",
]
