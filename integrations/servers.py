"""Programs that are started for a test, and ended after it."""

import contextlib
import socket
import subprocess
import time

import pytest

SECONDS = 600  # a first start may make a database, on a busy machine


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def started(command, log, port, environment=None):
    """Start a program, wait until it listens, and end it."""
    with log.open("w") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            last = time.monotonic() + SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > last:
                    pytest.fail(f"{command[0]} did not start: {log.read_text()[-2000:]}")
                time.sleep(1)
            yield
        finally:
            process.terminate()
            process.wait(60)


def _listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
