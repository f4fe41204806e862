"""Ray: tasks on the machines of a cluster, tried three times each."""

import functools
import logging
import os
import platform
import socket
import subprocess
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from vsgraph.common.blocks import limit_threads
from vsgraph.common.version import __version__
from vsgraph.errors import ClusterError, MissingExtraError, VSGraphError

TRIES = 3
PATIENCE = 30  # seconds that a cluster has to answer
GREETING = "import ray, sys; ray.init(address=sys.argv[1], logging_level='CRITICAL')"
AHEAD = 3  # tasks per processor that are sent ahead
WAITING = 16  # results per processor that may wait for one that comes before them


@contextmanager
def open_workers(address: str) -> Iterator["RayWorkers"]:
    """Connect to a Ray cluster; a connection that is there already is used and left open."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("a cluster", "cluster") from error
    if ray.is_initialized():
        yield RayWorkers(ray)
        return
    _check_answer(address)
    with warnings.catch_warnings(), chdir(sys.prefix):  # workers import from where it starts
        warnings.simplefilter("ignore")
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield RayWorkers(ray)
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Raise an error if no cluster answers; Ray itself may wait for ever, so a process is asked."""
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or not port.isdigit() or "/" in host):
        raise ClusterError(f"the cluster's address must be HOST:PORT or auto, got {address!r}")
    try:
        if address != "auto":
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        command = [sys.executable, "-P", "-c", GREETING, address]
        subprocess.run(command, timeout=PATIENCE, check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or f"{error}").strip().split("\n")[-1]
        why = f"{PATIENCE} s" if isinstance(error, subprocess.TimeoutExpired) else said
        raise ClusterError(
            f"no cluster answers at {address!r} ({why}); start one by ray start --head, and "
            "vsgraph on one of its machines"
        ) from error


class RayWorkers:
    """Does packed work as tasks of Ray; see :class:`vsgraph.cluster.parts.Workers`."""

    def __init__(self, ray: Any) -> None:  # noqa: ANN401
        self.ray = ray
        self.cpu_seconds = 0.0  # that tasks took until now
        options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._task = ray.remote(**options)(do_task)

    def describe(self) -> str:
        """Return how large the cluster is."""
        n_alive = sum(node["Alive"] for node in self.ray.nodes())
        counts = ((n_alive, "machine"), (self._n_processors(), "processor"))
        return ", ".join(f"{n:,} {what}{'s' if n != 1 else ''}" for n, what in counts)

    def _n_processors(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def pack(self, work: Callable[..., Any], folder: Path) -> tuple[bytes, str]:
        """Return work as bytes, and their key; `folder` is for large arrays."""
        from vsgraph.cluster.packing import digest_of, pack

        packed = pack(work, folder)
        return packed, digest_of(packed, __version__.encode())

    def each(
        self, packed: bytes, key: str, items: Iterable[Any], name: Callable[[Any], str]
    ) -> Iterator[Any]:
        """Yield the result of each item, in order; `name` says which one it is if it fails."""
        work = self.ray.put(packed)
        rest = iter(items)
        running: dict[Any, _Try] = {}
        waiting: deque[_Try] = deque()

        def send(some: Iterable[_Try]) -> None:
            for tried in some:
                running[self._task.remote(work, key, __version__, tried.item)] = tried

        def send_ahead() -> None:
            n = self._n_processors()
            n_more = max(0, min(AHEAD * n - len(running), WAITING * n - len(waiting)))
            more = [_Try(item, name) for item in islice(rest, n_more)]
            waiting.extend(more)
            send(more)

        try:
            while True:
                send_ahead()
                if not waiting:
                    return
                while not waiting[0].is_done:
                    send(self._failed(running))
                    send_ahead()
                yield waiting.popleft().result
        finally:
            for task in running:
                self.ray.cancel(task, force=True)

    def _failed(self, running: dict[Any, "_Try"]) -> list["_Try"]:
        """Wait until a task ends; return it if it must be tried again."""
        ended = self.ray.wait(list(running), num_returns=1)[0]
        failed = []
        for task in ended:
            tried = running.pop(task)
            failed += [] if tried.take(self.ray, task) else [tried]
            self.cpu_seconds += tried.cpu_seconds
        return failed


class _Try:
    """An item that is being done, and how often it has failed."""

    def __init__(self, item: Any, name: Callable[[Any], str]) -> None:  # noqa: ANN401
        self.item, self.name = item, name
        self.is_done, self.result, self.n_failed = False, None, 0
        self.cpu_seconds = 0.0  # of the last try

    def take(self, ray: Any, task: Any) -> bool:  # noqa: ANN401
        """Take the outcome of a task; False if it must be tried again."""
        try:
            (outcome, result), self.cpu_seconds = ray.get(task)
        except ray.exceptions.RayError as error:  # a worker or a machine was lost
            outcome, result = "failed", f"{type(error).__name__}: {str(error).split(chr(10))[0]}"
            self.cpu_seconds = 0.0
        if outcome == "done":
            self.is_done, self.result = True, result
            return True
        self.n_failed += 1
        if outcome == "refused":
            raise ClusterError(result)
        if self.n_failed == TRIES:
            raise ClusterError(f"{self.name(self.item)} failed {TRIES} times: {result}")
        return False


@functools.lru_cache(maxsize=2)
def _opened(key: str, packed: bytes) -> Callable[..., Any]:  # noqa: ARG001
    """Return packed work, kept in the process for the next items: it may hold an encoder."""
    from vsgraph.cluster.packing import unpack

    return unpack(packed)


def do_task(packed: bytes, key: str, version: str, item: Any) -> tuple[tuple[str, Any], float]:  # noqa: ANN401
    """Do one item of packed work in a worker's process; return its outcome and CPU seconds."""
    started = time.process_time()
    return _outcome(packed, key, version, item), time.process_time() - started


def _outcome(packed: bytes, key: str, version: str, item: Any) -> tuple[str, Any]:  # noqa: ANN401
    """Do one item: 'done' and its result, or 'failed' or 'refused' and why."""
    place = platform.node()
    if version != __version__:
        why = f"{place} has vsgraph {__version__}, not {version}; install the same everywhere"
        return "refused", why
    limit_threads(1)
    try:
        with threadpool_limits(1, "blas"):
            return "done", _opened(key, packed)(item)
    except OSError as error:
        return "failed", f"{error} (on {place}, which must see it under the same path)"
    except VSGraphError as error:  # the same everywhere
        return "refused", f"{error} (on {place})"
    except Exception as error:  # noqa: BLE001  # whatever it is, it may pass elsewhere
        return "failed", f"{type(error).__name__}: {error} (on {place})"
