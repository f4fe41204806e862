"""Label quality by methods that read no text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from answers import Answer, by_probs, judge, left, left_table, table
from baselines import cleanlab_flags, neighbor_vote, spread_labels
from simifeat import simifeat
from trials import Trial

KINDS = ("no text",)
K = 10
SHARES = (0.2, 0.8)  # of the neighbors in label spreading; scikit-learn's default is 0.2

Array = NDArray[np.floating]


def run(trial: Trial) -> dict[str, Any]:
    """Judge each method, and what is left where those that flag remove what they flag."""
    own, web, probe = trial.own, trial.data.web_labels, trial.probe
    by_cleanlab = cleanlab_flags(web, probe)
    by_simifeat = simifeat(trial.features, web, n_classes=len(trial.meaning), k=K)
    answers = {
        "web labels": Answer(web),
        "p_c, cross-validated": by_probs(probe, own),
        f"k-NN vote of web labels, k = {K}": by_probs(neighbor_vote(trial.features, web, k=K), own),
    }
    for share in SHARES:
        spread_out = spread_labels(trial.unit, web, k=K, neighbors_share=share)
        answers[f"label spreading of web labels, alpha = {share}"] = by_probs(spread_out, own)
    answers["cleanlab: flagged labels replaced by p_c's"] = replaced(
        trial, by_cleanlab, probe, probe[own]
    )
    answers["SimiFeat-style: flagged labels replaced by the vote's"] = replaced(
        trial, by_simifeat.flagged, by_simifeat.vote, by_simifeat.score
    )
    nothing = np.zeros(len(web), bool)
    return {
        "labels": {name: judge(answer, trial.data) for name, answer in answers.items()},
        "left": {
            "web labels": left(web, nothing, trial.data),
            "cleanlab: flagged photos removed": left(web, by_cleanlab, trial.data),
            "SimiFeat-style: flagged photos removed": left(web, by_simifeat.flagged, trial.data),
        },
    }


def replaced(trial: Trial, flagged: NDArray[np.bool_], probs: Array, quality: Array) -> Answer:
    """Replace flagged web labels by the likeliest."""
    labels = np.where(flagged, probs.argmax(axis=1), trial.data.web_labels)
    return Answer(labels, probs[np.arange(len(labels)), labels], quality)


def tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return the tables by the mark that they stand at."""
    (trials,) = found.values()
    return {
        "labels without text": table([trial["labels"] for trial in trials]),
        "what is left without text": left_table([trial["left"] for trial in trials]),
    }
