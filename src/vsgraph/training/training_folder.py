"""The folder of a training: held by one process at a time, and never used for another training."""

import importlib.metadata
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vsgraph.common.files import OWN, RECORD, lock, mend_leftovers, write_whole
from vsgraph.encoders.sources.checkpoints import WEIGHTS
from vsgraph.errors import InputError, VSGraphError

TRAINING = "training.json"
LOCK = ".lock"
MADE = (RECORD, "last.safetensors", WEIGHTS, "metrics.jsonl", "curves.svg")  # the record first:
# without it, what is left is no model


@contextmanager
def held_folder(folder: Path, *, is_first: bool) -> Iterator[None]:
    """Make a folder and keep other trainings out; remove it if this one fails before it starts."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if not is_first:
        yield
        return
    try:
        with lock(folder / LOCK):
            mend_leftovers(folder)
            yield
    except VSGraphError:
        if is_new and {path.name for path in folder.iterdir()} <= {LOCK, TRAINING, RECORD}:
            shutil.rmtree(folder)
        raise


def claim_folder(folder: Path, key: dict[str, Any], *, overwrite: bool) -> None:
    """Refuse a folder of another training, or empty it; record what this training is."""
    path = folder / TRAINING
    contents = [e for e in folder.iterdir() if e.name != LOCK and not OWN.fullmatch(e.name)]
    if not path.exists() and contents:
        raise InputError(f"{folder} holds something other than a training of vsgraph; left alone")
    if path.exists() and not overwrite:
        former = json.loads(path.read_text(encoding="utf-8"))
        differences = _differences(former, key)
        if differences:
            raise InputError(
                f"{folder} holds another training: {', '.join(differences)}; choose another "
                "folder, or pass overwrite=True (--overwrite)"
            )
    if overwrite:
        for name in MADE:
            (folder / name).unlink(missing_ok=True)
    versions = {name: importlib.metadata.version(name) for name in ("vsgraph", "numpy", "torch")}
    write_whole(path, json.dumps({**key, "versions": versions}, indent=1) + "\n")


def _differences(former: dict[str, Any], key: dict[str, Any]) -> list[str]:
    """Describe how two trainings differ."""
    old, new = ({**k, **k.get("recipe", {}), "recipe": None} for k in (former, key))
    lines = []
    for name in [*new, *sorted(set(old) - set(new) - {"versions"})]:
        before, now = (
            "not set" if k.get(name) is None else json.dumps(k[name]) for k in (old, new)
        )
        if before == now:
            continue
        if name in {"crawl", "labels", "validation"}:
            lines.append(f"{name} {'were' if name == 'labels' else 'was'} different")
        else:
            lines.append(f"{name} was {before}, now {now}")
    return lines
