"""A network as an ONNX file of the user's own."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.encoders.protocol import Pixels
from vsgraph.encoders.runtimes.conversion import import_openvino
from vsgraph.encoders.runtimes.models import Model, has, hash_files, need
from vsgraph.errors import InputError
from vsgraph.pictures.decode import Preparation

Found = tuple[Model, Preparation, int, Callable[[Pixels], NDArray[np.generic]]]
MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # ImageNet's, in 0..1
STD = np.array([0.229, 0.224, 0.225], np.float32)


def onnx_model(path: Path, size: int | None = None) -> Found:
    """Return the model of a file, its preparation, no classes, and what makes its input.

    A float input is taken to want ImageNet's mean and deviation; a uint8 input gets pixels as they
    are. Channels may come first or last. The first output is the features.
    """
    if not path.exists():
        raise InputError(f"{path} is not there; give the path of an ONNX file")
    shape, is_float = _input_of(path)
    if len(shape) != 4 or 3 not in (shape[1], shape[3]):
        raise InputError(
            f"{path} must take pictures, (n, 3, height, width) or (n, height, width, 3), "
            f"got {shape}"
        )
    first = shape[1] == 3
    height, width = shape[2:] if first else shape[1:3]
    preparation = Preparation(size or height or 224, size or width or 224)

    def as_input(pixels: Pixels) -> NDArray[np.generic]:
        scaled = (pixels / np.float32(255) - MEAN) / STD if is_float else pixels
        return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2) if first else scaled)

    blank = np.zeros((2, preparation.height, preparation.width, 3), np.uint8)
    model = Model(
        name=path.name,
        fingerprint=hash_files([path], preparation.describe()),
        example=lambda: (as_input(blank),),
        input_names=("pixels",),
        output_names=("features",),
        onnx_file=path,
    )
    return model, preparation, 0, as_input


def _input_of(path: Path) -> tuple[list[int], bool]:
    """Return the shape of the only input, 0 where it is open, and whether it takes floats."""
    try:
        if has("openvino"):
            (one,) = import_openvino().Core().read_model(path).inputs
            sizes = [axis.get_length() if axis.is_static else 0 for axis in one.partial_shape]
            return sizes, "f" in one.element_type.get_type_name()
        need("an ONNX file", "onnx", "onnxruntime")
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (node,) = session.get_inputs()
        return [n if isinstance(n, int) else 0 for n in node.shape], "float" in node.type
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as an ONNX file with one input: {error}"
        ) from error
