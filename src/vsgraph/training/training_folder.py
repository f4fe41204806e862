"""The folder of a training: held by one process at a time, and never used for another training.

A training that replaces a finished one works in a hidden folder within. The old model stays until
the new one is finished; then the folders change places.
"""

import importlib.metadata
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vsgraph.common.files import (
    OWN,
    RECORD,
    lock,
    mend_leftovers,
    replaced_folder,
    write_whole,
)
from vsgraph.common.stores import refuse_stored
from vsgraph.encoders.sources.checkpoints import WEIGHTS, is_checkpoint
from vsgraph.errors import InputError, VSGraphError

TRAINING = "training.json"
LOCK = ".lock"
NEXT = ".next"  # the training that replaces the model when it is finished
MADE = (RECORD, "last.safetensors", WEIGHTS, "metrics.jsonl", "curves.svg")  # the record first:
# without it, what is left is no model


@contextmanager
def held_folder(folder: Path, *, is_first: bool) -> Iterator[None]:
    """Make a folder and keep other trainings out; remove it if this one fails before it starts."""
    refuse_stored(folder)
    if is_first and folder.parent.exists():
        mend_leftovers(folder.parent)  # puts back a model that was being replaced
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if not is_first:
        yield
        return
    try:
        with lock(folder / LOCK):
            for place in (folder, folder / NEXT):
                mend_leftovers(place)
            yield
    except VSGraphError:
        if is_new and {path.name for path in folder.iterdir()} <= {LOCK, TRAINING, RECORD}:
            shutil.rmtree(folder)
        raise


def claim_folder(folder: Path, key: dict[str, Any], *, overwrite: bool) -> None:
    """Refuse a folder of another training, or make room in it; record what this training is."""
    path, following = folder / TRAINING, folder / NEXT
    contents = [e for e in folder.iterdir() if e.name != LOCK and not OWN.fullmatch(e.name)]
    if not path.exists() and contents:
        raise InputError(f"{folder} holds something other than a training of vsgraph; left alone")
    if (following / TRAINING).exists() and not _differences(_read(following), key):
        return  # it was interrupted
    if path.exists() and not overwrite:
        differences = _differences(_read(folder), key)
        if differences:
            raise InputError(
                f"{folder} holds another training: {', '.join(differences)}; choose another "
                "folder, or pass overwrite=True (--overwrite)"
            )
    shutil.rmtree(following, ignore_errors=True)
    if overwrite and is_checkpoint(folder):
        following.mkdir()
        path = following / TRAINING
    elif overwrite:
        for name in MADE:
            (folder / name).unlink(missing_ok=True)
    versions = {name: importlib.metadata.version(name) for name in ("vsgraph", "numpy", "torch")}
    write_whole(path, json.dumps({**key, "versions": versions}, indent=1) + "\n")


def _read(folder: Path) -> dict[str, Any]:
    """Return what a training is."""
    return json.loads((folder / TRAINING).read_text(encoding="utf-8"))


def working_folder(folder: Path) -> Path:
    """Return where the training of a claimed folder keeps its files."""
    return folder / NEXT if (folder / NEXT).exists() else folder


def replace_model(folder: Path) -> None:
    """Let a finished training take the place of the model before it; other files stay."""
    following = folder / NEXT
    if not following.exists():
        return
    with replaced_folder(folder) as fresh:
        shutil.copytree(following, fresh, dirs_exist_ok=True)  # a copy: a kill here loses nothing
        for path in folder.iterdir():
            if path.name in {*MADE, TRAINING, LOCK, NEXT} or OWN.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.copytree(path, fresh / path.name, symlinks=True)
            else:
                shutil.copy2(path, fresh / path.name, follow_symlinks=False)


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
