"""A network as the runtimes see it: inputs, outputs, and a way to build it if needed."""

import dataclasses
import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vsgraph.errors import MissingExtraError

Arrays = tuple[NDArray[Any], ...]


@dataclasses.dataclass(frozen=True)
class Model:
    """A network with fixed weights."""

    name: str  # in messages
    fingerprint: str  # changes with its weights and structure
    example: Callable[[], Arrays]  # inputs; the first axis, and for texts the second, is free
    input_names: tuple[str, ...] = ("pixels",)
    output_names: tuple[str, ...] = ("features",)
    build: Callable[[], Any] | None = None  # returns the torch module
    onnx_file: Path | None = None  # the network as a file, instead of `build`


def cache_folder() -> Path:
    """Return where converted models are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vsgraph"


def hash_files(paths: Iterable[Path], *more: str) -> str:
    """Return a fingerprint of the content and names of files, and of further words."""
    digest = hashlib.sha256("\0".join(more).encode())
    for path in sorted(paths):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def hash_words(*words: object) -> str:
    """Return a fingerprint of words."""
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


def has(*modules: str) -> bool:
    """Return whether modules are installed, without importing them."""
    return all(importlib.util.find_spec(name) is not None for name in modules)


def need(what: str, extra: str, *modules: str) -> None:
    """Raise an error if modules are not installed, naming the extra that brings them."""
    if not has(*modules):
        raise MissingExtraError(what, extra)


def package_folder(module: str, what: str, extra: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise MissingExtraError(what, extra)
    return Path(spec.origin).parent
