"""What is installed, what can be used, and what to type for the rest."""

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata

from vsgraph.common.room import say_bytes
from vsgraph.common.version import __version__
from vsgraph.encoders.runtimes.models import cache_folder
from vsgraph.encoders.runtimes.runners import has_gpu
from vsgraph.errors import InputError
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method.estimate import available_memory

PURPOSE = {
    "encoders": "pictures and texts to vectors, training",
    "scale": "search among many images",
    "table": "pandas tables",
    "wordnet": "WordNet's files",
    "lite": "larger EfficientNets",
    "onnx": "ONNX models and ONNX Runtime",
    "int8": "int8 encoders",
    "timm": "models of timm",
    "review": "the page of vsgraph review",
    "cluster": "several machines",
}


def examine() -> list[str]:
    """Return lines on this machine and installation, each with what to do if something lacks.

    >>> examine()[0].startswith("vsgraph ")
    True
    """
    memory = available_memory()
    free = "" if memory is None else f", {say_bytes(memory)} of memory free"
    lines = [
        f"vsgraph {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores{free}"
    ]
    lines += [_extra_line(extra, names) for extra, names in extras().items()]
    return [*lines, _wordnet_line(), _device_line(), _cache_line()]


def extras() -> dict[str, list[str]]:
    """Return the packages of each extra, by the installed record of vsgraph."""
    found: dict[str, list[str]] = {extra: [] for extra in PURPOSE}
    for requirement in _requirements():
        named = re.match(r"([\w.-]+)[^;]*;.*extra == ['\"](\w+)['\"]", requirement)
        if named and named[2] in found:
            found[named[2]].append(named[1])
    return found


def _requirements() -> Iterator[str]:
    try:
        yield from metadata.requires("vsgraph") or ()
    except metadata.PackageNotFoundError:  # run from its source
        return


def _extra_line(extra: str, names: list[str]) -> str:
    """Return whether the packages of an extra are there."""
    missing = [name for name in names if _version(name) is None]
    head = f"{extra} ({PURPOSE[extra]}):"
    if missing or not names:
        lacks = f"{', '.join(missing)} missing; " if names else ""
        return f"{head} {lacks}pip install 'vsgraph[{extra}]'"
    return f"{head} {', '.join(f'{name} {_version(name)}' for name in names)}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _wordnet_line() -> str:
    """Return where WordNet's files are."""
    try:
        return f"WordNet 3.0: {WordNet.open().folder}"
    except InputError as error:
        return f"WordNet 3.0: {error}"


def _cache_line() -> str:
    """Return where converted models and copies of runs in object stores are kept."""
    folder = cache_folder()
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
    return f"cache: {folder}, {say_bytes(size)}; it can be deleted when nothing runs"


def _device_line() -> str:
    """Return whether torch finds a GPU."""
    if _version("torch") is None:
        return "GPU: torch is not installed"
    return f"GPU: {'found' if has_gpu() else 'none that torch can use; processors do the work'}"
