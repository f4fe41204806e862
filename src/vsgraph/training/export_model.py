"""A trained model as a file that other programs load without vsgraph."""

from pathlib import Path

import numpy as np

from vsgraph.common.files import whole_file
from vsgraph.encoders.runtimes.conversion import quietly, to_onnx
from vsgraph.encoders.runtimes.models import Model, need
from vsgraph.encoders.sources.checkpoints import checkpoint_model
from vsgraph.errors import InputError

CLASSES = "classes.txt"


def export_model(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write a trained model as ONNX (``.onnx``) or for torch alone (``.pt2``, ``torch.export``).

    It takes pixels, uint8 of shape (n, height, width, 3), RGB, and returns features and
    probabilities. The names of the classes, in order, are in the file: in an ONNX file's metadata,
    in a ``.pt2`` as the extra file ``classes.txt``; a line each.

    Parameters
    ----------
    folder : path
        A trained model.
    out : path
        The file; its ending says the format.
    overwrite : bool
        Replace a file that is there.

    Returns
    -------
    path : Path
        The file.
    """
    path = Path(out)
    if path.suffix not in {".onnx", ".pt2"}:
        raise InputError(f"{path} must end in .onnx or .pt2, to say what it is to be")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; choose another name, or say --overwrite")
    model, kept = checkpoint_model(Path(folder))
    need("exporting a model", "encoders", "torch")
    path.parent.mkdir(parents=True, exist_ok=True)
    names = "\n".join(" ".join(name.split()) for name in kept.class_names)
    with whole_file(path) as unfinished, quietly():
        write = _write_onnx if path.suffix == ".onnx" else _write_torch
        write(model, unfinished, names)
    return path


def _write_onnx(model: Model, path: Path, names: str) -> None:
    """Write an ONNX file that names its classes."""
    to_onnx(model, path)
    import onnx

    network = onnx.load(str(path))
    onnx.helper.set_model_props(network, {"classes": names})
    onnx.save(network, str(path))


def _write_torch(model: Model, path: Path, names: str) -> None:
    """Write a program of torch.export."""
    import torch

    if model.build is None:
        raise InputError(f"{model.name} has no network to export")
    example = (torch.from_numpy(np.zeros_like(model.example()[0])),)
    free = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(model.build().eval(), example, dynamic_shapes=free)
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={CLASSES: names})
