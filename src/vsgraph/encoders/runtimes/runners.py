"""Runs a model with OpenVINO, ONNX Runtime or torch, in fp32, bf16 or int8.

A model gives the same vectors on each, within `TOLERANCE`.
"""

import platform
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import n_threads
from vsgraph.common.checks import check_one_of
from vsgraph.encoders.runtimes.conversion import (
    ConversionError,
    converted,
    import_openvino,
    int8_model,
)
from vsgraph.encoders.runtimes.models import Arrays, Model, has, hash_files, hash_words, need
from vsgraph.errors import InputError, VSGraphWarning

RUNTIMES = ("auto", "openvino", "onnxruntime", "torch")
PRECISIONS = ("auto", "fp32", "bf16", "fp16", "int8")
TOLERANCE = {
    "fp32": 0.9999,
    "bf16": 0.995,
    "fp16": 0.999,
    "int8": 0.95,
}  # least mean cosine to fp32 on torch


BATCH, GPU_BATCH = 16, 64  # pictures in one call


class Runner(Protocol):
    """A model that is ready to run."""

    fingerprint: str  # of the model, the runtime and the precision together
    runtime: str
    precision: str
    batch: int  # pictures to give it at once

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Return the outputs for a batch; safe to call from several threads."""
        ...


class Opening(NamedTuple):
    """How an encoder was opened, to open it on another machine; models themselves never travel."""

    open: Callable[..., Any]
    name: str | Path  # a path if it is a file or folder
    options: dict[str, Any]
    runner: Runner

    def elsewhere(self, fingerprint: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function and arguments that open the encoder of a fingerprint again."""
        exactly = {"runtime": self.runner.runtime, "precision": self.runner.precision}
        return _open_again, (self.open, self.name, self.options | exactly, fingerprint)


def _open_again(
    opened: Callable[..., Any], name: str | Path, options: dict[str, Any], fingerprint: str
) -> Any:  # noqa: ANN401
    """Open an encoder; raise an error if its vectors would differ from those of elsewhere."""
    encoder = opened(name, **options)
    if encoder.fingerprint != fingerprint:
        raise InputError(
            f"{name} gives other vectors on {platform.node()} than where the run was started; "
            "install the same versions, and the same model, everywhere"
        )
    return encoder


def open_model(
    model: Model,
    *,
    runtime: str = "auto",
    precision: str = "auto",
    samples: Sequence[Arrays] = (),
) -> Runner:
    """Make a model ready to run.

    `runtime` is ``openvino``, ``onnxruntime``, ``torch``, or ``auto``, the best that is installed:
    torch on a GPU, else OpenVINO, else ONNX Runtime, else torch. If a model cannot be converted, or
    the converted one computes something else, torch runs it, with a warning. `precision` is
    ``fp32``, ``bf16``, ``fp16`` (on a GPU), ``int8``, or ``auto``: bf16 if the processor or GPU
    computes in it, else fp32, or fp16 on a GPU. `samples` are real batches, with which int8 is
    calibrated and checked.
    """
    check_one_of("runtime", runtime, RUNTIMES)
    check_one_of("precision", precision, PRECISIONS)
    chosen = choose_runtime(model) if runtime == "auto" else runtime
    try:
        if chosen == "openvino":
            return OpenVinoRunner(model, precision, samples)
        if chosen == "onnxruntime":
            return OnnxRunner(model, precision)
    except ConversionError as error:
        if runtime != "auto":
            raise
        warnings.warn(f"{error}; torch runs it, slower", VSGraphWarning, stacklevel=3)
    return TorchRunner(model, precision)


def choose_runtime(model: Model) -> str:
    """Return the fastest installed runtime for a model."""
    if model.build is not None and has_gpu():
        return "torch"
    if has("openvino"):
        return "openvino"
    ready = has("onnxruntime") and (model.onnx_file is not None or has("onnx", "onnxscript"))
    return "onnxruntime" if ready or model.build is None else "torch"


def has_gpu() -> bool:
    """Return whether torch can use a GPU; torch is not imported if there is no driver."""
    has_driver = Path("/proc/driver/nvidia").exists() or platform.system() == "Windows"
    if not (has_driver and has("torch")):
        return False
    import torch

    return bool(torch.cuda.is_available())


