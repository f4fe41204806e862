"""Models converted for a runtime, once, and cached under the fingerprint of their weights."""

import contextlib
import io
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.encoders.runtimes.models import Arrays, Model, cache_folder, need
from vsgraph.errors import InputError, VSGraphError

AGREE = 0.9999
FP32 = {"INFERENCE_PRECISION_HINT": "f32"}  # some processors would compute in bf16
VERSION = "1"  # raised when the same weights would be converted differently


class ConversionError(InputError):
    """A network that a runtime cannot run, or computes differently."""


def import_openvino() -> Any:  # noqa: ANN401
    """Import OpenVINO without its telemetry."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def converted(model: Model, form: str) -> Path:
    """Return the file of a model as ``openvino`` or ``onnx``, converted if it is not cached."""
    if model.onnx_file is not None:
        return model.onnx_file
    name, write = {"openvino": ("model.xml", _to_openvino), "onnx": ("model.onnx", to_onnx)}[form]
    folder = cache_folder() / "models" / f"{model.fingerprint[:32]}-{form}-{VERSION}"

    def convert(new: Path) -> None:
        try:
            with quietly():
                write(model, new / name)
        except VSGraphError:
            raise
        except Exception as error:  # converters raise anything
            raise ConversionError(f"{model.name} cannot be converted to {form}: {error}") from error

    return _keep(folder, convert) / name


def _keep(folder: Path, make: Callable[[Path], None]) -> Path:
    """Fill a folder once; it appears whole, even if two processes fill it at the same time."""
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    except OSError as error:
        raise InputError(
            f"{folder.parent} cannot be written ({error}); set XDG_CACHE_HOME to a folder that can"
        ) from error
    try:
        make(scratch)
        with contextlib.suppress(OSError):  # another process was faster
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _built(model: Model) -> Any:  # noqa: ANN401
    """Build the torch module that is converted."""
    need(f"converting {model.name} (once)", "encoders", "torch")
    if model.build is None:
        raise InputError(f"{model.name} has no network to convert")
    return model.build().eval()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep converters from talking."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def _to_openvino(model: Model, path: Path) -> None:
    """Trace the module and save it in fp32; refuse it if its outputs differ from torch's."""
    ov = import_openvino()
    import torch

    module = _built(model)
    example = tuple(torch.from_numpy(array) for array in model.example())
    with torch.inference_mode():
        network = ov.convert_model(module, example_input=example)
        shapes = (array.shape for array in model.example())  # texts have a free length too
        free = [[-1, *(shape[1:] if len(shape) > 2 else [-1])] for shape in shapes]
        network.reshape(dict(enumerate(free)))
        ov.save_model(network, path, compress_to_fp16=False)
        inputs = [_other_input(array) for array in model.example()]
        outputs = module(*(torch.from_numpy(array) for array in inputs))
    expected = (outputs[0] if isinstance(outputs, tuple) else outputs).numpy()
    result = ov.Core().compile_model(network, "CPU", FP32)(list(inputs))[0]
    if _mean_cosine(expected, result) < AGREE:
        raise ConversionError(f"{model.name} gives other results in OpenVINO than in torch")


def _other_input(example: NDArray[Any]) -> NDArray[Any]:
    """Return an input of another size than the example, to check that its size is free."""
    if example.ndim > 2:
        return np.random.default_rng(0).integers(0, 256, (3, *example.shape[1:]), np.uint8)
    return np.full((3, example.shape[1] - 3), example[0, 0])


def to_onnx(model: Model, path: Path) -> None:
    """Export the module as an ONNX file."""
    need(f"exporting {model.name} to ONNX (once)", "onnx", "onnx", "onnxscript")
    import torch

    example = tuple(torch.from_numpy(array) for array in model.example())
    free = [
        dict.fromkeys(range(1 if array.ndim > 2 else array.ndim), torch.export.Dim.DYNAMIC)
        for array in model.example()
    ]
    with torch.inference_mode():
        torch.onnx.export(
            _built(model), example, str(path), dynamo=True, verbose=False,
            input_names=list(model.input_names), output_names=list(model.output_names),
            dynamic_shapes=free, external_data=False,
        )  # fmt: skip


def int8_model(model: Model, path: Path, samples: Sequence[Arrays], least: float) -> Path:
    """Return the model in int8, calibrated with half of the samples and checked with all of them.

    The model is cached, so a crawl that grows does not change it: the first samples set its ranges,
    later ones only check it again.
    """
    folder = cache_folder() / "models" / f"{model.fingerprint[:32]}-int8-{VERSION}"

    def features(file: Path) -> NDArray[Any]:
        core = import_openvino().Core()
        network = core.compile_model(core.read_model(file), "CPU", FP32)
        return np.concatenate([network(list(sample))[0] for sample in samples])

    def check(int8: Path, advice: str) -> None:
        cosine = _mean_cosine(features(path), features(int8))
        if cosine < least:
            raise InputError(
                f"int8 features of {model.name} have a mean cosine of {cosine:.3f} to fp32, less "
                f"than {least}; {advice}"
            )

    def make(new: Path) -> None:
        _quantize(path, samples[::2], new)
        check(new / "model.xml", "use precision fp32")

    if folder.exists():
        if samples:
            advice = f"its ranges were set by other samples: remove {folder} to set them anew"
            check(folder / "model.xml", f"{advice}, or use precision fp32")
        return folder / "model.xml"
    if len(samples) < 2:
        raise InputError(
            f"int8 of {model.name} needs real samples to set its ranges: pass pictures or texts"
        )
    need("int8", "int8", "nncf", "openvino")
    return _keep(folder, make) / "model.xml"


def _quantize(path: Path, samples: Sequence[Arrays], folder: Path) -> None:
    """Write an int8 model."""
    ov = import_openvino()
    os.environ.setdefault("NNCF_CI", "1")  # no telemetry
    with quietly():
        import nncf

        nncf.set_log_level(40)
        network = ov.Core().read_model(path)
        is_text = len(network.inputs) > 1
        kind = nncf.ModelType.TRANSFORMER if is_text else None
        small = nncf.quantize(
            network, nncf.Dataset([list(sample) if is_text else sample[0] for sample in samples]),
            model_type=kind, preset=nncf.QuantizationPreset.MIXED, subset_size=len(samples),
            fast_bias_correction=True,
        )  # fmt: skip
        ov.save_model(small, folder / "model.xml", compress_to_fp16=False)


def _mean_cosine(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the mean cosine of the rows of two arrays."""
    a, b = (array.reshape(len(array), -1).astype(np.float64) for array in (one, other))
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(((a * b).sum(axis=1) / np.maximum(lengths, 1e-12)).mean())
