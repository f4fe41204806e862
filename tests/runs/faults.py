"""A process that is killed, or fails, at its n-th write below a folder.

:func:`call` forks, so that everything is imported once. In the child, an audit hook counts the
operations that change files. Python reports when a file is opened, renamed, removed or linked. What
is written by pyarrow, numpy, safetensors and :class:`~pathlib.Path` is reported by small wrappers,
in the middle of the content where possible.
"""

import contextlib
import errno
import functools
import os
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import NamedTuple

KINDS = ("kill", "ENOSPC", "EIO")
EVERY = -1  # every operation fails, as on a disk that is read-only
WRITE = "faults.write"
PATHS = {  # events and how many of their first arguments are paths
    WRITE: 1, "os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.link": 2,
    "os.symlink": 2, "os.truncate": 1, "os.chmod": 1,
}  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SECONDS = 60  # after which a child counts as hanging


class Fault(NamedTuple):
    """What happens at which operation."""

    kind: str  # one of KINDS, or another name of errno
    at: int  # from 0


class Outcome(NamedTuple):
    """How a command ended."""

    code: int  # its exit code; -9 if it was killed
    told: str  # what it printed
    n_writes: int  # operations that it did, None if it was killed


class Injector:
    """The audit hook."""

    def __init__(self, root, fault):
        self.root = os.fspath(root)
        self.fault = fault
        self.count = 0
        self.lock = threading.Lock()

    def __call__(self, event, arguments):
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & WRITING:
                return
            self.meet(path)
        elif event in {"os.remove", "os.rmdir"} and arguments[1] != -1:  # relative to a folder
            self.meet(Path(f"/proc/self/fd/{arguments[1]}").readlink() / os.fsdecode(arguments[0]))
        elif event in PATHS:
            self.meet(*arguments[: PATHS[event]], is_named=event != WRITE)

    def meet(self, *paths, is_named=True):
        """Count an operation below the root, and let it fail if it is its turn."""
        names = [os.fsdecode(p) for p in paths if isinstance(p, str | bytes | os.PathLike)]
        if not any(str(Path(name).absolute()).startswith(self.root) for name in names):
            return
        with self.lock:
            here, self.count = self.count, self.count + 1
        if self.fault is None or self.fault.at not in {here, EVERY}:
            return
        if self.fault.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        code = getattr(errno, self.fault.kind)
        raise OSError(code, os.strerror(code), *names[:is_named])


def call(command, root, fault=None):
    """Call a function in a fork, with a fault at one of its writes below a folder."""
    with tempfile.TemporaryFile() as told:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            _be_child(command, Injector(root, fault), told.fileno(), theirs)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            count = pipe.read()
        status = os.waitpid(child, 0)[1]
        told.seek(0)
        text = told.read().decode(errors="replace")
    return Outcome(os.waitstatus_to_exitcode(status), text, int(count) if count else None)


def _be_child(command, injector, output, pipe):
    """Run the command, report how many operations it did, and end."""
    code = 99
    try:
        signal.alarm(SECONDS)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        report_writes()
        sys.addaudithook(injector)
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os.write(pipe, str(injector.count).encode())
        os._exit(code)


def report_writes():
    """Report writes that Python does not."""
    import numpy as np
    import pyarrow.csv
    import pyarrow.parquet as pq

    Path.write_text = lambda self, data, encoding="utf-8", errors=None, newline=None: _write_halves(
        self, data, "w", encoding=encoding, errors=errors, newline=newline
    )
    Path.write_bytes = lambda self, data: _write_halves(self, data, "wb")
    pq.ParquetWriter.write_table = _reported(pq.ParquetWriter.write_table, lambda w: w.where)
    pyarrow.csv.CSVWriter = _NotedCSV
    np.lib.format.write_array = _reported(np.lib.format.write_array, _name_of)
    if "safetensors.torch" in sys.modules:
        import safetensors.torch

        save_file = safetensors.torch.save_file
        safetensors.torch.save_file = lambda tensors, path, facts=None: (
            save_file(tensors, path, facts),
            sys.audit(WRITE, path),
        )
    os.write = _in_halves(os.write)
    os.fsync = _reported(os.fsync, lambda handle: f"/proc/self/fd/{handle}")


def _write_halves(path, data, mode, **options):
    with path.open(mode, **options) as file:
        file.write(data[: len(data) // 2])
        file.flush()
        sys.audit(WRITE, path)
        file.write(data[len(data) // 2 :])
    return len(data)


def _in_halves(write):
    def writing(handle, data):
        done = write(handle, data[: len(data) // 2])
        sys.audit(WRITE, os.path.realpath(f"/proc/self/fd/{handle}"))
        return done + write(handle, data[len(data) // 2 :])

    return writing


def _name_of(file):
    name = getattr(file, "name", None) or getattr(getattr(file, "fp", None), "name", None)
    return name if isinstance(name, str | bytes | os.PathLike) else None


def _reported(function, path_of):
    """Report a function that writes, when it is called."""

    @functools.wraps(function)
    def reporting(first, *arguments, **options):
        where = path_of(first)
        where = os.path.realpath(where) if where else None
        sys.audit(WRITE, where)
        return function(first, *arguments, **options)

    return reporting


class _NotedCSV:
    """A pyarrow.csv.CSVWriter whose writes are reported."""

    def __init__(self, path, schema):
        from pyarrow import _csv

        self.path, self.writer = path, _csv.CSVWriter(path, schema)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.writer.close()

    def write_table(self, table):
        self.writer.write_table(table)
        sys.audit(WRITE, self.path)
