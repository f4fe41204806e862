"""A correction on disk: a folder of ``.npy`` files and one JSON file."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vsgraph.common.files import (
    FORMAT,
    RECORD,
    flat_arrays,
    load_csr,
    load_record,
    new_folder,
    open_array,
    save_arrays,
)
from vsgraph.result.parts import Anchors
from vsgraph.result.scores import TopScores
from vsgraph.settings import Settings

if TYPE_CHECKING:
    from vsgraph.result.correction import Correction

ARRAYS = ("web_labels", "final_labels", "decisions", "rules")


def save_correction(correction: "Correction", folder: Path, *, overwrite: bool) -> None:
    """Write a correction; the folder appears when it is complete."""
    values = {
        "format": FORMAT,
        "class_names": list(correction.class_names),
        "evidence_weights": correction.evidence_weights,
        "unwanted_names": list(correction.unwanted_names),
        "graph_recall": None if np.isnan(correction.graph_recall) else correction.graph_recall,
        "settings": dataclasses.asdict(correction.settings),
    }
    with new_folder(folder, overwrite=overwrite) as fresh:
        save_arrays(fresh, flat_arrays(correction))
        (fresh / RECORD).write_text(json.dumps(values, indent=2), encoding="utf-8")


def load_fields(folder: Path) -> dict[str, Any]:
    """Return the fields of a saved correction by name; arrays are mapped from disk."""
    values = load_record(folder)
    names = tuple(values["class_names"])
    arrays: dict[str, Any] = {name: open_array(folder / f"{name}.npy") for name in ARRAYS}
    n_images = len(arrays["rules"])
    for name in ("confusion", "unwanted"):
        path = folder / f"{name}.npy"
        arrays[name] = open_array(path) if path.exists() else None
    for name in ("final_probs", "gnn_probs", "cnn_probs", "text_factor"):
        arrays[name] = None
        if name in {"final_probs", "gnn_probs"} or (folder / f"{name}_rest.npy").exists():
            arrays[name] = TopScores.load(folder, len(names), prefix=f"{name}_")
    return arrays | {
        "text_match": load_csr(folder, "text_match", (n_images, len(names))),
        "adjacency": load_csr(folder, "adjacency", (n_images, n_images)),
        "anchors": Anchors.load(folder),
        "class_names": names,
        "evidence_weights": values["evidence_weights"],
        "unwanted_names": tuple(values.get("unwanted_names", ())),
        "graph_recall": np.nan if values["graph_recall"] is None else values["graph_recall"],
        "settings": Settings.from_dict(values["settings"]),
    }
