"""A trained model as a file that loads without vsgraph."""

from pathlib import Path

import numpy as np

from vsgraph.common.files import mend_leftovers, whole_file
from vsgraph.common.stores import refuse_stored
from vsgraph.encoders.runtimes.conversion import quietly, to_onnx
from vsgraph.encoders.runtimes.models import Model, need
from vsgraph.encoders.sources.checkpoints import checkpoint_model
from vsgraph.errors import InputError


def export_model(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write a trained model as ONNX (``.onnx``) or for torch alone (``.pt2``, ``torch.export``).

    It takes pixels, uint8 of shape (n, height, width, 3), RGB, and returns features and
    probabilities. The file holds the class names, one per line: ONNX as the metadata ``classes``,
    ``.pt2`` as the extra file ``classes.txt``.
    """
    path = Path(out)
    refuse_stored(path)
    if path.suffix not in {".onnx", ".pt2"}:
        raise InputError(f"{path} must end in .onnx or .pt2, which chooses the format")
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} exists already; choose another name, or pass overwrite=True (--overwrite)"
        )
    need("exporting a model", "encoders", "torch")
    model, checkpoint = checkpoint_model(Path(folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    mend_leftovers(path.parent)
    names = "\n".join(" ".join(name.split()) for name in checkpoint.class_names)
    with whole_file(path) as unfinished, quietly():
        write = _write_onnx if path.suffix == ".onnx" else _write_torch
        write(model, unfinished, names)
    return path


def _write_onnx(model: Model, path: Path, names: str) -> None:
    """Write an ONNX file with the class names in its metadata."""
    to_onnx(model, path)
    import onnx

    network = onnx.load(str(path))
    onnx.helper.set_model_props(network, {"classes": names})
    onnx.save(network, str(path))


def _write_torch(model: Model, path: Path, names: str) -> None:
    """Write a program of torch.export with the class names as an extra file."""
    import torch

    if model.build is None:
        raise InputError(f"{model.name} has no network to export")
    example = (torch.from_numpy(np.zeros_like(model.example()[0])),)
    free = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(model.build().eval(), example, dynamic_shapes=free)
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={"classes.txt": names})
