"""Runs a model by OpenVINO, ONNX Runtime or torch, in fp32, bf16 or int8.

The same model gives the same vectors on each within `TOLERANCE`, as the cosine to fp32 on torch.
"""

import platform
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import n_threads
from vsgraph.encoders.runtimes.conversion import (
    ConversionError,
    converted,
    import_openvino,
    int8_model,
)
from vsgraph.encoders.runtimes.models import Arrays, Model, has, hash_files, hash_words, need
from vsgraph.errors import InputError, VSGraphWarning

RUNTIMES = ("auto", "openvino", "onnxruntime", "torch")
PRECISIONS = ("auto", "fp32", "bf16", "int8")
TOLERANCE = {"fp32": 0.9999, "bf16": 0.995, "int8": 0.95}  # least mean cosine to fp32 on torch


class Runner(Protocol):
    """A model that is ready to run.

    Attributes
    ----------
    n_streams : int
        How many calls at once it is best given.
    fingerprint : str
        The model's, the runtime's and the precision's together.
    runtime, precision : str
        What was chosen.
    """

    n_streams: int
    fingerprint: str
    runtime: str
    precision: str

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Return the outputs for a batch; safe to call from several threads."""
        ...


def open_model(
    model: Model,
    *,
    runtime: str = "auto",
    precision: str = "auto",
    samples: Sequence[Arrays] = (),
) -> Runner:
    """Make a model ready to run.

    Parameters
    ----------
    model : Model
        What to run.
    runtime : str
        ``openvino``, ``onnxruntime``, ``torch``, or the best that is there: torch on a GPU, else
        OpenVINO, else ONNX Runtime, else torch; torch too where a model cannot be converted or the
        converted one computes something else, with a warning.
    precision : str
        ``fp32``, ``bf16``, ``int8``, or what the processor is best at without loss: bf16 where it
        computes in it, else fp32. int8 is never chosen by itself.
    samples : sequence of inputs
        Real batches, for int8 only: its ranges are set and its vectors checked with them.
    """
    _refuse_unknown("runtime", runtime, RUNTIMES)
    _refuse_unknown("precision", precision, PRECISIONS)
    if runtime != "auto":
        return _open_on(runtime, model, precision, samples)
    try:
        return _open_on(choose_runtime(model), model, precision, samples)
    except ConversionError as error:
        warnings.warn(f"{error}; torch runs it, slower", VSGraphWarning, stacklevel=3)
        return TorchRunner(model, precision)


def _open_on(runtime: str, model: Model, precision: str, samples: Sequence[Arrays]) -> Runner:
    if runtime == "torch":
        return TorchRunner(model, precision)
    if runtime == "openvino":
        return OpenVinoRunner(model, precision, samples)
    return OnnxRunner(model, precision)


def _refuse_unknown(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}, got {value!r}")


def choose_runtime(model: Model) -> str:
    """Return the fastest runtime that is there for a model."""
    if model.build is not None and _has_gpu():
        return "torch"
    if has("openvino"):
        return "openvino"
    ready = has("onnxruntime") and (model.onnx_file is not None or has("onnx", "onnxscript"))
    if ready or model.build is None:
        return "onnxruntime"
    return "torch"


def _has_gpu() -> bool:
    """Return whether torch can use a GPU; torch is not imported where there is no driver."""
    if not has("torch") or not (
        Path("/proc/driver/nvidia").exists() or platform.system() == "Windows"
    ):
        return False
    import torch

    return bool(torch.cuda.is_available())


class OpenVinoRunner:
    """OpenVINO on the CPU: a stream a core, a call a stream."""

    runtime = "openvino"

    def __init__(self, model: Model, precision: str, samples: Sequence[Arrays] = ()) -> None:
        need("the runtime OpenVINO", "encoders", "openvino")
        ov = import_openvino()
        core = ov.Core()
        hardware = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        if precision == "auto":
            precision = "bf16" if "BF16" in hardware else "fp32"
        if precision == "bf16" and "BF16" not in hardware:
            raise InputError("this processor does not compute in bf16; use fp32")
        path = converted(model, "openvino")
        if precision == "int8":
            path = int8_model(model, path, samples, TOLERANCE["int8"])
        self.precision = precision
        self.n_streams = n_threads()
        self.fingerprint = hash_words(
            hash_files([path, path.with_suffix(".bin")]) if precision == "int8" else
            model.fingerprint, self.runtime, precision, ov.__version__.split("-")[0],
        )  # fmt: skip
        options = {
            "NUM_STREAMS": str(self.n_streams),
            "INFERENCE_NUM_THREADS": str(self.n_streams),
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        }
        self._compiled = core.compile_model(core.read_model(path), "CPU", options)
        self._free: list[Any] = []
        self._lock = Lock()

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch with a request that nobody uses at the moment."""
        with self._lock:
            request = self._free.pop() if self._free else self._compiled.create_infer_request()
        try:
            outputs = request.infer(list(inputs), share_inputs=True)
            return [np.array(value, np.float32) for value in outputs.values()]
        finally:
            with self._lock:
                self._free.append(request)


class OnnxRunner:
    """ONNX Runtime on the CPU: one thread a call, as many calls as there are cores."""

    runtime = "onnxruntime"

    def __init__(self, model: Model, precision: str) -> None:
        need("the runtime ONNX Runtime", "onnx", "onnxruntime")
        if precision not in {"auto", "fp32"}:
            raise InputError(
                f"ONNX Runtime runs fp32 here, got {precision}; OpenVINO has {precision}"
            )
        import onnxruntime

        self.precision = "fp32"
        self.n_streams = n_threads()
        self.fingerprint = hash_words(
            model.fingerprint, self.runtime, "fp32", onnxruntime.__version__
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        path = converted(model, "onnx")
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self._names = [one.name for one in self._session.get_inputs()]

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch."""
        given = dict(zip(self._names, inputs, strict=True))
        return [np.asarray(value, np.float32) for value in self._session.run(None, given)]


class TorchRunner:
    """Torch: bf16 and channels-last on a GPU, fp32 on all cores otherwise."""

    runtime = "torch"

    def __init__(self, model: Model, precision: str) -> None:
        need("the runtime torch", "encoders", "torch")
        if precision == "int8":
            raise InputError("torch runs fp32 or bf16 here; int8 needs OpenVINO")
        if model.build is None:
            raise InputError(f"{model.name} is an ONNX file, which torch cannot run; use openvino")
        import torch

        self._device = "cuda" if _has_gpu() else "cpu"
        fastest = "bf16" if self._device == "cuda" else "fp32"
        self.precision = fastest if precision == "auto" else precision
        self.n_streams = 1
        self.fingerprint = hash_words(
            model.fingerprint, self.runtime, self.precision, self._device, torch.__version__
        )
        module = model.build().eval().to(self._device)
        self._module = module.to(memory_format=torch.channels_last)
        self._lock = Lock()

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch; calls from several threads wait for each other."""
        import torch

        bf16 = self.precision == "bf16"
        tensors = [torch.from_numpy(np.ascontiguousarray(one)).to(self._device) for one in inputs]
        mixed = torch.autocast(self._device, dtype=torch.bfloat16, enabled=bf16)
        with self._lock, torch.inference_mode(), mixed:
            found = self._module(*tensors)
        outputs = found if isinstance(found, tuple) else (found,)
        return [value.float().cpu().numpy() for value in outputs]
