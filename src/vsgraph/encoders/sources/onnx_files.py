"""The user's own network as an ONNX file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vsgraph.encoders.runtimes.conversion import import_openvino
from vsgraph.encoders.runtimes.models import Model, has, hash_files, need
from vsgraph.encoders.sources.architectures import MEAN, STD
from vsgraph.errors import InputError
from vsgraph.pictures.decode import Pixels, Preparation

ImageModel = tuple[Model, Preparation, int, Callable[[Pixels], NDArray[np.generic]]]


def onnx_model(path: Path, size: int | None = None) -> ImageModel:
    """Return the model of a file, its preparation, no classes, and pixels-to-input.

    A float input gets pixels normalized by ImageNet's mean and deviation, a uint8 input gets them
    as they are. Channels may come first or last. The first output is the features.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist; give the path of an ONNX file")
    shape, is_float = _input_of(path)
    if len(shape) != 4 or 3 not in (shape[1], shape[3]):
        raise InputError(
            f"{path} must take pictures, (n, 3, height, width) or (n, height, width, 3), "
            f"got {shape}"
        )
    channels_first = shape[1] == 3
    height, width = shape[2:] if channels_first else shape[1:3]
    mean, std = np.array(MEAN, np.float32), np.array(STD, np.float32)
    preparation = Preparation(size or height or 224, size or width or 224)

    def as_input(pixels: Pixels) -> NDArray[np.generic]:
        values = (pixels / np.float32(255) - mean) / std if is_float else pixels
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2) if channels_first else values)

    blank = np.zeros((2, preparation.height, preparation.width, 3), np.uint8)
    model = Model(
        name=path.name,
        fingerprint=hash_files([path], preparation.describe()),
        example=lambda: (as_input(blank),),
        onnx_file=path,
    )
    return model, preparation, 0, as_input


def _input_of(path: Path) -> tuple[list[int], bool]:
    """Return the shape of the only input, 0 where it is open, and whether it takes floats."""
    try:
        if has("openvino"):
            (node,) = import_openvino().Core().read_model(path).inputs
            sizes = [axis.get_length() if axis.is_static else 0 for axis in node.partial_shape]
            return sizes, "f" in node.element_type.get_type_name()
        need("an ONNX file", "onnx", "onnxruntime")
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (node,) = session.get_inputs()
        return [n if isinstance(n, int) else 0 for n in node.shape], "float" in node.type
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as an ONNX file with one input: {error}"
        ) from error