class OpenVinoRunner:
    """OpenVINO on the CPU: one stream per core, one call per stream."""

    runtime = "openvino"
    batch = BATCH

    def __init__(self, model: Model, precision: str, samples: Sequence[Arrays] = ()) -> None:
        need("the runtime OpenVINO", "encoders", "openvino")
        ov = import_openvino()
        core = ov.Core()
        hardware = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        if precision == "auto":
            precision = "bf16" if "BF16" in hardware else "fp32"
        if precision == "bf16" and "BF16" not in hardware:
            raise InputError("this processor does not compute in bf16; use fp32")
        if precision == "fp16":
            raise InputError("fp16 needs a GPU; use fp32, or bf16 if the processor computes in it")
        path = converted(model, "openvino")
        if precision == "int8":
            path = int8_model(model, path, samples, TOLERANCE["int8"])
        self.precision = precision
        self.fingerprint = hash_words(
            hash_files([path, path.with_suffix(".bin")]) if precision == "int8" else
            model.fingerprint, self.runtime, precision, ov.__version__.split("-")[0],
        )  # fmt: skip
        options = {
            "NUM_STREAMS": str(n_threads()),
            "INFERENCE_NUM_THREADS": str(n_threads()),
            "ENABLE_CPU_PINNING": "NO",  # several processes would all be pinned to the first core
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        }
        self._compiled = core.compile_model(core.read_model(path), "CPU", options)
        self._free: list[Any] = []
        self._lock = Lock()

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch with a free request."""
        with self._lock:
            request = self._free.pop() if self._free else self._compiled.create_infer_request()
        try:
            outputs = request.infer(list(inputs), share_inputs=True)
            return [np.array(value, np.float32) for value in outputs.values()]
        finally:
            with self._lock:
                self._free.append(request)


class OnnxRunner:
    """ONNX Runtime on the CPU: one thread per call, as many calls as there are cores."""

    runtime = "onnxruntime"
    batch = BATCH

    def __init__(self, model: Model, precision: str) -> None:
        need("the runtime ONNX Runtime", "onnx", "onnxruntime")
        if precision not in {"auto", "fp32"}:
            raise InputError(f"ONNX Runtime runs fp32 only; use openvino for {precision}")
        import onnxruntime

        self.precision = "fp32"
        version = onnxruntime.__version__
        self.fingerprint = hash_words(model.fingerprint, self.runtime, "fp32", version)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        path = str(converted(model, "onnx"))
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(path, options, providers=providers)
        self._names = [node.name for node in self._session.get_inputs()]

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch."""
        by_name = dict(zip(self._names, inputs, strict=True))
        return [np.asarray(value, np.float32) for value in self._session.run(None, by_name)]


class TorchRunner:
    """Torch: half precision and channels-last on a GPU, fp32 on all cores otherwise.

    A batch that does not fit into the memory of the GPU is divided.
    """

    runtime = "torch"

    def __init__(self, model: Model, precision: str) -> None:
        need("the runtime torch", "encoders", "torch")
        if precision == "int8":
            raise InputError("torch runs fp32, bf16 or fp16 only; int8 needs OpenVINO")
        if model.build is None:
            raise InputError(f"{model.name} is an ONNX file, which torch cannot run; use openvino")
        import torch

        self._device = "cuda" if has_gpu() else "cpu"
        if precision == "fp16" and self._device == "cpu":
            raise InputError("fp16 needs a GPU; use fp32 or bf16")
        self.precision = _fastest(self._device) if precision == "auto" else precision
        self.batch = GPU_BATCH if self._device == "cuda" else BATCH
        self.fingerprint = hash_words(
            model.fingerprint, self.runtime, self.precision, self._device, torch.__version__
        )
        module = model.build().eval().to(self._device)
        self._module = module.to(memory_format=torch.channels_last)
        self._lock = Lock()

    def __call__(self, *inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Run a batch; calls from several threads run one after the other."""
        import torch

        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
        arrays = [np.ascontiguousarray(array) for array in inputs]
        mixed = torch.autocast(self._device, dtype=half or torch.bfloat16, enabled=half is not None)
        with self._lock, torch.inference_mode(), mixed:
            return self._run([torch.from_numpy(array) for array in arrays])

    def _run(self, tensors: list[Any]) -> list[NDArray[np.float32]]:
        """Run a batch, or its halves one after the other if the memory of the GPU is too small."""
        import torch

        try:
            output = self._module(*(tensor.to(self._device) for tensor in tensors))
        except torch.cuda.OutOfMemoryError:
            n_rows = len(tensors[0])
            if n_rows == 1:
                raise
            halves = [
                [t[rows] for t in tensors]
                for rows in (slice(n_rows // 2), slice(n_rows // 2, None))
            ]
        else:
            outputs = output if isinstance(output, tuple) else (output,)
            return [value.float().cpu().numpy() for value in outputs]
        parts = [self._run(half) for half in halves]
        return [np.concatenate(pair) for pair in zip(*parts, strict=True)]


def _fastest(device: str) -> str:
    """Return the precision for a device: bf16 on a GPU that has it, fp16 on older ones."""
    if device == "cpu":
        return "fp32"
    import torch

    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
