"""Results kept as JSON: a run that was stopped goes on, a change of code starts anew."""

import ast
import hashlib
import inspect
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import vsgraph
from vsgraph.common.formatting import plain

HERE, PACKAGE = Path(__file__).parent, Path(vsgraph.__file__).parent


def cache_folder() -> Path:
    """Return where vectors and results are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vsgraph-experiments"


def keep(
    module: ModuleType, about: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what an experiment found, from the cache if the same code found it before.

    The answer has `found`, and beside it `commit` and `seconds` of its making.
    """
    key = json.dumps([module.__name__, plain(about), code_of(module)], sort_keys=True)
    name = f"{module.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    path = cache_folder() / "results" / name
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    started = time.perf_counter()
    found = plain(make())
    answer = {
        "about": plain(about),
        "commit": commit(),
        "seconds": time.perf_counter() - started,
        "found": found,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(json.dumps(answer), encoding="utf-8")
    unfinished.replace(path)
    return answer


def code_of(module: ModuleType) -> str:
    """Return a checksum of the code that a result depends on; comments and docstrings do not count.

    That is the experiment's file and all that it imports, here and in the package.
    """
    waiting, found = [Path(inspect.getfile(module))], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found and path != Path(__file__):
            found.add(path)
            waiting += _imported(path)
    code = [_code(path) for path in sorted(found)]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def _imported(path: Path) -> list[Path]:
    """Return the files that a file imports, of the experiments and of the package."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    places = [PACKAGE.parent / name.replace(".", "/") for name in names if name[:7] == "vsgraph"]
    files = [place.with_suffix(".py") for place in [*places, *(HERE / name for name in names)]]
    return [path for path in [*files, *(p / "__init__.py" for p in places)] if path.is_file()]


def _code(path: Path) -> str:
    """Return what a file does, without what it says."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body.pop(0)
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def commit() -> str:
    """Return the commit of the code that is running; with a plus where it was changed since."""

    def git(*words: str) -> str:
        ran = subprocess.run(
            ["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, check=False
        )
        return ran.stdout.strip()

    changed = git("status", "--porcelain", "--", ":/src", ":/experiments")
    return (git("rev-parse", "--short", "HEAD") or "an unknown commit") + ("+" if changed else "")
